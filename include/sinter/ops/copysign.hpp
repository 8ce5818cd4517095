// sinter/ops/copysign.hpp: copysign and signbit, the sign of a number.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct copysign_op : real_op {
  static constexpr const char* name = "copysign";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::result, uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return math::copysign(a, b);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B&, const Y& y) {
    if constexpr (I == 0) return select(a == 0, zero_of(g), select(a == y, g, -g));
    else return zero_of(g);
  }
};

struct signbit_op : order_op {
  static constexpr const char* name = "signbit";
  template <class V>
  SINTER_WORD static auto apply(V x) {
    if constexpr (math::real<math::element_t<V>>) return math::copysign(math::constant<V>(1), x) < 0;
    else return x < math::constant<V>(0);
  }
};

}  // namespace ops

/// |a| with the sign of b, which zeros and NaN have too; elementwise and broadcast, floating point. Derivative: g to a
/// where the sign is that of a, otherwise -g, and 0 where a is 0; none to b.
///
///     tensor y = copysign(x, direction);
SINTER_BINARY_FUNCTION(copysign, ops::copysign_op)

/// Whether the sign is that of negative numbers, which -0 and some NaN have too; elementwise, a mask of bool without
/// derivative.
///
///     tensor mask = signbit(x);
SINTER_UNARY_FUNCTION(signbit, ops::signbit_op)

}  // namespace sinter
