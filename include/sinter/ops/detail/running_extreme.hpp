// sinter/ops/detail/running_extreme.hpp: what cummax and cummin share.
#pragma once

#include "sinter/ops/detail/picked.hpp"
#include "sinter/ops/detail/scan.hpp"

namespace sinter {
namespace ops {

/// A scan of two results, values and their indices, so that no expression stands for it.
template <bool Max>
struct running_extreme_op : scan_op {
  template <class T>
  using reducer = sinter::detail::running_reducer<T, Max>;
  using scan_op::scan_op;
};

}  // namespace ops

namespace detail {

template <bool Max, class E>
values_and_indices<evaluated<E>> running_extreme(const char* op, E&& x, index_t axis) {
  check_defined(op, x);
  const int a = checked_axis(op, axis, rank_of<E>);
  const auto e = prologue(std::forward<E>(x));
  using T = element_of<E>;
  using D = device_of<E>;
  const auto values = tensor<T, rank_of<E>, D>::uninitialized(e.shape());
  const auto indices = tensor<std::int64_t, rank_of<E>, D>::uninitialized(e.shape());
  using extreme = ops::running_extreme_op<Max>;
  kernels<extreme, D>::run(extreme(a), e, values, indices);
  return {picked({op, a, index_order::runs}, values, e, indices), indices};
}

}  // namespace detail
}  // namespace sinter
