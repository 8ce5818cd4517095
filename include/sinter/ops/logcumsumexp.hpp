// sinter/ops/logcumsumexp.hpp: the logarithms of running sums of exponentials.
#pragma once

#include "sinter/ops/abs.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/detail/scan.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/exp.hpp"
#include "sinter/ops/greater.hpp"
#include "sinter/ops/log.hpp"
#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/negate.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {
namespace ops {

struct logcumsumexp_op : scan_op {
  static constexpr const char* name = "logcumsumexp";
  static constexpr unsigned grad_uses[1] = {uses::first | uses::result};
  template <class T>
  using reducer = sinter::detail::running_logsumexp_reducer<T>;
  template <class T, class...>
  using result = typename reducer<T>::result;
  using scan_op::scan_op;
  template <class X>
  static constexpr auto mistake() {
    using T = element_of<X>;
    if constexpr (!sinter::detail::takes_lines<X> || std::is_floating_point_v<T>) return scan_op::mistake<X>();
    else return sinter::detail::mistake<element_type_without_this_op<T>, use_another_element_type_or_cast>{};
  }

  // exp(x[k]) times the sum of g exp(-y) from k on; positive and negative g apart, each as a logarithm.
  template <int I, class G, class X>
  G grad(const G& g, const X& operand, const G& y) const {
    constexpr auto nothing = -std::numeric_limits<element_of<G>>::infinity();
    const G x = eval(operand);
    const auto part = [&](const G& h) {
      const auto late = h.flip(axis), of = y.flip(axis);
      const auto terms = where(late > 0 && of != nothing, log(where(late > 0, late, 1)) - of, nothing);
      return sinter::detail::scan_now<logcumsumexp_op>(terms, axis).flip(axis);
    };
    return where(x == nothing, 0, exp(x + part(g)) - exp(x + part(eval(-g))));
  }
};

}  // namespace ops

/// y[i] = log(exp(x[0]) + ... + exp(x[i])) along an axis, -1 for the last, without overflow. Float and double.
/// Derivative: exp(x[k]) times the sum of g exp(-y) from k on; 0 where x is -inf.
///
///     tensor evidence = logcumsumexp(energies, 1);
template <expression E>
  requires detail::takes_operands<ops::logcumsumexp_op, E>
detail::kernel_of<ops::logcumsumexp_op, E> logcumsumexp(E&& x, detail::whole axis) {
  return detail::make_scan<ops::logcumsumexp_op>(std::forward<E>(x), axis);
}
SINTER_KERNEL_REJECTIONS(logcumsumexp, ops::logcumsumexp_op)
SINTER_AXIS_REJECTION(logcumsumexp)

}  // namespace sinter
