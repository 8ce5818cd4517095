// sinter/ops/frac.hpp: the fraction of x.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct frac_op : real_op {
  static constexpr const char* name = "frac";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return x - math::trunc(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return g;
  }
};

}  // namespace ops

/// x - trunc(x), the fraction with the sign of x, elementwise, floating point. Derivative: g.
///
///     tensor y = frac(x);
SINTER_UNARY_FUNCTION(frac, ops::frac_op)

}  // namespace sinter
