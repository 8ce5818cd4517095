// sinter/ops/sigmoid.hpp: the logistic function.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct sigmoid_op : real_op {
  static constexpr const char* name = "sigmoid";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::sigmoid(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return g * y * (1 - y);
  }
};

}  // namespace ops

/// 1 / (1 + e^-x), elementwise, floating point; exact to rounding at both ends. Derivative: g y (1 - y).
///
///     tensor p = sigmoid(logits);
SINTER_UNARY_FUNCTION(sigmoid, ops::sigmoid_op)

}  // namespace sinter
