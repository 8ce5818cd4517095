// sinter/ops/sort.hpp: sort, argsort and topk: elements in order along an axis.
#pragma once

#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/detail/picked.hpp"

namespace sinter {

namespace ops {

/// The order along an axis: kernels<sort_op, D>::run(op, e, values, indices) writes the first values.shape()[axis]
/// elements of a formula, at least one, and where they stood. Both results are dense.
struct sort_op {
  template <device D>
  static constexpr bool has_kernels_on = true;

  int axis;
  bool descending;
};

}  // namespace ops

namespace detail {

/// The first k elements of x along the axis, or all.
template <class E>
values_and_indices<evaluated<E>> sorted(const char* op, E&& x, index_t axis, index_t k, bool all, bool descending) {
  constexpr int R = rank_of<E>;
  using T = element_of<E>;
  using D = device_of<E>;
  check_defined(op, x);
  const int a = checked_axis(op, axis, R > 0 ? R : 1);
  if constexpr (R == 0) {
    if (!all && k != 1) refuse<shape_error>({op, ": there are no ", k, " elements in a scalar"});
    const auto line = sorted(op, eval_to_read(std::forward<E>(x)).unsqueeze(0), 0, 1, true, descending);
    return {line.values.squeeze(0), line.indices.squeeze(0)};
  } else {
    extents<R> shape = x.shape();
    if (all) k = shape[a];
    if (k < 0 || k > shape[a])
      refuse<shape_error>({op, ": there are no ", k, " elements on axis ", a, " of shape ", shape});
    if (shape[a] > std::numeric_limits<std::uint32_t>::max())
      refuse<shape_error>(
          {op, ": axis ", a, " of shape ", shape, " has more than 2^32 - 1 elements; sort slices of it"});
    shape[a] = k;
    const auto e = prologue(std::forward<E>(x));
    const auto values = tensor<T, R, D>::uninitialized(shape);
    const auto indices = tensor<std::int64_t, R, D>::uninitialized(shape);
    if (values.numel() > 0) kernels<ops::sort_op, D>::run({a, descending}, e, values, indices);
    return {picked({op, a, index_order::runs}, values, e, indices), indices};
  }
}

}  // namespace detail

/// The elements in ascending order along an axis, the last by default, as `values`, and where they stood, int64, as
/// `indices`. A scalar has one axis. Equal elements stay in their order, whichever way they are sorted; NaN counts as
/// the largest. Every element type but half and bfloat16, for which there is cast<float>(). Runs at once. Derivative:
/// each g goes back to the element that it belongs to.
///
///     auto [values, indices] = sort(x, 1);
///     auto [falling, places] = sort(x, {.dim = 1, .descending = true});
template <class E, class = std::enable_if_t<detail::takes_order<E>>>
values_and_indices<detail::evaluated<E>> sort(E&& x, detail::whole axis = -1, bool descending = false) {
  return detail::sorted("sort", std::forward<E>(x), axis, 0, true, descending);
}
template <class E, class = std::enable_if_t<detail::takes_order<E>>>
values_and_indices<detail::evaluated<E>> sort(E&& x, const sort_options& o) {
  return sort(std::forward<E>(x), o.dim, o.descending);
}
template <class E, class = std::enable_if_t<detail::takes_order<E>>>
values_and_indices<detail::evaluated<E>> sort(E&& x, detail::whole axis, const sort_order& o) {
  return sort(std::forward<E>(x), axis, o.descending);
}
// A rejected call has values and indices too: otherwise `.values` would be a second error.
template <class E, class... Parameter, class Problem = typename detail::sort_mistake<E>::problem,
          class Fix = typename detail::sort_mistake<E>::fix>
values_and_indices<detail::bare<E>> sort(E&&, Parameter&&...) = delete;
// Braces, which the rejections above do not deduce. They are no macro, about which clang would write a note for each.
template <class E, class Problem = typename detail::sort_mistake<E>::problem,
          class Fix = typename detail::sort_mistake<E>::fix>
values_and_indices<detail::bare<E>> sort(E&&, const sort_options&) = delete;
template <class E, class Problem = typename detail::sort_mistake<E>::problem,
          class Fix = typename detail::sort_mistake<E>::fix>
values_and_indices<detail::bare<E>> sort(E&&, detail::whole, const sort_order&) = delete;

/// The indices, int64, that sort() gives: x picked by them along the axis is in order. No derivative.
///
///     tensor ranking = argsort(energies, 1, true);  // or {.dim = 1, .descending = true}
template <class E, class = std::enable_if_t<detail::takes_order<E>>>
detail::indices_of<E> argsort(E&& x, detail::whole axis = -1, bool descending = false) {
  const no_grad guard;
  return detail::sorted("argsort", std::forward<E>(x), axis, 0, true, descending).indices;
}
template <class E, class = std::enable_if_t<detail::takes_order<E>>>
detail::indices_of<E> argsort(E&& x, const sort_options& o) {
  return argsort(std::forward<E>(x), o.dim, o.descending);
}
template <class E, class = std::enable_if_t<detail::takes_order<E>>>
detail::indices_of<E> argsort(E&& x, detail::whole axis, const sort_order& o) {
  return argsort(std::forward<E>(x), axis, o.descending);
}
SINTER_SORT_REJECTIONS(argsort)
template <class E, class Problem = typename detail::sort_mistake<E>::problem,
          class Fix = typename detail::sort_mistake<E>::fix>
void argsort(E&&, const sort_options&) = delete;
template <class E, class Problem = typename detail::sort_mistake<E>::problem,
          class Fix = typename detail::sort_mistake<E>::fix>
void argsort(E&&, detail::whole, const sort_order&) = delete;

/// The k largest elements along an axis, in descending order, or with largest = false the k smallest in ascending
/// order, as `values`, and where they stood as `indices`: (…,n,…) => (…,k,…). Of equals the first are taken; NaN counts
/// as the largest. All element types but half and bfloat16, for which there is cast<float>(). Runs at once. Derivative:
/// g goes to the elements that were taken. Errors: shape_error where k is more than there are.
///
///     auto [scores, classes] = topk(logits, 5, 1);
///     auto [least, places] = topk(logits, 5, {.dim = 1, .largest = false});
template <class E, class = std::enable_if_t<detail::takes_order<E>>>
values_and_indices<detail::evaluated<E>> topk(E&& x, detail::whole k, detail::whole axis = -1, bool largest = true) {
  return detail::sorted("topk", std::forward<E>(x), axis, k, false, largest);
}
template <class E, class = std::enable_if_t<detail::takes_order<E>>>
values_and_indices<detail::evaluated<E>> topk(E&& x, detail::whole k, const topk_options& o) {
  return topk(std::forward<E>(x), k, o.dim, o.largest);
}
template <class E, class = std::enable_if_t<detail::takes_order<E>>>
values_and_indices<detail::evaluated<E>> topk(E&& x, detail::whole k, detail::whole axis, const topk_order& o) {
  return topk(std::forward<E>(x), k, axis, o.largest);
}
template <class E, class... Parameter, class Problem = typename detail::sort_mistake<E>::problem,
          class Fix = typename detail::sort_mistake<E>::fix>
values_and_indices<detail::bare<E>> topk(E&&, Parameter&&...) = delete;
template <class E, class Problem = typename detail::sort_mistake<E>::problem,
          class Fix = typename detail::sort_mistake<E>::fix>
values_and_indices<detail::bare<E>> topk(E&&, detail::whole, const topk_options&) = delete;
template <class E, class Problem = typename detail::sort_mistake<E>::problem,
          class Fix = typename detail::sort_mistake<E>::fix>
values_and_indices<detail::bare<E>> topk(E&&, detail::whole, detail::whole, const topk_order&) = delete;

}  // namespace sinter
