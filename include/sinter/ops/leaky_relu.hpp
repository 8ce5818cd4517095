// sinter/ops/leaky_relu.hpp: the rectifier with a slope below 0.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct leaky_relu_op : real_op {
  static constexpr const char* name = "leaky_relu";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T slope;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return math::select(x > 0, x, x * slope);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    return select(x > 0, g, g * slope);
  }
};

}  // namespace ops

/// x where x > 0, otherwise slope x; elementwise, floating point. Derivative: g, or slope g.
/// Maas et al., "Rectifier nonlinearities improve neural network acoustic models", 2013.
///
///     tensor y = leaky_relu(x, 0.2);
template <real_expression A>
auto leaky_relu(A&& x, double slope = 0.01) {
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::leaky_relu_op<T>{{}, detail::literal_value<T>(slope)}, std::forward<A>(x));
}
SINTER_REAL_ONLY(leaky_relu)

}  // namespace sinter
