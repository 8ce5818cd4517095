// sinter/ops/atan.hpp: the inverse tangent.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct atan_op : real_op {
  static constexpr const char* name = "atan";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::atan(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g / (1 + x * x);
  }
};

}  // namespace ops

/// The inverse tangent, in [-pi/2, pi/2], elementwise, floating point. Derivative: g / (1 + x^2).
///
///     tensor y = atan(x);
SINTER_UNARY_FUNCTION(atan, ops::atan_op)

}  // namespace sinter
