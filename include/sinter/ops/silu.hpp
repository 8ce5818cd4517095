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
    return x * sigmoid_op::apply(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    const auto s = call<sigmoid_op>(x);
    return g * s * (1 + x * (1 - s));
  }
};

}  // namespace ops

/// x / (1 + e^-x), elementwise, floating point; also called swish. With s = sigmoid(x), the derivative is
/// g s (1 + x (1 - s)).
/// Elfwing et al., "Sigmoid-weighted linear units for neural network function approximation", 2017.
///
///     tensor y = silu(x);
SINTER_UNARY_FUNCTION(silu, ops::silu_op)

}  // namespace sinter
