// sinter/ops/relu6.hpp: the rectifier that saturates at 6.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct relu6_op : number_op {
  static constexpr const char* name = "relu6";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::min(math::max(x, math::constant<V>(0)), math::constant<V>(6));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return select(logical_or(y <= 0, y >= 6), zero_of(g), g);
  }
};

}  // namespace ops

/// min(max(x, 0), 6), elementwise; NaN stays NaN. Derivative: 0 where x <= 0 or x >= 6, otherwise g.
/// Sandler et al., "MobileNetV2", CVPR 2018.
///
///     tensor y = relu6(x);
SINTER_UNARY_FUNCTION(relu6, ops::relu6_op)

}  // namespace sinter
