// sinter/ops/threshold.hpp: x above a limit, a constant up to it.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct threshold_op : real_op {
  static constexpr const char* name = "threshold";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T limit;
  T value;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return math::select(x <= limit, math::constant<V>(value), x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    return select(x <= limit, zero_of(g), g);
  }
};

}  // namespace ops

/// x where x > limit, otherwise value; elementwise, floating point; NaN stays NaN. Derivative: g, or 0.
///
///     tensor y = threshold(x, 0.1, 20);
template <real_expression A>
auto threshold(A&& x, double limit, double value) {
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::threshold_op<T>{{}, detail::literal_value<T>(limit), detail::literal_value<T>(value)},
                          std::forward<A>(x));
}
SINTER_REAL_ONLY(threshold)

}  // namespace sinter
