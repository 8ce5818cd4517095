// sinter/ops/fmod.hpp: the remainder of a division, with the sign of the dividend.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct fmod_op : number_op {
  static constexpr const char* name = "fmod";
  static constexpr unsigned grad_uses[2] = {uses::nothing, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return math::fmod(a, b);
  }
  /// trunc(a / b), where `rest` = fmod(a, b): a / b itself may round up to the next whole number.
  template <class A, class B, class R>
  SINTER_WORD static auto quotient(const A& a, const B& b, const R& rest) {
    return round(a / b - rest / b);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    if constexpr (I == 0) return g;
    else return -g * quotient(a, b, call<fmod_op>(a, b));
  }
};

}  // namespace ops

/// a - b trunc(a / b), elementwise and broadcast: the remainder with the sign of the dividend, as in C.
/// An integer divided by zero gives 0. Derivative: g to a, -g trunc(a / b) to b.
///
///     tensor y = fmod(x, 2);
SINTER_BINARY_FUNCTION(fmod, ops::fmod_op)

}  // namespace sinter
