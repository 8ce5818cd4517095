// sinter/ops/floor_divide.hpp: a quotient, rounded down.
#pragma once

#include "sinter/ops/fmod.hpp"

namespace sinter {
namespace ops {

struct floor_divide_op : number_op {
  static constexpr const char* name = "floor_divide";
  static constexpr unsigned grad_uses[2] = {uses::nothing, uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    // a / b may round up to the next whole number: the remainder is taken off before
    const V rest = math::fmod(a, b);
    const V quotient = math::divide(static_cast<V>(a - rest), b);
    const auto is_below = math::logical_and(rest != 0, math::logical_xor(rest < 0, b < 0));
    return math::select(b == 0, math::divide(a, b),
                        math::round(math::select(is_below, static_cast<V>(quotient - 1), quotient)));
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A&, const B&, const Y&) {
    return zero_of(g);
  }
};

}  // namespace ops

/// floor(a / b), elementwise and broadcast, also of integers, whose a / b is rounded towards 0. An integer divided by
/// zero gives 0. Derivative: 0.
///
///     tensor whole_days = floor_divide(x, 24);
SINTER_BINARY_FUNCTION(floor_divide, ops::floor_divide_op)

}  // namespace sinter
