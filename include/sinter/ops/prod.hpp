// sinter/ops/prod.hpp: the product along axes.
#pragma once

#include "sinter/ops/divide.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/reduction.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {
namespace ops {

struct prod_op {
  static constexpr const char* name = "prod";
  static constexpr bool differentiable = true;
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::prod_reducer<T>;
  struct seed : sinter::detail::seed_base {
    static constexpr unsigned grad_uses[3] = {uses::first | uses::second | uses::third, uses::nothing, uses::nothing};
    template <class V>
    SINTER_WORD static V apply(V value, V, V) {
      return value;
    }
    /// `others`: the product of the elements that are not 0 where exactly one is, otherwise 0.
    template <int I, class G, class X, class Y, class O, class R>
    SINTER_WORD static auto grad(const G& g, const X& x, const Y& product, const O& others, const R&) {
      return select(x == 0, g * others, g * product / x);
    }
  };
  template <class E, class R>
  static auto aux(const E& e, const R&, const sinter::detail::axis_set& axes) {
    using T = element_of<E>;
    const auto zeros = sinter::detail::reduce_now<sum_op>(where(sinter::detail::untrack(e) == T(0), T(1), T(0)), axes);
    const auto others = sinter::detail::reduce_now<prod_op>(
        where(sinter::detail::untrack(e) == T(0), T(1), sinter::detail::untrack(e)), axes);
    return eval(where(zeros == T(1), others, T(0)));
  }
};

}  // namespace ops

/// The product of all elements, along one axis, or along a list of axes; with keepdim they stay with extent 1. Integers
/// and bool multiply to int64. Derivative: g times the product of the other elements, zeros included.
///
///     tensor volume = prod(extents, 1);
SINTER_REDUCTION(prod, ops::prod_op)

}  // namespace sinter
