// sinter/ops/rsqrt.hpp: the reciprocal of the square root.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct rsqrt_op : real_op {
  static constexpr const char* name = "rsqrt";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::rsqrt(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return -(g * y * y * y) / 2;
  }
};

}  // namespace ops

/// 1 / sqrt(x), elementwise, floating point. Derivative: -g y^3 / 2.
///
///     tensor y = rsqrt(x);
SINTER_UNARY_FUNCTION(rsqrt, ops::rsqrt_op)

}  // namespace sinter
