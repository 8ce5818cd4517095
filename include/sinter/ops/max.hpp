// sinter/ops/max.hpp: the largest element along axes.
#pragma once

#include "sinter/ops/equal.hpp"
#include "sinter/ops/reduction.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {
namespace ops {

struct max_op {
  static constexpr const char* name = "max";
  static constexpr bool differentiable = true;
  static constexpr bool needs_values = true;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::max_reducer<T>;
  struct seed : sinter::detail::seed_base {
    static constexpr unsigned grad_uses[3] = {uses::first | uses::second | uses::third, uses::nothing, uses::nothing};
    template <class V>
    SINTER_WORD static V apply(V value, V, V) {
      return value;
    }
    template <int I, class G, class X, class Y, class N, class R>
    SINTER_WORD static auto grad(const G& g, const X& x, const Y& extreme, const N& count, const R&) {
      return select(x == extreme, g / count, zero_of(g));
    }
  };
  template <class E, class R>
  static auto aux(const E& e, const R& result, const sinter::detail::axis_set& axes) {
    return sinter::detail::reduce_now<sum_op>(
        where(sinter::detail::untrack(e) == result, element_of<E>(1), element_of<E>(0)), axes);
  }
};

}  // namespace ops

/// The largest element of all, along one axis, or along a list of axes; with keepdim they stay with extent 1. NaN wins.
/// Derivative: g, shared equally among the elements that are largest. Throws shape_error where there are no elements.
///
///     tensor row_max = max(x, 1);
SINTER_REDUCTION(max, ops::max_op)

}  // namespace sinter
