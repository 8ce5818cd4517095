// sinter/ops/hardshrink.hpp: 0 near 0, the identity elsewhere.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct hardshrink_op : real_op {
  static constexpr const char* name = "hardshrink";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T lambda;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return math::select(math::abs(x) <= lambda, math::constant<V>(0), x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    return select(abs(x) <= lambda, zero_of(g), g);
  }
};

}  // namespace ops

/// 0 where |x| <= lambda, otherwise x; elementwise, floating point; NaN stays NaN. Derivative: 0, or g.
///
///     tensor y = hardshrink(x, 0.1);
template <real_expression A>
auto hardshrink(A&& x, double lambda = 0.5) {
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::hardshrink_op<T>{{}, detail::literal_value<T>(lambda)}, std::forward<A>(x));
}
SINTER_REAL_ONLY(hardshrink)

}  // namespace sinter
