// sinter/ops/log1p.hpp: the natural logarithm of 1 + x.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct log1p_op : real_op {
  static constexpr const char* name = "log1p";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::log1p(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g / (1 + x);
  }
};

}  // namespace ops

/// ln(1 + x), elementwise, floating point; exact to rounding near 0. Derivative: g / (1 + x).
///
///     tensor y = log1p(x);
SINTER_UNARY_FUNCTION(log1p, ops::log1p_op)

}  // namespace sinter
