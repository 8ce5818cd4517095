// sinter/ops/maximum.hpp: the larger of two operands.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct maximum_op : number_op {
  static constexpr const char* name = "maximum";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return math::max(a, b);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    const auto half = g / 2;
    if constexpr (I == 0) return select(a == b, half, select(a < b, zero_of(g), g));
    else return select(a == b, half, select(b < a, zero_of(g), g));
  }
};

}  // namespace ops

/// The larger of a and b, elementwise and broadcast; NaN if either is.
/// Derivative: g to the larger, half to each where they are equal, g to both where one is
/// NaN. max(x, axis) is the reduction.
///
///     tensor y = maximum(a, b);
SINTER_BINARY_FUNCTION(maximum, ops::maximum_op)

}  // namespace sinter
