// sinter/ops/softshrink.hpp: shrinkage towards 0.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct softshrink_op : real_op {
  static constexpr const char* name = "softshrink";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T lambda;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return x - math::min(math::max(x, math::neg(lambda)), lambda);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    return select(abs(x) <= lambda, zero_of(g), g);
  }
};

}  // namespace ops

/// x - lambda above lambda, x + lambda below -lambda, 0 between; elementwise, floating point; NaN stays NaN.
/// Derivative: 0 in [-lambda, lambda], otherwise g. lambda must not be negative.
///
///     tensor y = softshrink(x, 0.1);
template <real_expression A>
auto softshrink(A&& x, double lambda = 0.5) {
  if (!(lambda >= 0)) detail::refuse<value_error>({"softshrink: lambda must not be negative"});
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::softshrink_op<T>{{}, detail::literal_value<T>(lambda)}, std::forward<A>(x));
}
SINTER_REAL_ONLY(softshrink)

}  // namespace sinter
