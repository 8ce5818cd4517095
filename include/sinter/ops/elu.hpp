// sinter/ops/elu.hpp: the exponential linear unit.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct elu_op : real_op {
  static constexpr const char* name = "elu";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T alpha;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return math::select(x > 0, x, math::expm1(x) * alpha);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    return select(x > 0, g, g * exp(x) * alpha);
  }
};

}  // namespace ops

/// x where x > 0, otherwise alpha (e^x - 1); elementwise, floating point. Derivative: g, or alpha e^x g.
/// Clevert et al., "Fast and accurate deep network learning by exponential linear units", ICLR 2016.
///
///     tensor y = elu(x);
template <real_expression A>
auto elu(A&& x, double alpha = 1) {
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::elu_op<T>{{}, detail::literal_value<T>(alpha)}, std::forward<A>(x));
}
SINTER_REAL_ONLY(elu)

}  // namespace sinter
