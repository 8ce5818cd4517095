// sinter/ops/reciprocal.hpp: one divided by x.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct reciprocal_op : real_op {
  static constexpr const char* name = "reciprocal";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::reciprocal(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return -(g * y * y);
  }
};

}  // namespace ops

/// 1 / x, elementwise, floating point. Derivative: -g y^2.
///
///     tensor y = reciprocal(x);
SINTER_UNARY_FUNCTION(reciprocal, ops::reciprocal_op)

}  // namespace sinter
