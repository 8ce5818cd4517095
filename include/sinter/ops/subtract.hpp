// sinter/ops/subtract.hpp: the difference of two operands.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct subtract_op : number_op {
  static constexpr const char* name = "subtract";
  static constexpr unsigned grad_uses[2] = {uses::nothing, uses::nothing};
  static constexpr unsigned passes_on = uses::first;
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return static_cast<V>(wrapping(a) - wrapping(b));
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A&, const B&, const Y&) {
    if constexpr (I == 0) return g;
    else return -g;
  }
};

}  // namespace ops

/// a - b, elementwise and broadcast. Derivative: g to a, -g to b. Integers wrap around.
///
///     tensor y = 1 - x;
SINTER_BINARY_FUNCTION(operator-, ops::subtract_op)

}  // namespace sinter
