// sinter/ops/logsumexp.hpp: the logarithm of a sum of exponentials along axes.
#pragma once

#include "sinter/ops/detail/reduction.hpp"
#include "sinter/ops/exp.hpp"

namespace sinter {
namespace ops {

struct logsumexp_op {
  static constexpr const char* name = "logsumexp";
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = floating_element<T>;
  template <class T>
  using reducer = sinter::detail::logsumexp_reducer<T>;
  struct seed : sinter::detail::seed_base {
    static constexpr unsigned grad_uses[3] = {uses::first | uses::second, uses::nothing, uses::nothing};
    template <int I, class G, class X, class Y, class Aux, class R>
    SINTER_WORD static auto grad(const G& g, const X& x, const Y& y, const Aux&, const R&) {
      return select(y == number(g, -std::numeric_limits<double>::infinity()), zero_of(g), g * exp(x - y));
    }
  };
  template <class E, class R>
  static R aux(const E&, const R& result, const sinter::detail::axis_set&) {
    return result;
  }
};

}  // namespace ops

/// log(sum(exp(x))), computed from the largest element so that it neither overflows nor underflows; -inf of nothing.
/// Floating point. Derivative: g exp(x - y), the softmax.
///
///     tensor partition = logsumexp(energies, 1);
SINTER_REDUCTION(logsumexp, ops::logsumexp_op)

}  // namespace sinter
