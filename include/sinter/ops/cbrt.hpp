// sinter/ops/cbrt.hpp: the cube root.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct cbrt_op : real_op {
  static constexpr const char* name = "cbrt";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::cbrt(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return g / (3 * y * y);
  }
};

}  // namespace ops

/// The real cube root, elementwise, floating point. Derivative: g / (3 y^2), inf at 0.
///
///     tensor y = cbrt(x);
SINTER_UNARY_FUNCTION(cbrt, ops::cbrt_op)

}  // namespace sinter
