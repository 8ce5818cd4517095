// sinter/ops/sqrt.hpp: the square root.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct sqrt_op : real_op {
  static constexpr const char* name = "sqrt";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::sqrt(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return g / (2 * y);
  }
};

}  // namespace ops

/// The square root, elementwise, floating point; NaN below 0. Derivative: g / (2 y), inf at 0.
///
///     tensor y = sqrt(x);
SINTER_UNARY_FUNCTION(sqrt, ops::sqrt_op)

}  // namespace sinter
