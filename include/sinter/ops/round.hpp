// sinter/ops/round.hpp: the integer nearest to x, or the number of so many decimals, halves to the even one.
#pragma once

#include <cmath>

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

struct round_op : number_op {
  static constexpr const char* name = "round";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::round(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return zero_of(g);
  }
};

/// To multiples of 1 / scale, or of scale.
template <class T>
struct round_decimals_op : real_op {
  static constexpr const char* name = "round";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  T scale;
  bool up;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return up ? math::round(x * scale) / scale : math::round(x / scale) * scale;
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X&, const Y&) const {
    return zero_of(g);
  }
};

}  // namespace ops

/// The integer nearest to x, halves to the even one, elementwise; integers stay what they are. Derivative: 0.
///
///     tensor y = round(x);
SINTER_UNARY_FUNCTION(round, ops::round_op)

/// x rounded to so many decimals, to multiples of 10, 100, ... where there are fewer than none: the integer nearest to
/// x 10^decimals over that power, as in PyTorch. Floating point. Derivative: 0.
///
///     tensor prices = round(x, 2);
template <real_expression A>
auto round(A&& x, detail::whole decimals) {
  using T = compute_type<element_of<A>>;
  const index_t places = decimals;
  return detail::make_map(
      ops::round_decimals_op<T>{
          {}, static_cast<T>(std::pow(10., static_cast<double>(places < 0 ? -places : places))), places >= 0},
      std::forward<A>(x));
}
/// The same: `round(x, {.decimals = 2})`.
template <real_expression A>
auto round(A&& x, const round_options& o) {
  return round(std::forward<A>(x), o.decimals);
}
template <expression A, class Problem = element_type_without_this_op<element_of<A>>,
          class Fix = use_another_element_type_or_cast>
  requires(!floating_element<element_of<A>>)
void round(A&&, index_t) = delete;
template <expression A, class Problem = element_type_without_this_op<element_of<A>>,
          class Fix = use_another_element_type_or_cast>
  requires(!floating_element<element_of<A>>)
void round(A&&, const round_options&) = delete;

}  // namespace sinter
