// sinter/ops/celu.hpp: the continuously differentiable exponential linear unit.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct celu_op : real_op {
  static constexpr const char* name = "celu";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T alpha;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return math::select(x > 0, x, math::expm1(x / alpha) * alpha);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    return select(x > 0, g, g * exp(x / alpha));
  }
};

}  // namespace ops

/// x where x > 0, otherwise alpha (e^(x/alpha) - 1); elementwise, floating point. alpha must not be 0.
/// Derivative: g, or e^(x/alpha) g. Barron, "Continuously differentiable exponential linear units", 2017.
///
///     tensor y = celu(x, 0.5);
template <real_expression A>
auto celu(A&& x, double alpha = 1) {
  if (!(alpha < 0 || alpha > 0)) detail::refuse<value_error>({"celu: alpha must be a number other than 0"});
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::celu_op<T>{{}, detail::literal_value<T>(alpha)}, std::forward<A>(x));
}
SINTER_REAL_ONLY(celu)

}  // namespace sinter
