// sinter/ops/tanh.hpp: the hyperbolic tangent.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct tanh_op : real_op {
  static constexpr const char* name = "tanh";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::tanh(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return g * (1 - y * y);
  }
};

}  // namespace ops

/// tanh(x), elementwise, floating point; in [-1, 1]. Derivative: g (1 - y^2).
///
///     tensor y = tanh(x);
SINTER_UNARY_FUNCTION(tanh, ops::tanh_op)

}  // namespace sinter
