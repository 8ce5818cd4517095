// sinter/ops/sin.hpp: the sine.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct sin_op : real_op {
  static constexpr const char* name = "sin";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::sin(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g * cos(x);
  }
};

}  // namespace ops

/// The sine of x in radians, elementwise, floating point. Derivative: g cos x.
///
///     tensor y = sin(x);
SINTER_UNARY_FUNCTION(sin, ops::sin_op)

}  // namespace sinter
