// sinter/ops/sign.hpp: the sign.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct sign_op : number_op {
  static constexpr const char* name = "sign";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::sign(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return zero_of(g);
  }
};

}  // namespace ops

/// -1, 0 or 1 by the sign of x, elementwise; NaN stays NaN. Derivative: 0.
///
///     tensor y = sign(x);
SINTER_UNARY_FUNCTION(sign, ops::sign_op)

}  // namespace sinter
