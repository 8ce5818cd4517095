// sinter/ops/silu.hpp: x sigmoid(x).
#pragma once

#include "sinter/ops/op.hpp"
#include "sinter/ops/sigmoid.hpp"

namespace sinter {
namespace ops {

struct silu_op : real_op {
  static constexpr const char* name = "silu";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    if (!math::any(x < far_below)) return x * sigmoid_op::apply(x);
    const V y = x * sigmoid_op::apply(math::select(x < far_below, x + step, x));
    return math::select(x < far_below, y * math::constant<V>(step_down), y);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    if constexpr (!expression<X>) {
      if (!any(x < far_below)) {
        const auto s = call<sigmoid_op>(x);
        return g * s * (1 + x * (1 - s));
      }
    }
    const auto s = call<sigmoid_op>(select(x < far_below, x + step, x));
    const auto slope = s * (1 + x * (1 - s));
    return g * select(x < far_below, slope * number(g, step_down), slope);
  }

 private:
  // Below -80 sigmoid(x) is e^-40 sigmoid(x + 40) to the last digit. As long as x sigmoid(x) is a normal number,
  // sigmoid(x + 40) is one, too.
  static constexpr int far_below = -80, step = 40;
  static constexpr double step_down = 4.24835425529158900e-18;
};

}  // namespace ops

/// x / (1 + e^-x), elementwise, floating point; also called swish. With s = sigmoid(x), the derivative is
/// g s (1 + x (1 - s)).
/// Elfwing et al., "Sigmoid-weighted linear units for neural network function approximation", 2017.
///
///     tensor y = silu(x);
SINTER_UNARY_FUNCTION(silu, ops::silu_op)

}  // namespace sinter
