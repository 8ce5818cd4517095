// sinter/ops/rearrange.hpp: movedim, unflatten, flip, fliplr, flipud and rot90, views with axes elsewhere, apart or
// reversed.
#pragma once

#include "sinter/grad/statement.hpp"
#include "sinter/ops/detail/lines.hpp"

namespace sinter {
namespace detail {

/// Which axis of a tensor stands where: those of `from` at the places `to`, the others between them in their order.
SINTER_SHARED void move_axes(index_t* order, int rank, const index_t* from, const index_t* to, int n);
/// Sizes that an axis of extent n falls into, of which one may be -1.
SINTER_SHARED void check_unflattened(index_t* sizes, int count, index_t n);
SINTER_SHARED int quarter_turns(index_t k, int axis_a, int axis_b);

#if SINTER_DEFINES

SINTER_SHARED void move_axes(index_t* order, int rank, const index_t* from, const index_t* to, int n) {
  bool moved[max_rank] = {}, taken[max_rank] = {};
  for (int i = 0; i < n; ++i) {
    const int a = checked_axis("movedim", from[i], rank), b = checked_axis("movedim", to[i], rank);
    if (moved[a] || taken[b]) refuse<value_error>({"movedim: axis ", moved[a] ? a : b, " is named twice"});
    moved[a] = taken[b] = true;
    order[b] = a;
  }
  int a = 0;
  for (int b = 0; b < rank; ++b) {
    if (taken[b]) continue;
    while (moved[a]) ++a;
    order[b] = a++;
  }
}

SINTER_SHARED void check_unflattened(index_t* sizes, int count, index_t n) {
  const shape_piece given{sizes, count};
  int open = -1;
  index_t product = 1;
  for (int i = 0; i < count; ++i) {
    if (sizes[i] >= 0) product *= sizes[i];
    else if (sizes[i] == -1 && open < 0) open = i;
    else refuse<shape_error>({"unflatten: ", given, " has a negative size (only one may be -1)"});
  }
  if (open < 0 ? product != n : product == 0 || n % product != 0)
    refuse<shape_error>({"unflatten: ", given, " for an axis of extent ", n, "; the product must be that"});
  if (open >= 0) sizes[open] = n / product;
}

SINTER_SHARED int quarter_turns(index_t k, int axis_a, int axis_b) {
  if (axis_a == axis_b) refuse<value_error>({"rot90: axis ", axis_a, " is named twice"});
  return static_cast<int>((k % 4 + 4) % 4);
}

#endif  // SINTER_DEFINES

template <class X, int N>
evaluated<X> with_moved_axes(X&& x, const extents<N>& from, const extents<N>& to) {
  constexpr int R = rank_of<X>;
  check_defined("movedim", x);
  index_t order[std::size_t{R > 0 ? R : 1}] = {};
  move_axes(order, R, from.values, to.values, N);
  return eval_to_read(std::forward<X>(x)).permute(order);
}

}  // namespace detail

/// A view of x whose axis `from` stands at `to`, while the others keep their order: (n,c,h,w) from 1 to -1 =>
/// (n,h,w,c). Derivative: g, moved back. Errors: index_error for an axis that x does not have.
///
///     tensor pixels = movedim(images, 1, -1);
template <class X>
  requires(detail::has_axes<X>)
detail::evaluated<X> movedim(X&& x, detail::whole from, detail::whole to) {
  return detail::with_moved_axes(std::forward<X>(x), extents<1>{{from}}, extents<1>{{to}});
}
/// The same of several axes. Errors: value_error for an axis that is named twice.
///
///     tensor turned = movedim(x, {0, 1}, {-1, -2});
template <class X, std::size_t N>
  requires(detail::has_axes<X> && int{N} <= rank_of<X>)
detail::evaluated<X> movedim(X&& x, const index_t (&from)[N], const index_t (&to)[N]) {
  return detail::with_moved_axes(std::forward<X>(x), detail::to_extents(from), detail::to_extents(to));
}

/// x with an axis as several, whose sizes multiply to its extent; one may be -1: (n,12) at 1 into {3, -1} => (n,3,4). A
/// view where x is one, as reshape. Derivative: g in the shape of x. Errors: shape_error for other sizes, index_error
/// for an axis that x does not have.
///
///     tensor heads = unflatten(x, -1, {8, 64});
template <class X, std::size_t N>
  requires(detail::has_axes<X> && rank_of<X> - 1 + int{N} <= max_rank)
auto unflatten(X&& x, detail::whole axis, const index_t (&sizes)[N]) {
  constexpr int R = rank_of<X>, count = int{N};
  detail::check_defined("unflatten", x);
  const int a = detail::checked_axis("unflatten", axis, R);
  const auto value = detail::eval_to_read(std::forward<X>(x));
  extents<count> parts = detail::to_extents(sizes);
  detail::check_unflattened(parts.values, count, value.shape()[a]);
  extents<R - 1 + count> shape;
  for (int d = 0; d < R - 1 + count; ++d)
    shape[d] = d < a ? value.shape()[d] : d < a + count ? parts[d - a] : value.shape()[d - count + 1];
  return value.reshape(shape.values);
}

/// A view of x with axes reversed. Derivative: g, reversed. Errors: index_error for an axis that x does not have,
/// value_error for one that is named twice.
///
///     tensor back = flip(x, {0, 2});
template <class X, std::size_t N>
  requires(detail::has_axes<X>)
detail::evaluated<X> flip(X&& x, const index_t (&axes)[N]) {
  detail::check_defined("flip", x);
  detail::evaluated<X> value = detail::eval_to_read(std::forward<X>(x));
  bool reversed[max_rank] = {};
  for (const index_t axis : axes) {
    const int a = detail::checked_axis("flip", axis, rank_of<X>);
    if (reversed[a]) detail::refuse<value_error>({"flip: axis ", a, " is named twice"});
    reversed[a] = true;
    value = value.flip(a);
  }
  return value;
}
/// x with axis 1 reversed, the columns of a matrix.
///
///     tensor mirrored = fliplr(x);
template <class X>
  requires(detail::has_axes<X, 2>)
detail::evaluated<X> fliplr(X&& x) {
  return flip(std::forward<X>(x), {1});
}
/// x with axis 0 reversed, the rows of a matrix.
///
///     tensor upside_down = flipud(x);
template <class X>
  requires(detail::has_axes<X>)
detail::evaluated<X> flipud(X&& x) {
  return flip(std::forward<X>(x), {0});
}

/// A view of x, turned by k quarters from one axis to another, backwards where k is negative. Derivative: g, turned
/// back. Errors: index_error for an axis that x does not have, value_error for one axis twice.
///
///     tensor turned = rot90(image, 1, 1, 2);
template <class X>
  requires(detail::has_axes<X, 2>)
detail::evaluated<X> rot90(X&& x, detail::whole k = 1, detail::whole axis_a = 0, detail::whole axis_b = 1) {
  detail::check_defined("rot90", x);
  const int a = detail::checked_axis("rot90", axis_a, rank_of<X>),
            b = detail::checked_axis("rot90", axis_b, rank_of<X>);
  const int turns = detail::quarter_turns(k, a, b);
  detail::evaluated<X> value = detail::eval_to_read(std::forward<X>(x));
  if (turns == 1 || turns == 2) value = value.flip(b);
  if (turns == 3 || turns == 2) value = value.flip(a);
  if (turns % 2 == 1) value = value.transpose(a, b);
  return value;
}

SINTER_AXES_REJECTIONS(movedim, 1)
SINTER_AXES_LIST_REJECTIONS(movedim, 1, const index_t (&)[N], const index_t (&)[N])
SINTER_AXES_LIST_REJECTIONS(unflatten, 1, index_t, const index_t (&)[N])
SINTER_AXES_LIST_REJECTIONS(flip, 1, const index_t (&)[N])
SINTER_AXES_REJECTIONS(fliplr, 2)
SINTER_AXES_REJECTIONS(flipud, 1)
SINTER_AXES_REJECTIONS(rot90, 2)

}  // namespace sinter
