// sinter/ops/clamp_min.hpp: x limited from below.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct clamp_min_op : number_op {
  static constexpr const char* name = "clamp_min";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return math::max(a, b);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    if constexpr (I == 0) return select(a <= b, zero_of(g), g);
    else return select(a > b, zero_of(g), g);
  }
};

}  // namespace ops

/// max(x, low), elementwise and broadcast; NaN if either is. Derivative: g to x where x > low,
/// otherwise to low, and to both where one is NaN.
///
///     tensor y = clamp_min(x, 0);
SINTER_BINARY_FUNCTION(clamp_min, ops::clamp_min_op)

}  // namespace sinter
