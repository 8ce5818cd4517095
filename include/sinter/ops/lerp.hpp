// sinter/ops/lerp.hpp: a point between two.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

struct lerp_op : real_op {
  static constexpr const char* name = "lerp";
  static constexpr unsigned grad_uses[3] = {uses::third, uses::third, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b, V c) {
    const V step = b - a;
    return math::select(c < math::constant<V>(0.5), a + c * step, b - (1 - c) * step);
  }
  template <int I, class G, class A, class B, class C, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const C& c, const Y&) {
    if constexpr (I == 0) return g * (1 - c);
    else if constexpr (I == 1) return g * c;
    else return g * (b - a);
  }
};

}  // namespace ops

/// a + w (b - a), elementwise and broadcast, floating point; exactly a at w = 0 and b at w = 1.
/// Derivative: g (1 - w) to a, g w to b, g (b - a) to w.
///
///     tensor y = lerp(a, b, 0.1);
SINTER_TERNARY_FUNCTION(lerp, ops::lerp_op)

}  // namespace sinter
