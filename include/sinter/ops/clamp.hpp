// sinter/ops/clamp.hpp: x limited to an interval.
#pragma once

#include <limits>

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

struct clamp_op : number_op {
  static constexpr const char* name = "clamp";
  static constexpr unsigned grad_uses[3] = {uses::first | uses::second | uses::third,
                                            uses::first | uses::second | uses::third,
                                            uses::first | uses::second | uses::third};
  template <class V>
  SINTER_WORD static V apply(V a, V b, V c) {
    return math::min(math::max(a, b), c);
  }
  template <int I, class G, class A, class B, class C, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const C& c, const Y&) {
    // x == x tells that x is no NaN: where one of the three is, none loses g.
    if constexpr (I == 0)
      return select(logical_or(logical_and(a <= b, c == c), logical_and(a >= c, b == b)), zero_of(g), g);
    else if constexpr (I == 1)
      return select(logical_or(logical_and(a > b, c == c), logical_and(b >= c, a == a)), zero_of(g), g);
    else return select(logical_and(a < c, b < c), zero_of(g), g);
  }
};

}  // namespace ops

/// min(max(x, low), high), elementwise and broadcast; the limits are literals or tensors, high wins where low is above
/// it. NaN if one of them is. Derivative: g to x strictly within the limits, otherwise to the limit that is taken, and
/// to all where one is NaN.
///
///     tensor y = clamp(x, -1, 1);
SINTER_TERNARY_FUNCTION(clamp, ops::clamp_op)

// For three const operands of one type std::clamp fits as well, and better than a function of three types.
template <class A>
  requires(detail::fits<ops::clamp_op, const A&, const A&, const A&>)
auto clamp(const A& a, const A& b, const A& c) {
  return detail::make_ternary(ops::clamp_op{}, a, b, c);
}

/// `clamp(x, {.min = 0})`: limits that are named; one that is left out is none.
struct clamp_limits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
};
template <expression A>
  requires(!std::is_same_v<element_of<A>, bool>)
auto clamp(A&& x, const clamp_limits& limits) {
  using T = element_of<A>;
  const auto limit = [](double value) {
    if constexpr (floating_element<T>) return static_cast<T>(value);
    else if (value >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    else if (value <= static_cast<double>(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
    else return static_cast<T>(value);
  };
  return clamp(std::forward<A>(x), limit(limits.min), limit(limits.max));
}

}  // namespace sinter
