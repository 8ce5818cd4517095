// sinter/ops/cos.hpp: the cosine.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct cos_op : real_op {
  static constexpr const char* name = "cos";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::cos(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return -g * sin(x);
  }
};

}  // namespace ops

/// The cosine of x in radians, elementwise, floating point. Derivative: -g sin x.
///
///     tensor y = cos(x);
SINTER_UNARY_FUNCTION(cos, ops::cos_op)

}  // namespace sinter
