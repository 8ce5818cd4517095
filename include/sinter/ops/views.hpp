// sinter/ops/views.hpp: views and other shapes as functions: reshape(x, {3, 2}) is x.reshape({3, 2}).
#pragma once

#include "sinter/expr/evaluate.hpp"
#include "sinter/grad/view.hpp"

namespace sinter {

/// The same elements in another shape; one extent may be -1. A view where strides allow it, otherwise a copy; of an
/// expression its value. Derivative: g in the shape of x.
///
///     tensor rows = reshape(x, {-1, 3});
template <expression X, std::size_t N>
auto reshape(const X& x, const index_t (&shape)[N]) {
  return x.reshape(shape);
}
template <expression X, int N>
auto reshape(const X& x, const extents<N>& shape) {
  return x.reshape(shape);
}

/// All elements along one axis.
///
///     tensor all = flatten(x);
template <expression X>
auto flatten(const X& x) {
  return x.flatten();
}

/// A view with two axes exchanged, by default the last two. Derivative: g with the two exchanged.
///
///     tensor columns = transpose(x);
template <expression X>
auto transpose(const X& x, detail::whole a = -2, detail::whole b = -1) {
  return x.transpose(a, b);
}

/// A view whose axis i is axis axis_order[i] of x. Derivative: g with its axes put back.
///
///     tensor last = permute(pictures, {0, 2, 3, 1});
template <expression X, std::size_t N>
auto permute(const X& x, const index_t (&axis_order)[N]) {
  return x.permute(axis_order);
}

/// A view without an axis of extent 1. Errors: shape_error for another extent.
///
///     tensor row = squeeze(x.slice(0, 0, 1), 0);
template <expression X>
auto squeeze(const X& x, detail::whole axis) {
  return x.squeeze(axis);
}

/// A view with extents of 1 repeated, for reading; of a variable a copy. Derivative: g summed over what was repeated.
/// Errors: shape_error.
///
///     tensor repeated = broadcast_to(row, {3, 5});
template <expression X, std::size_t N>
auto broadcast_to(const X& x, const index_t (&shape)[N]) {
  return x.broadcast_to(shape);
}

/// A view with a new axis of extent 1 before `axis`.
///
///     tensor batch = unsqueeze(x, 0);
template <expression X>
auto unsqueeze(const X& x, detail::whole axis) {
  return x.unsqueeze(axis);
}

/// A view with an axis reversed.
///
///     tensor mirrored = flip(pictures, 3);
template <expression X>
auto flip(const X& x, detail::whole axis) {
  return x.flip(axis);
}

/// A view of `length` elements of an axis, from `begin` on; a negative one counts from the end. Errors: index_error
/// where they do not lie within the axis.
///
///     tensor middle = narrow(x, 1, 1, 2);
template <expression X>
auto narrow(const X& x, detail::whole axis, detail::whole begin, detail::whole length) {
  return x.narrow(axis, begin, length);
}

}  // namespace sinter
