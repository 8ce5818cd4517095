// sinter/ops/sinh.hpp: the hyperbolic sine.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct sinh_op : real_op {
  static constexpr const char* name = "sinh";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::sinh(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g * cosh(x);
  }
};

}  // namespace ops

/// The hyperbolic sine, elementwise, floating point. Derivative: g cosh x.
///
///     tensor y = sinh(x);
SINTER_UNARY_FUNCTION(sinh, ops::sinh_op)

}  // namespace sinter
