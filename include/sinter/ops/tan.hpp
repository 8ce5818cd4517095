// sinter/ops/tan.hpp: the tangent.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct tan_op : real_op {
  static constexpr const char* name = "tan";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::tan(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return g * (1 + y * y);
  }
};

}  // namespace ops

/// The tangent of x in radians, elementwise, floating point. Derivative: g (1 + y^2).
///
///     tensor y = tan(x);
SINTER_UNARY_FUNCTION(tan, ops::tan_op)

}  // namespace sinter
