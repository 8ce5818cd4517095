// sinter/ops/tanhshrink.hpp: x less its hyperbolic tangent.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct tanhshrink_op : real_op {
  static constexpr const char* name = "tanhshrink";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    const V by_series = x * near_zero(x * x);
    return math::select(math::abs(x) < 1, by_series, x - math::tanh(x));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    const auto t = tanh(x);
    return g * t * t;
  }

 private:
  /// 1 - tanh(x) / x for t = x^2 up to 1, of Lambert's fraction tanh(x) / x = 1 / (1 + t / (3 + t / (5 + ...))): with p
  /// / q for 3 + t / (5 + ...) it is t q / (p + t q), in which nothing cancels. It is cut at t / 19, in float at t /
  /// 11, which leaves 2^-62 and 2^-29.
  template <class V>
  SINTER_WORD static V near_zero(V t) {
    constexpr int last = sizeof(math::element_t<V>) == 4 ? 11 : 19;
    V p = last - 2 + t / last, q = math::constant<V>(1);
    for (int c = last - 4; c >= 3; c -= 2) {
      const V next = p * math::constant<V>(c) + t * q;
      q = p;
      p = next;
    }
    return t * q / (p + t * q);
  }
};

}  // namespace ops

/// x - tanh(x), elementwise, floating point. Derivative: g tanh(x)^2.
///
///     tensor y = tanhshrink(x);
SINTER_UNARY_FUNCTION(tanhshrink, ops::tanhshrink_op)

}  // namespace sinter
