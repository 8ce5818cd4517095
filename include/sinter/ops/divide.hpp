// sinter/ops/divide.hpp: the quotient of two operands.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct divide_op : number_op {
  static constexpr const char* name = "divide";
  static constexpr unsigned grad_uses[2] = {uses::second, uses::second | uses::result};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return math::divide(a, b);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A&, const B& b, const Y& y) {
    if constexpr (I == 0) return g / b;
    else return -(g * y / b);
  }
};

}  // namespace ops

/// a / b, elementwise and broadcast. Integers truncate as in C, and give 0 when divided by zero.
/// Derivative: g / b to a, -g a / b^2 = -g y / b to b.
///
///     tensor y = x / 2;
SINTER_BINARY_FUNCTION(operator/, ops::divide_op)

}  // namespace sinter
