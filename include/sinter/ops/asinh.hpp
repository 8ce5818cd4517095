// sinter/ops/asinh.hpp: the inverse hyperbolic sine.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct asinh_op : real_op {
  static constexpr const char* name = "asinh";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    // ln(x + sqrt(x^2 + 1)), of which x^2 would overflow, and whose difference to 1 would be lost near 0
    const V a = math::abs(x), ln2 = math::constant<V>(0.693147180559945309);
    const V direct = math::log1p(a + a * a / (1 + math::sqrt(1 + a * a)));
    return math::copysign(math::select(a > math::constant<V>(268435456), math::log(a) + ln2, direct), x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g * rsqrt(1 + x * x);
  }
};

}  // namespace ops

/// The inverse hyperbolic sine, ln(x + sqrt(x^2 + 1)), elementwise, floating point; exact to rounding near 0.
/// Derivative: g / sqrt(1 + x^2).
///
///     tensor y = asinh(x);
SINTER_UNARY_FUNCTION(asinh, ops::asinh_op)

}  // namespace sinter
