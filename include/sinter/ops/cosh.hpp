// sinter/ops/cosh.hpp: the hyperbolic cosine.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct cosh_op : real_op {
  static constexpr const char* name = "cosh";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::cosh(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g * sinh(x);
  }
};

}  // namespace ops

/// The hyperbolic cosine, elementwise, floating point. Derivative: g sinh x.
///
///     tensor y = cosh(x);
SINTER_UNARY_FUNCTION(cosh, ops::cosh_op)

}  // namespace sinter
