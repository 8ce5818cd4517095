// sinter/ops/softsign.hpp: x divided by 1 + |x|.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct softsign_op : real_op {
  static constexpr const char* name = "softsign";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return x / (1 + math::abs(x));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    const auto n = 1 + abs(x);
    return g / (n * n);
  }
};

}  // namespace ops

/// x / (1 + |x|), elementwise, floating point. Derivative: g / (1 + |x|)^2.
///
///     tensor y = softsign(x);
SINTER_UNARY_FUNCTION(softsign, ops::softsign_op)

}  // namespace sinter
