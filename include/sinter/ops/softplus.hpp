// sinter/ops/softplus.hpp: a smooth rectifier.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct softplus_op : real_op {
  static constexpr const char* name = "softplus";
  static constexpr unsigned grad_uses[1] = {uses::first | uses::result};
  T beta;
  T threshold;

  template <class V>
  SINTER_WORD V apply(V x) const {
    const V t = x * beta;
    const V smooth = math::max(t, math::constant<V>(0)) + math::log1p(math::exp(math::neg(math::abs(t))));
    return math::select(t > threshold, x, smooth / beta);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y& y) const {
    return select(x * beta > threshold, g, -g * expm1(-(y * beta)));  // 1 - e^-ln(1 + e^t) = sigmoid(t)
  }
};

}  // namespace ops

/// ln(1 + e^(beta x)) / beta, elementwise, floating point; x itself where beta x > threshold. beta must not be 0.
/// No overflow. Derivative: g / (1 + e^(-beta x)), computed from y.
///
///     tensor y = softplus(x);
template <real_expression A>
auto softplus(A&& x, double beta = 1, double threshold = 20) {
  if (!(beta < 0 || beta > 0)) detail::refuse<value_error>({"softplus: beta must be a number other than 0"});
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::softplus_op<T>{{}, detail::literal_value<T>(beta), detail::literal_value<T>(threshold)},
                          std::forward<A>(x));
}
SINTER_REAL_ONLY(softplus)

}  // namespace sinter
