// sinter/ops/gelu.hpp: the Gaussian error linear unit.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct gelu_op : real_op {
  static constexpr const char* name = "gelu";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return x / 2 * math::erfc(x * math::constant<V>(-0.707106781186547524));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    const auto below = erfc(x * number(g, -0.707106781186547524)) / 2;
    const auto density = exp(x * x / -2) * number(g, 0.398942280401432678);
    return g * (below + x * density);
  }
};

}  // namespace ops

/// x P(N <= x) for a standard normal N: x/2 (1 + erf(x / sqrt 2)), elementwise, floating point; as x/2 erfc(-x / sqrt
/// 2), which keeps its digits where x is far below 0. Derivative: g (P(N <= x) + x p(x)), p the normal density.
/// Hendrycks and Gimpel, "Gaussian error linear units", 2016. gelu_tanh is the faster approximation.
///
///     tensor y = gelu(x);
SINTER_UNARY_FUNCTION(gelu, ops::gelu_op)

}  // namespace sinter
