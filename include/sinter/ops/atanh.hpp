// sinter/ops/atanh.hpp: the inverse hyperbolic tangent.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct atanh_op : real_op {
  static constexpr const char* name = "atanh";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    const V a = math::abs(x);
    return math::copysign(math::log1p(2 * a / (1 - a)) / 2, x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g / (1 - x * x);
  }
};

}  // namespace ops

/// The inverse hyperbolic tangent, ln((1 + x) / (1 - x)) / 2, elementwise, floating point; infinite at 1 and -1, NaN
/// outside [-1, 1]. Derivative: g / (1 - x^2).
///
///     tensor y = atanh(x);
SINTER_UNARY_FUNCTION(atanh, ops::atanh_op)

}  // namespace sinter
