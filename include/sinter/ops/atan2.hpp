// sinter/ops/atan2.hpp: the angle of a point.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct atan2_op : real_op {
  static constexpr const char* name = "atan2";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    const V zero = math::constant<V>(0), pi = math::constant<V>(3.14159265358979324);
    const V y = math::abs(a), x = math::abs(b);
    const V larger = math::max(y, x);
    const auto equal = math::logical_or(larger == 0, math::logical_and(math::isinf(a), math::isinf(b)));
    const V ratio =
        math::select(equal, math::select(larger == 0, zero, math::constant<V>(1)), math::min(y, x) / larger);
    const V octant = math::atan(ratio);
    const V quadrant = math::select(y > x, pi / 2 - octant, octant);
    const V half = math::select(below(b), pi - quadrant, quadrant);
    return math::select(below(a), math::neg(half), half);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    const auto square = a * a + b * b;
    if constexpr (I == 0) return select(square == 0, zero_of(g), g * (b / square));
    else return select(square == 0, zero_of(g), -g * (a / square));
  }

 private:
  /// Whether the sign bit is set, that of -0 too.
  template <class V>
  SINTER_WORD static auto below(V x) {
    return math::logical_or(x < 0, math::reciprocal(x) < 0);
  }
};

}  // namespace ops

/// The angle of the point (b, a) from the positive first axis, in [-pi, pi], elementwise and broadcast, floating
/// point; signed zeros as C's atan2. Derivative: g b / (a^2 + b^2) to a, -g a / (a^2 + b^2) to b; 0 at the origin.
///
///     tensor angle = atan2(y, x);
SINTER_BINARY_FUNCTION(atan2, ops::atan2_op)

}  // namespace sinter
