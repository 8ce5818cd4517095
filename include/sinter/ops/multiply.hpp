// sinter/ops/multiply.hpp: the product of two operands.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct multiply_op : number_op {
  static constexpr const char* name = "multiply";
  static constexpr unsigned grad_uses[2] = {uses::second, uses::first};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return static_cast<V>(wrapping(a) * wrapping(b));
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    if constexpr (I == 0) return g * b;
    else return g * a;
  }
};

}  // namespace ops

/// a * b, elementwise and broadcast. Derivative: g b to a, g a to b. Integers wrap around.
///
///     tensor y = x * 2.f;
SINTER_BINARY_FUNCTION(operator*, ops::multiply_op)

}  // namespace sinter
