// sinter/ops/detail/running_extreme.hpp: what cummax and cummin share.
#pragma once

#include "sinter/expr/reducer.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/detail/picked.hpp"

namespace sinter::detail {

template <bool Max, class E>
values_and_indices<evaluated<E>> running_extreme(const char* op, E&& x, index_t axis) {
  check_defined(op, x);
  const int a = checked_axis(op, axis, rank_of<E>);
  const auto e = prologue(std::forward<E>(x));
  using T = element_of<E>;
  using D = device_of<E>;
  const auto values = tensor<T, rank_of<E>, D>::uninitialized(e.shape());
  const auto indices = tensor<std::int64_t, rank_of<E>, D>::uninitialized(e.shape());
  backend<D>::template scan<running_reducer<T, Max>>(
      e, a, scan_extremes<T>{access::data(values), access::data(indices)}, nullptr);
  return {picked({op, a, index_order::runs}, values, e, indices), indices};
}

}  // namespace sinter::detail
