// sinter/ops/erfc.hpp: the complementary error function.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct erfc_op : real_op {
  static constexpr const char* name = "erfc";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::erfc(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return -g * number(g, 1.128379167095512574) * exp(-(x * x));
  }
};

}  // namespace ops

/// 1 - erf(x), elementwise, floating point; keeps its relative accuracy where erf(x) rounds to 1.
/// Derivative: -g 2/sqrt(pi) e^-x^2.
///
///     tensor y = erfc(x);
SINTER_UNARY_FUNCTION(erfc, ops::erfc_op)

}  // namespace sinter
