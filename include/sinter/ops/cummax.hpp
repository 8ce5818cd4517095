// sinter/ops/cummax.hpp: running maxima.
#pragma once

#include "sinter/ops/detail/running_extreme.hpp"

namespace sinter {

/// The largest element so far along an axis, -1 for the last, as `values`, and its position on the axis, int64, as
/// `indices`: of equals the last. From the first NaN on all is NaN. Runs at once. Derivative: each g goes to the
/// element that was picked.
///
///     auto [highest, day] = cummax(x, 0);
template <detail::takes_lines E>
values_and_indices<detail::evaluated<E>> cummax(E&& x, detail::whole axis) {
  return detail::running_extreme<true>("cummax", std::forward<E>(x), axis);
}
SINTER_LINES_REJECTIONS(cummax)
SINTER_AXIS_REJECTION(cummax)

}  // namespace sinter
