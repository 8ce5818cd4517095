// sinter/ops/remainder.hpp: the remainder of a division, with the sign of the divisor.
#pragma once

#include "sinter/ops/fmod.hpp"

namespace sinter {
namespace ops {

struct remainder_op : number_op {
  static constexpr const char* name = "remainder";
  static constexpr unsigned grad_uses[2] = {uses::nothing, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return math::remainder(a, b);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    if constexpr (I == 0) {
      return g;
    } else {
      const auto rest = call<fmod_op>(a, b);
      const auto toward_zero = fmod_op::quotient(a, b, rest);
      const auto is_below = logical_or(logical_and(rest < 0, b > 0), logical_and(rest > 0, b < 0));
      return -g * select(is_below, toward_zero - 1, toward_zero);
    }
  }
};

}  // namespace ops

/// a - b floor(a / b), elementwise and broadcast: the remainder with the sign of the divisor, as Python's %.
/// An integer divided by zero gives 0. Derivative: g to a, -g floor(a / b) to b.
///
///     tensor hour = remainder(x, 24);
SINTER_BINARY_FUNCTION(remainder, ops::remainder_op)

}  // namespace sinter
