// sinter/ops/logaddexp.hpp: logaddexp and logaddexp2, the logarithm of a sum of powers of e or 2.
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

struct logaddexp2_op : real_op {
  static constexpr const char* name = "logaddexp2";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first | uses::second};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    const V rest = math::log1p(math::exp2(math::neg(math::abs(a - b)))) * math::constant<V>(1.44269504088896341);
    return math::select(a == b, a + math::constant<V>(1), math::max(a, b) + rest);
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y&) {
    const auto ln2 = number(g, 0.693147180559945309);
    if constexpr (I == 0) return g * call<sigmoid_op>((a - b) * ln2);
    else return g * call<sigmoid_op>((b - a) * ln2);
  }
};

}  // namespace ops

/// ln(e^a + e^b) without overflow, elementwise and broadcast, floating point. Derivative: g sigmoid(a - b) to a,
/// g sigmoid(b - a) to b.
///
///     tensor y = logaddexp(a, b);
SINTER_BINARY_FUNCTION(logaddexp, ops::logaddexp_op)

/// log2(2^a + 2^b), likewise. Derivative: g 2^a / (2^a + 2^b) to a, g 2^b / (2^a + 2^b) to b.
///
///     tensor y = logaddexp2(a, b);
SINTER_BINARY_FUNCTION(logaddexp2, ops::logaddexp2_op)

}  // namespace sinter
