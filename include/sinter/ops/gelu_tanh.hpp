// sinter/ops/gelu_tanh.hpp: the Gaussian error linear unit, approximated with tanh.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct gelu_tanh_op : real_op {
  static constexpr const char* name = "gelu_tanh";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    const V inner = (x + x * x * x * math::constant<V>(0.044715)) * math::constant<V>(0.797884560802865356);
    return x / 2 * (1 + math::tanh(inner));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    const auto square = x * x;
    const auto t = tanh(x * (1 + square * number(g, 0.044715)) * number(g, 0.797884560802865356));
    const auto bounded = select(square < 256, x, number(x, 0));  // beyond, t is 1 or -1 and 1 - t^2 is 0
    const auto slope = (1 - t * t) * (1 + bounded * bounded * number(g, 0.134145)) * number(g, 0.797884560802865356);
    return g * (1 + t + bounded * slope) / 2;
  }
};

}  // namespace ops

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), elementwise, floating point; within 5e-4 of gelu.
/// Hendrycks and Gimpel, "Gaussian error linear units", 2016.
///
///     tensor y = gelu_tanh(x);
SINTER_UNARY_FUNCTION(gelu_tanh, ops::gelu_tanh_op)

}  // namespace sinter
