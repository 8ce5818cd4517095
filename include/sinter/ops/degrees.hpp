// sinter/ops/degrees.hpp: deg2rad and rad2deg, angles in the other unit.
#pragma once

#include "sinter/ops/multiply.hpp"
#include "sinter/ops/ternary.hpp"

namespace sinter {

/// Degrees in radians, x pi / 180, elementwise, floating point. Derivative: g pi / 180.
///
///     tensor angles = deg2rad(x);
template <real_expression A>
auto deg2rad(A&& x) {
  detail::check_defined("deg2rad", x);
  return std::forward<A>(x) * 0.0174532925199432958;
}
/// Radians in degrees, x 180 / pi, elementwise, floating point. Derivative: g 180 / pi.
///
///     tensor degrees = rad2deg(atan2(y, x));
template <real_expression A>
auto rad2deg(A&& x) {
  detail::check_defined("rad2deg", x);
  return std::forward<A>(x) * 57.2957795130823209;
}
SINTER_REAL_ONLY(deg2rad)
SINTER_REAL_ONLY(rad2deg)

}  // namespace sinter
