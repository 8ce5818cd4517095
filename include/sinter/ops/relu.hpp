// sinter/ops/relu.hpp: the rectifier.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct relu_op : number_op {
  static constexpr const char* name = "relu";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::max(x, math::constant<V>(0));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return select(y <= 0, zero_of(g), g);
  }
};

}  // namespace ops

/// max(x, 0), elementwise; NaN stays NaN. Derivative: 0 where x <= 0, otherwise g.
/// Nair and Hinton, "Rectified linear units improve restricted Boltzmann machines", ICML 2010.
///
///     tensor y = relu(x);
SINTER_UNARY_FUNCTION(relu, ops::relu_op)

}  // namespace sinter
