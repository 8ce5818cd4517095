// sinter/ops/fmax.hpp: the larger of two operands, of which NaN does not count.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct fmax_op : number_op {
  static constexpr const char* name = "fmax";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    // NaN is the only value that differs from itself
    return math::select(a != a, b, math::select(b != b, a, math::max(a, b)));
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    const auto half = g / 2;
    const auto takes_a = logical_or(a > b, b != b);
    if constexpr (I == 0) return select(a == b, half, select(takes_a, g, zero_of(g)));
    else return select(a == b, half, select(takes_a, zero_of(g), g));
  }
};

}  // namespace ops

/// The larger of a and b, elementwise and broadcast; where one is NaN, the other; maximum(a, b) is NaN there.
/// Derivative: g to the larger, half to each where they are equal.
///
///     tensor y = fmax(a, b);
SINTER_BINARY_FUNCTION(fmax, ops::fmax_op)

}  // namespace sinter
