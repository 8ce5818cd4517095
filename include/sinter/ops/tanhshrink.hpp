// sinter/ops/tanhshrink.hpp: x less its hyperbolic tangent.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct tanhshrink_op : real_op {
  static constexpr const char* name = "tanhshrink";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return x - math::tanh(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    const auto t = tanh(x);
    return g * t * t;
  }
};

}  // namespace ops

/// x - tanh(x), elementwise, floating point. Derivative: g tanh(x)^2.
///
///     tensor y = tanhshrink(x);
SINTER_UNARY_FUNCTION(tanhshrink, ops::tanhshrink_op)

}  // namespace sinter
