// sinter/ops/hypot.hpp: the length of the hypotenuse.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct hypot_op : real_op {
  static constexpr const char* name = "hypot";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::result, uses::second | uses::result};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    // scaled by the larger leg, whose square may overflow
    const V x = math::abs(a), y = math::abs(b);
    const V larger = math::max(x, y);
    const V ratio = math::select(larger == 0, larger, math::min(x, y) / larger);
    const V length = larger * math::sqrt(1 + ratio * ratio);
    const V infinity = math::constant<V>(std::numeric_limits<double>::infinity());
    return math::select(math::logical_or(math::isinf(a), math::isinf(b)), infinity, length);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y& y) {
    if constexpr (I == 0) return select(y == 0, zero_of(g), g * (a / y));
    else return select(y == 0, zero_of(g), g * (b / y));
  }
};

}  // namespace ops

/// sqrt(a^2 + b^2) without overflow or underflow on the way, elementwise and broadcast, floating point.
/// Infinite if either is. Derivative: g a / y to a, g b / y to b; 0 where y is 0.
///
///     tensor radius = hypot(x, y);
SINTER_BINARY_FUNCTION(hypot, ops::hypot_op)

}  // namespace sinter
