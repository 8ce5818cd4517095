// sinter/ops/round.hpp: the integer nearest to x, halves to the even one.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct round_op : number_op {
  static constexpr const char* name = "round";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::round(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return zero_of(g);
  }
};

}  // namespace ops

/// The integer nearest to x, halves to the even one, elementwise; integers stay what they are. Derivative: 0.
///
///     tensor y = round(x);
SINTER_UNARY_FUNCTION(round, ops::round_op)

}  // namespace sinter
