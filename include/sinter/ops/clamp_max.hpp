// sinter/ops/clamp_max.hpp: x limited from above.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct clamp_max_op : number_op {
  static constexpr const char* name = "clamp_max";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return math::min(a, b);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    if constexpr (I == 0) return select(a >= b, zero_of(g), g);
    else return select(a < b, zero_of(g), g);
  }
};

}  // namespace ops

/// min(x, high), elementwise and broadcast; NaN if either is. Derivative: g to x where x < high,
/// otherwise to high, and to both where one is NaN.
///
///     tensor y = clamp_max(x, 1);
SINTER_BINARY_FUNCTION(clamp_max, ops::clamp_max_op)

}  // namespace sinter
