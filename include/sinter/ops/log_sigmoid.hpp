// sinter/ops/log_sigmoid.hpp: the logarithm of the logistic function.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct log_sigmoid_op : real_op {
  static constexpr const char* name = "log_sigmoid";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    // ln(1 / (1 + e^-x)) = min(x, 0) - ln(1 + e^-|x|): no overflow, no logarithm of a rounded 0
    return math::min(x, math::constant<V>(0)) - math::log1p(math::exp(math::neg(math::abs(x))));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return -g * expm1(y);
  }
};

}  // namespace ops

/// ln sigmoid(x), elementwise, floating point; exact to rounding at both ends, where log(sigmoid(x)) is not.
/// Derivative: g (1 - e^y).
///
///     tensor loss = -log_sigmoid(margin);
SINTER_UNARY_FUNCTION(log_sigmoid, ops::log_sigmoid_op)

}  // namespace sinter
