// sinter/ops/masked.hpp: masked_fill, masked_select and masked_scatter, elements at which a mask is true.
#pragma once

#include "sinter/ops/index_put.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {
namespace detail {

template <class X, class M>
constexpr auto find_mask_mistake() {
  if constexpr (!is_fitting<beside_mistake<X, M>>) return beside_mistake<X, M>{};
  else if constexpr (!std::is_same_v<element_of<M>, bool>)
    return mistake<mask_with_elements_of_type<element_of<M>>, compare_with_zero_or_cast_to_bool>{};
  else return fitting<element_of<X>>{};
}
template <class X, class M>
using mask_mistake = decltype(find_mask_mistake<bare<X>, bare<M>>());
template <class X, class M>
concept takes_mask = is_fitting<mask_mistake<X, M>>;

template <class X, class M, class S>
constexpr auto find_masked_scatter_mistake() {
  using mask = mask_mistake<X, M>;
  if constexpr (!is_fitting<mask>) return mask{};
  else if constexpr (!expression<S>) return no_operands<S>{};
  else if constexpr (!is_fitting<source_mistake<X, S>>) return source_mistake<X, S>{};
  else return mask{};
}
template <class X, class M, class S>
using masked_scatter_mistake = decltype(find_masked_scatter_mistake<bare<X>, bare<M>, bare<S>>());

/// e, broadcast to a shape and flattened.
template <class E, int R>
auto flat_of_shape(E&& e, const extents<R>& shape) {
  const auto value = eval_to_read(std::forward<E>(e));
  if constexpr (rank_of<E> == R) {
    if (value.shape() == shape) return value.flatten();
  }
  return value.broadcast_to(shape).flatten();
}

}  // namespace detail

/// value where the mask is true, x elsewhere, broadcast: where(mask, value, x), with its derivative and errors. The
/// value is a number, or a tensor of x's element type.
///
///     tensor seen = masked_fill(energies, !is_word, -1e9);
template <class X, class M, class V>
  requires(expression<X> && detail::can_choose<M, V, X>)
auto masked_fill(X&& x, M&& mask, V&& value) {
  return where(std::forward<M>(mask), std::forward<V>(value), std::forward<X>(x));
}
template <class X, class M, class V, class Problem = typename detail::where_mistake<M, V, X>::problem,
          class Fix = typename detail::where_mistake<M, V, X>::fix>
void masked_fill(X&&, M&&, V&&) = delete;

/// The elements of x at which the mask, of bool, is true, in row-major order: (k). x and mask broadcast. Every element
/// type. Runs at once; it waits for their number, on a GPU for all work before. Derivative: g at the elements that were
/// taken. Errors: shape_error where shapes do not broadcast.
///
///     tensor positive = masked_select(x, x > 0);
template <class X, class M>
  requires detail::takes_mask<X, M>
auto masked_select(X&& x, const M& mask) {
  constexpr int R = rank_of<X> > rank_of<M> ? rank_of<X> : rank_of<M>;
  detail::check_defined("masked_select", x);
  detail::check_defined("masked_select", mask);
  const extents<R> shape = detail::broadcast_shapes("masked_select", x.shape(), mask.shape());
  const auto places = detail::true_places(detail::flat_of_shape(mask, shape));
  return detail::read_at<1>("masked_select", detail::flat_of_shape(std::forward<X>(x), shape), places);
}
/// The slices along an axis at which a mask (n) is true: (…,n,…) => (…,k,…); ONNX's Compress. Runs at once; it waits
/// for their number, on a GPU for all work before. Derivative: g at the slices that were taken. Errors: shape_error for
/// a mask of another length than the axis, index_error for an axis that x does not have.
///
///     tensor kept = masked_select(x, 0, valid);
template <class X, class M>
  requires(detail::takes_mask<X, M> && rank_of<X> >= 1 && rank_of<M> == 1)
auto masked_select(X&& x, detail::whole axis, const M& mask) {
  detail::check_defined("masked_select", x);
  detail::check_defined("masked_select", mask);
  const int a = detail::checked_axis("masked_select", axis, rank_of<X>);
  if (mask.shape()[0] != x.shape()[a])
    detail::refuse<shape_error>(
        {"masked_select: a mask of ", mask.shape()[0], " elements for axis ", a, " of shape ", x.shape()});
  return index_select(x, a, detail::true_places(mask));
}

/// x with the elements of src, in row-major order, where the mask is true: the first of them at the first such place,
/// and so on. x and mask broadcast; src has x's element type, any shape, and as many elements as are needed, or more.
/// Runs at once; it waits for their number, on a GPU for all work before. Derivative: g to x, but 0 where the mask is
/// true; there the g to the elements of src that were used. Errors: shape_error where x and mask do not broadcast, or
/// where src has too few elements.
///
///     tensor filled = masked_scatter(x, isnan(x), replacements);
template <class X, class M, class S>
  requires(detail::is_fitting<detail::masked_scatter_mistake<X, M, S>>)
auto masked_scatter(X&& x, const M& mask, S&& src) {
  constexpr int R = rank_of<X> > rank_of<M> ? rank_of<X> : rank_of<M>;
  detail::check_defined("masked_scatter", x);
  detail::check_defined("masked_scatter", mask);
  detail::check_defined("masked_scatter", src);
  const extents<R> shape = detail::broadcast_shapes("masked_scatter", x.shape(), mask.shape());
  const auto places = detail::true_places(detail::flat_of_shape(mask, shape));
  const auto from = detail::eval_to_read(std::forward<S>(src)).flatten();
  if (from.numel() < places.numel())
    detail::refuse<shape_error>(
        {"masked_scatter: ", places.numel(), " elements of the mask are true, the source has ", from.numel()});
  return eval(detail::make_kernel(ops::scatter_op<ops::scatter_rule::replace>("masked_scatter", 0, true),
                                  detail::flat_of_shape(std::forward<X>(x), shape), from.slice(0, 0, places.numel()),
                                  places))
      .reshape(shape);
}

template <class X, class M, class Problem = typename detail::mask_mistake<X, M>::problem,
          class Fix = typename detail::mask_mistake<X, M>::fix>
void masked_select(X&&, M&&) = delete;
template <class X, class M, class Problem = typename detail::mask_mistake<X, M>::problem,
          class Fix = typename detail::mask_mistake<X, M>::fix>
void masked_select(X&&, index_t, M&&) = delete;
template <class X, class M, class S, class Problem = typename detail::masked_scatter_mistake<X, M, S>::problem,
          class Fix = typename detail::masked_scatter_mistake<X, M, S>::fix>
void masked_scatter(X&&, M&&, S&&) = delete;

}  // namespace sinter
