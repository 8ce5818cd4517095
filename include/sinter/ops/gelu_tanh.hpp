// sinter/ops/gelu_tanh.hpp: the Gaussian error linear unit, approximated with tanh.
#pragma once

#include "sinter/ops/op.hpp"
#include "sinter/ops/sigmoid.hpp"

namespace sinter {
namespace ops {

struct gelu_tanh_op : real_op {
  static constexpr const char* name = "gelu_tanh";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return x * math::sigmoid((x + x * x * x * math::constant<V>(0.044715)) * math::constant<V>(1.59576912160573071));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    const auto square = x * x;
    const auto s = call<sigmoid_op>(x * (1 + square * number(g, 0.044715)) * number(g, 1.59576912160573071));
    const auto bounded = select(square < 256, x, number(x, 0));  // beyond, s is 0 or 1
    const auto slope = (1 - s) * (1 + bounded * bounded * number(g, 0.134145)) * number(g, 1.59576912160573071);
    return g * s * (1 + bounded * slope);
  }
};

}  // namespace ops

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), elementwise, floating point; within 5e-4 of gelu. Computed as
/// x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)), which is the same and keeps its digits where x is far below 0.
/// Hendrycks and Gimpel, "Gaussian error linear units", 2016.
///
///     tensor y = gelu_tanh(x);
SINTER_UNARY_FUNCTION(gelu_tanh, ops::gelu_tanh_op)

}  // namespace sinter
