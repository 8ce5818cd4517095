// sinter/ops/trunc.hpp: x without its fraction.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct trunc_op : number_op {
  static constexpr const char* name = "trunc";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::trunc(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return zero_of(g);
  }
};

}  // namespace ops

/// Rounds towards 0, elementwise; integers stay what they are. Derivative: 0.
///
///     tensor y = trunc(x);
SINTER_UNARY_FUNCTION(trunc, ops::trunc_op)

}  // namespace sinter
