// sinter/ops/abs.hpp: the absolute value.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct abs_op : number_op {
  static constexpr const char* name = "abs";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::abs(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g * sign(x);
  }
};

}  // namespace ops

/// |x|, elementwise; the least signed integer wraps to itself. Derivative: g sign(x), 0 at 0.
///
///     tensor y = abs(x);
SINTER_UNARY_FUNCTION(abs, ops::abs_op)

}  // namespace sinter
