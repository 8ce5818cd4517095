// sinter/ops/exp.hpp: e to the power x.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct exp_op : real_op {
  static constexpr const char* name = "exp";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::exp(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return g * y;
  }
};

}  // namespace ops

/// e^x, elementwise, floating point. Derivative: g y.
///
///     tensor y = exp(x);
SINTER_UNARY_FUNCTION(exp, ops::exp_op)

}  // namespace sinter
