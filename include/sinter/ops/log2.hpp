// sinter/ops/log2.hpp: the logarithm to base 2.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct log2_op : real_op {
  static constexpr const char* name = "log2";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::log2(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g / (x * number(g, 0.693147180559945309));
  }
};

}  // namespace ops

/// The logarithm to base 2, elementwise, floating point. Derivative: g / (x ln 2).
///
///     tensor y = log2(x);
SINTER_UNARY_FUNCTION(log2, ops::log2_op)

}  // namespace sinter
