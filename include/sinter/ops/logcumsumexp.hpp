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

struct logcumsumexp_op {
  static constexpr const char* name = "logcumsumexp";
  static constexpr bool keeps_operands = true;
  template <class T>
  static constexpr bool accepts = std::is_floating_point_v<T>;
  template <class T>
  using reducer = sinter::detail::running_logsumexp_reducer<T>;
  // exp(x[k]) times the sum of g exp(-y) from k on; positive and negative g apart, each as a logarithm.
  template <class Tensor>
  static Tensor grad(const Tensor& g, const Tensor& x, const Tensor& y, int axis) {
    constexpr auto nothing = -std::numeric_limits<element_of<Tensor>>::infinity();
    const auto part = [&](const Tensor& h) {
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
  requires detail::scannable<ops::logcumsumexp_op, E>
scan_expr<ops::logcumsumexp_op, detail::prologue_of<E>> logcumsumexp(E&& x, detail::whole axis) {
  return detail::make_scan<ops::logcumsumexp_op>(std::forward<E>(x), axis);
}
SINTER_LINES_REJECTIONS(logcumsumexp)
SINTER_AXIS_REJECTION(logcumsumexp)
SINTER_REAL_ONLY(logcumsumexp)

}  // namespace sinter
