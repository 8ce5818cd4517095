// sinter/ops/negate.hpp: the additive inverse.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct negate_op : number_op {
  static constexpr const char* name = "negate";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::neg(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return -g;
  }
};

}  // namespace ops

/// -x, elementwise. Derivative: -g. Integers wrap around.
///
///     tensor y = -x;
SINTER_UNARY_FUNCTION(operator-, ops::negate_op)

}  // namespace sinter
