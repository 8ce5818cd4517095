// sinter/ops/unique.hpp: the different elements of a tensor.
#pragma once

#include "sinter/ops/bincount.hpp"
#include "sinter/ops/cumsum.hpp"
#include "sinter/ops/gather.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/sort.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

/// What unique() finds: values in ascending order, for each element of x the place of its value among them, and how
/// often each value occurs.
///
///     auto [values, inverse, counts] = unique(labels);
template <class T, int R, device D>
struct unique_elements {
  tensor<T, 1, D> values;
  tensor<std::int64_t, R, D> inverse;
  tensor<std::int64_t, 1, D> counts;
};

/// The different elements of x, of any shape and element type but half and bfloat16, in ascending order: `values`,
/// `inverse` (int64, of x's shape) and `counts` (int64). -0 equals 0; no NaN equals another. Runs at once, and waits
/// for the number of values. No derivative.
///
///     tensor classes = unique(labels).values;
template <expression E>
  requires(!narrow_element<element_of<E>>)
unique_elements<element_of<E>, rank_of<E>, device_of<E>> unique(E&& x) {
  using D = device_of<E>;
  detail::check_defined("unique", x);
  const no_grad guard;
  const auto shape = x.shape();
  const auto flat = detail::plain(eval(std::forward<E>(x))).flatten();
  const index_t n = flat.numel();
  const auto [values, indices] = detail::sorted("unique", flat, 0, 0, true, false);
  const auto group = zeros<std::int64_t, D>({n});
  if (n > 1) group.slice(0, 1, n) = cumsum(values.slice(0, 1, n) != values.slice(0, 0, n - 1), 0);
  const auto counts = detail::counts_of(group, n > 0 ? group[n - 1].item() + 1 : 0);
  const auto inverse = zeros<std::int64_t, D>({n});
  detail::kernels<ops::scatter_add, D>::run({0, detail::index_order::runs}, inverse, indices, group);
  const tensor<std::int64_t, 1, D> first = cumsum(counts, 0) - counts;
  return {eval(detail::make_kernel(ops::gather_op("unique", 0), values, first)), inverse.reshape(shape), counts};
}

}  // namespace sinter
