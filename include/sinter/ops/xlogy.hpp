// sinter/ops/xlogy.hpp: x times a logarithm, 0 where x is 0.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct xlogy_op : real_op {
  static constexpr const char* name = "xlogy";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    const V y = a * math::log(b);
    return math::select(math::logical_and(a == 0, math::logical_not(math::isnan(b))), math::constant<V>(0), y);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    if constexpr (I == 0) return select(logical_and(a == 0, b <= 0), zero_of(g), g * log(b));
    else return g * (a / b);
  }
};

}  // namespace ops

/// a ln(b), elementwise and broadcast, floating point; 0 where a is 0, also beside ln(0), unless b is NaN.
/// Derivative: g ln(b) to a, 0 where a is 0 and b <= 0; g a / b to b.
///
///     tensor entropy = -sum(xlogy(x, x));
SINTER_BINARY_FUNCTION(xlogy, ops::xlogy_op)

}  // namespace sinter
