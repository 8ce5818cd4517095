// sinter/ops/logit.hpp: the inverse of the logistic function.
#pragma once

#include <limits>

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

struct logit_op : real_op {
  static constexpr const char* name = "logit";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    // With m the smaller of x and 1 - x, which is exact, |logit| = ln((1 - m) / m) = ln(1 + (1 - 2m) / m). + 0 is for
    // -0. Below 2^-100 m is scaled, so that its reciprocal is finite.
    const V m = math::min(x, 1 - x) + math::constant<V>(0.0);
    const auto tiny = math::abs(m) < math::constant<V>(0x1p-100);
    const V side = x - math::constant<V>(0.5);
    if (!math::any(tiny)) return math::copysign(math::log1p((1 - m * 2) / m), side);
    const V size = math::log1p((1 - m * 2) / math::select(tiny, m * math::constant<V>(0x1p64), m));
    return math::copysign(math::select(tiny, size + math::constant<V>(44.3614195558364998), size), side);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return select(logical_or(x < 0, x > 1), number(g, std::numeric_limits<double>::quiet_NaN()), g / (x * (1 - x)));
  }
};

template <class T>
struct limited_logit_op : real_op {
  static constexpr const char* name = "logit";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T eps;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return logit_op::apply(math::min(math::max(x, eps), 1 - eps));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    return select(logical_or(x < eps, x > 1 - eps), zero_of(g), g / (x * (1 - x)));
  }
};

}  // namespace ops

/// ln(x / (1 - x)), elementwise, floating point: the inverse of sigmoid. -inf at 0, inf at 1, NaN outside [0, 1].
/// Derivative: g / (x (1 - x)), NaN where the value is.
///
///     tensor logits = logit(p);
SINTER_UNARY_FUNCTION(logit, ops::logit_op)

/// The same of x limited to [eps, 1 - eps], so that the result is finite; the derivative is 0 outside. eps lies in
/// [0, 0.5].
///
///     tensor logits = logit(p, 1e-6);
template <real_expression A>
auto logit(A&& x, double eps) {
  if (!(eps >= 0 && eps <= 0.5)) detail::refuse<value_error>({"logit: eps must lie in [0, 0.5]"});
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::limited_logit_op<T>{{}, detail::literal_value<T>(eps)}, std::forward<A>(x));
}

}  // namespace sinter
