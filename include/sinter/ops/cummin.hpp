// sinter/ops/cummin.hpp: running minima.
#pragma once

#include "sinter/ops/detail/running_extreme.hpp"

namespace sinter {

/// The smallest element so far along an axis, -1 for the last, as `values`, and its position on the axis, int64, as
/// `indices`: of equals the last. From the first NaN on all is NaN. Runs at once. Derivative: each g goes to the
/// element that was picked.
///
///     auto [lowest, day] = cummin(x, 0);
template <detail::takes_lines E>
values_and_indices<detail::evaluated<E>> cummin(E&& x, detail::whole axis) {
  return detail::running_extreme<false>("cummin", std::forward<E>(x), axis);
}
SINTER_LINES_REJECTIONS(cummin)
SINTER_AXIS_REJECTION(cummin)

}  // namespace sinter
