// sinter/ops/hardsigmoid.hpp: the logistic function in three straight pieces.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct hardsigmoid_op : real_op {
  static constexpr const char* name = "hardsigmoid";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    const V y = x / 6 + math::constant<V>(0.5);
    return math::min(math::max(y, math::constant<V>(0)), math::constant<V>(1));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return select(logical_or(y <= 0, y >= 1), zero_of(g), g / 6);
  }
};

}  // namespace ops

/// x/6 + 1/2 clamped to [0, 1], elementwise, floating point. Derivative: 0 where y <= 0 or y >= 1, otherwise g / 6.
///
///     tensor y = hardsigmoid(x);
SINTER_UNARY_FUNCTION(hardsigmoid, ops::hardsigmoid_op)

}  // namespace sinter
