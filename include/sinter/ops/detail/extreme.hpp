// sinter/ops/detail/extreme.hpp: what max and min have in common: their derivative.
#pragma once

#include "sinter/ops/detail/reduction.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {
namespace ops {

/// Is x the extreme element, or one of those that are? NaN is where there is one.
struct wins_op : predicate_op {
  static constexpr const char* name = "wins";
  template <class V>
  SINTER_WORD static auto apply(V x, V extreme) {
    return math::logical_or(x == extreme, x != x);
  }
};

struct extreme_op {
  static constexpr bool needs_values = true;
  template <class T>
  static constexpr bool accepts = true;

  struct seed : sinter::detail::seed_base {
    static constexpr unsigned grad_uses[3] = {uses::first | uses::second | uses::third, uses::nothing, uses::nothing};
    template <int I, class G, class X, class Y, class N, class R>
    SINTER_WORD static auto grad(const G& g, const X& x, const Y& extreme, const N& count, const R&) {
      return select(wins_op::apply(x, extreme), g / count, zero_of(g));
    }
  };
  /// How many elements share the gradient.
  template <class E, class R>
  static auto aux(const E& e, const R& result, const sinter::detail::axis_set& axes) {
    const auto winner = sinter::detail::make_map(wins_op{}, sinter::detail::untrack(e), result);
    return sinter::detail::reduce_now<sum_op>(where(winner, element_of<E>(1), element_of<E>(0)), axes);
  }
};

}  // namespace ops
}  // namespace sinter
