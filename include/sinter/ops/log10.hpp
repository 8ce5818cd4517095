// sinter/ops/log10.hpp: the logarithm to base 10.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct log10_op : real_op {
  static constexpr const char* name = "log10";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::log10(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g / (x * number(g, 2.302585092994045684));
  }
};

}  // namespace ops

/// The logarithm to base 10, elementwise, floating point. Derivative: g / (x ln 10).
///
///     tensor y = log10(x);
SINTER_UNARY_FUNCTION(log10, ops::log10_op)

}  // namespace sinter
