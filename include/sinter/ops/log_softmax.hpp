// sinter/ops/log_softmax.hpp: log-probabilities from scores.
#pragma once

#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/row_op.hpp"

namespace sinter {
namespace ops {

struct log_softmax_op : row_op {
  static constexpr const char* name = "log_softmax";
  using row_op::row_op;

  template <class Row>
  SINTER_WORD auto forward(const Row& r) const {
    const auto x = r.keep(r.x());
    const auto s = r.sum_of_exp(x);
    return r.finish(x, {.shift = s.shift, .rest = math::log(s.sum)});
  }
  template <class Row>
  SINTER_WORD void reverse(const Row& r) const {
    const auto y = r.result(), g = r.gradient();
    const auto total = r.sum(g);
    r.put(over(y, g, [total](auto a, auto b) SINTER_INLINE_LAMBDA { return b - math::exp(a) * total; }));
  }
};

}  // namespace ops

/// x - log(sum(exp(x))) along an axis, -1 for the last; computed from the largest element. Floating point, any rank
/// from
/// 1. Derivative: g - exp(y) sum(g).
///
///     tensor lp = log_softmax(logits, 1);
template <class E>
  requires detail::takes_operands<ops::log_softmax_op, E>
detail::kernel_of<ops::log_softmax_op, E> log_softmax(E&& x, detail::whole axis) {
  return detail::make_kernel(ops::log_softmax_op(detail::checked_axis("log_softmax", axis, rank_of<E>)),
                             std::forward<E>(x));
}
SINTER_KERNEL_REJECTIONS(log_softmax, ops::log_softmax_op)
SINTER_AXIS_REJECTION(log_softmax)

}  // namespace sinter
