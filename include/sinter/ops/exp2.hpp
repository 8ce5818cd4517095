// sinter/ops/exp2.hpp: 2 to the power x.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct exp2_op : real_op {
  static constexpr const char* name = "exp2";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::exp2(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return g * y * number(g, 0.693147180559945309);
  }
};

}  // namespace ops

/// 2^x, elementwise, floating point. Derivative: g y ln 2.
///
///     tensor y = exp2(x);
SINTER_UNARY_FUNCTION(exp2, ops::exp2_op)

}  // namespace sinter
