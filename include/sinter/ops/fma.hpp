// sinter/ops/fma.hpp: a b + c.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

struct fma_op : number_op {
  static constexpr const char* name = "fma";
  static constexpr unsigned grad_uses[3] = {uses::second, uses::first, uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V a, V b, V c) {
    return math::fma(a, b, c);
  }
  template <int I, class G, class A, class B, class C, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const C&, const Y&) {
    if constexpr (I == 0) return g * b;
    else if constexpr (I == 1) return g * a;
    else return g;
  }
};

}  // namespace ops

/// a b + c, elementwise and broadcast; rounded once where the processor has the instruction. Integers wrap around.
/// Derivative: g b to a, g a to b, g to c.
///
///     tensor y = fma(a, b, 1.f);
SINTER_TERNARY_FUNCTION(fma, ops::fma_op)

}  // namespace sinter
