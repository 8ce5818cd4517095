// sinter/ops/mish.hpp: x tanh(softplus(x)).
#pragma once

#include "sinter/ops/log_sigmoid.hpp"
#include "sinter/ops/op.hpp"
#include "sinter/ops/sigmoid.hpp"

namespace sinter {
namespace ops {

struct mish_op : real_op {
  static constexpr const char* name = "mish";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return x * math::tanh(math::neg(log_sigmoid_op::apply(math::neg(x))));  // softplus(x) = -ln sigmoid(-x)
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    const auto s = call<sigmoid_op>(x);
    const auto t = tanh(-call<log_sigmoid_op>(-x));
    return g * (t + x * s * (1 - t * t));
  }
};

}  // namespace ops

/// x tanh(softplus(x)), elementwise, floating point. With s = sigmoid(x) and t = tanh(softplus(x)), the derivative is
/// g (t + x s (1 - t^2)). Misra, "Mish: a self regularized non-monotonic activation function", 2019.
///
///     tensor y = mish(x);
SINTER_UNARY_FUNCTION(mish, ops::mish_op)

}  // namespace sinter
