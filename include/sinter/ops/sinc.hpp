// sinter/ops/sinc.hpp: the sine of pi x over pi x.
#pragma once

#include "sinter/ops/abs.hpp"
#include "sinter/ops/cos.hpp"
#include "sinter/ops/round.hpp"
#include "sinter/ops/sin.hpp"

namespace sinter {
namespace ops {

struct sinc_op : real_op {
  static constexpr const char* name = "sinc";
  static constexpr unsigned grad_uses[1] = {uses::first | uses::result};
  static constexpr double pi = 3.14159265358979324;

  template <class V>
  SINTER_WORD static V apply(V x) {
    const V nearest = math::round(x), odd = nearest - 2 * math::round(nearest / 2);
    const V sine = math::sin((x - nearest) * math::constant<V>(pi));  // x - nearest is exact
    const V y = math::select(odd == 0, sine, math::neg(sine)) / (x * math::constant<V>(pi));
    return math::select(x == 0, math::constant<V>(1), y);
  }
  // (cos(pi x) - y) / x, whose terms cancel near 0: there the series of (t cos t - sin t) / t^2 at t = pi x, times pi.
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y& y) {
    const auto t = x * number(g, pi);
    const auto u = t * t;
    const auto series = 1 - u / 10 * (1 - u / 28 * (1 - u / 54 * (1 - u / 88 * (1 - u / 130))));
    const auto turned = x - 2 * round(x / 2);
    const auto direct = (cos(turned * number(g, pi)) - y) / x;
    return g * select(abs(t) < number(g, 0.5), t * number(g, -pi / 3) * series, direct);
  }
};

}  // namespace ops

/// sin(pi x) / (pi x), 1 at 0, elementwise, floating point. Derivative: g (cos(pi x) - y) / x, 0 at 0.
///
///     tensor kernel = sinc(x);
SINTER_UNARY_FUNCTION(sinc, ops::sinc_op)

}  // namespace sinter
