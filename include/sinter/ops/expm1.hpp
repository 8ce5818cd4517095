// sinter/ops/expm1.hpp: e to the power x, less 1.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct expm1_op : real_op {
  static constexpr const char* name = "expm1";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::expm1(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return g * (y + 1);
  }
};

}  // namespace ops

/// e^x - 1, elementwise, floating point; exact to rounding near 0. Derivative: g (y + 1).
///
///     tensor y = expm1(x);
SINTER_UNARY_FUNCTION(expm1, ops::expm1_op)

}  // namespace sinter
