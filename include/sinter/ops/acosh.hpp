// sinter/ops/acosh.hpp: the inverse hyperbolic cosine.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct acosh_op : real_op {
  static constexpr const char* name = "acosh";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    // ln(x + sqrt(x^2 - 1)), of which x^2 would overflow, and whose difference to 1 would be lost near 1
    const V t = x - 1, ln2 = math::constant<V>(0.693147180559945309);
    const V direct = math::log1p(t + math::sqrt(t * (t + 2)));
    const V nan = math::constant<V>(std::numeric_limits<double>::quiet_NaN());
    return math::select(x < 1, nan, math::select(x > math::constant<V>(268435456), math::log(x) + ln2, direct));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g * rsqrt((x - 1) * (x + 1));
  }
};

}  // namespace ops

/// The inverse hyperbolic cosine, ln(x + sqrt(x^2 - 1)), elementwise, floating point; NaN below 1. Derivative:
/// g / sqrt(x^2 - 1).
///
///     tensor y = acosh(x);
SINTER_UNARY_FUNCTION(acosh, ops::acosh_op)

}  // namespace sinter
