// sinter/ops/softmax.hpp: probabilities from scores.
#pragma once

#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/row_op.hpp"

namespace sinter {
namespace ops {

struct softmax_op : row_op {
  static constexpr const char* name = "softmax";
  using row_op::row_op;

  template <class Row>
  SINTER_WORD auto forward(const Row& r) const {
    if constexpr (!Row::always_keeps) {
      if (!r.keeps()) {
        const auto s = r.sum_of_exp(r.x());
        return r.finish(over(r.x(), [shift = s.shift](auto a) SINTER_INLINE_LAMBDA { return math::exp(a - shift); }),
                        {.scale = 1 / s.sum});
      }
    }
    const auto x = r.keep(r.x());
    const auto shift = row_shift(r.max(x));
    const auto e = r.keep_and_sum(over(x, [shift](auto a) SINTER_INLINE_LAMBDA { return math::exp(a - shift); }));
    return r.finish(e.values, {.scale = 1 / e.sum});
  }
  template <class Row>
  SINTER_WORD void reverse(const Row& r) const {
    const auto y = r.result(), g = r.gradient();
    const auto dot = r.sum(over(y, g, [](auto a, auto b) SINTER_INLINE_LAMBDA { return a * b; }));
    r.put(over(y, g, [dot](auto a, auto b) SINTER_INLINE_LAMBDA { return a * (b - dot); }));
  }
};

}  // namespace ops

/// exp(x) / sum(exp(x)) along an axis, -1 for the last; computed from the largest element, so that it never overflows.
/// Floating point, any rank from 1. A row is read once into cache together with the elementwise work that produces it.
/// Derivative: y (g - sum(g y)).
///
///     tensor p = softmax(logits, 1);
template <class E>
  requires detail::takes_operands<ops::softmax_op, E>
detail::kernel_of<ops::softmax_op, E> softmax(E&& x, detail::whole axis) {
  return detail::make_kernel(ops::softmax_op(detail::checked_axis("softmax", axis, rank_of<E>)), std::forward<E>(x));
}
SINTER_KERNEL_REJECTIONS(softmax, ops::softmax_op)
SINTER_AXIS_REJECTION(softmax)

}  // namespace sinter
