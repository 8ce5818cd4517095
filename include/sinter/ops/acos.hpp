// sinter/ops/acos.hpp: the inverse cosine.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct acos_op : real_op {
  static constexpr const char* name = "acos";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::acos(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return -g * rsqrt(1 - x * x);
  }
};

}  // namespace ops

/// The inverse cosine, in [0, pi], elementwise, floating point; NaN outside [-1, 1]. Derivative: -g / sqrt(1 - x^2).
///
///     tensor y = acos(x);
SINTER_UNARY_FUNCTION(acos, ops::acos_op)

}  // namespace sinter
