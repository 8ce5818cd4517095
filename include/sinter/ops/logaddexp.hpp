// sinter/ops/logaddexp.hpp: the logarithm of a sum of exponentials.
#pragma once

#include "sinter/ops/op.hpp"
#include "sinter/ops/sigmoid.hpp"

namespace sinter {
namespace ops {

struct logaddexp_op : real_op {
  static constexpr const char* name = "logaddexp";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    const V larger = math::max(a, b), rest = math::log1p(math::exp(math::neg(math::abs(a - b))));
    return math::select(a == b, a + math::constant<V>(0.693147180559945309), larger + rest);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    if constexpr (I == 0) return g * call<sigmoid_op>(a - b);
    else return g * call<sigmoid_op>(b - a);
  }
};

}  // namespace ops

/// ln(e^a + e^b) without overflow, elementwise and broadcast, floating point. Derivative: g sigmoid(a - b) to a,
/// g sigmoid(b - a) to b.
///
///     tensor y = logaddexp(a, b);
SINTER_BINARY_FUNCTION(logaddexp, ops::logaddexp_op)

}  // namespace sinter
