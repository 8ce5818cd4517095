// sinter/ops/hardswish.hpp: x times the logistic function in straight pieces.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct hardswish_op : real_op {
  static constexpr const char* name = "hardswish";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    const V gate = math::min(math::max(x + 3, math::constant<V>(0)), math::constant<V>(6));
    return x * gate / 6;
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    const auto inside = g * (x / 3 + number(g, 0.5));
    return select(x >= 3, g, select(x <= -3, zero_of(g), inside));
  }
};

}  // namespace ops

/// x hardsigmoid(x), elementwise, floating point. Derivative: 0 up to -3, g (x/3 + 1/2) between, g from 3 on.
/// Howard et al., "Searching for MobileNetV3", ICCV 2019.
///
///     tensor y = hardswish(x);
SINTER_UNARY_FUNCTION(hardswish, ops::hardswish_op)

}  // namespace sinter
