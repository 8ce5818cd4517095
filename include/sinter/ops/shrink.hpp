// sinter/ops/shrink.hpp: 0 near 0, elsewhere moved towards 0.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct shrink_op : real_op {
  static constexpr const char* name = "shrink";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T lambda, bias;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return math::select(x > lambda, x - bias, math::select(x < math::neg(lambda), x + bias, x * 0));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    return select(abs(x) <= lambda, zero_of(g), g);
  }
};

}  // namespace ops

/// x - bias above lambda, x + bias below -lambda, 0 between, as ONNX' Shrink; elementwise, floating point; NaN stays
/// NaN. With bias 0 it is hardshrink, with bias lambda softshrink. Derivative: 0 in [-lambda, lambda], otherwise g.
///
///     tensor y = shrink(x, 1.5, 0.5);
template <real_expression A>
auto shrink(A&& x, double lambda = 0.5, double bias = 0) {
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::shrink_op<T>{{}, detail::literal_value<T>(lambda), detail::literal_value<T>(bias)},
                          std::forward<A>(x));
}
SINTER_REAL_ONLY(shrink)

}  // namespace sinter
