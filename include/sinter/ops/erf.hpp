// sinter/ops/erf.hpp: the error function.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct erf_op : real_op {
  static constexpr const char* name = "erf";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::erf(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g * number(g, 1.128379167095512574) * exp(-(x * x));
  }
};

}  // namespace ops

/// The error function 2/sqrt(pi) times the integral of e^-t^2 from 0 to x, elementwise, floating point.
/// Derivative: g 2/sqrt(pi) e^-x^2.
///
///     tensor y = erf(x);
SINTER_UNARY_FUNCTION(erf, ops::erf_op)

}  // namespace sinter
