// sinter/ops/asin.hpp: the inverse sine.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct asin_op : real_op {
  static constexpr const char* name = "asin";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::asin(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g * rsqrt(1 - x * x);
  }
};

}  // namespace ops

/// The inverse sine, in [-pi/2, pi/2], elementwise, floating point; NaN outside [-1, 1]. Derivative: g / sqrt(1 -
/// x^2).
///
///     tensor y = asin(x);
SINTER_UNARY_FUNCTION(asin, ops::asin_op)

}  // namespace sinter
