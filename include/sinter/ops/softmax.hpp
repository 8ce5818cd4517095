// sinter/ops/softmax.hpp: probabilities from scores.
#pragma once

#include "sinter/ops/row_op.hpp"

namespace sinter {
namespace ops {

struct softmax_op {
  static constexpr const char* name = "softmax";
  static constexpr bool saves_row_factor = false;
};

}  // namespace ops

/// exp(x) / sum(exp(x)) along an axis, -1 for the last; computed from the largest element, so that it never overflows.
/// Floating point, any rank from 1. A row is read once into cache together with the elementwise work that produces it.
/// Derivative: y (g - sum(g y)).
///
///     tensor p = softmax(logits, 1);
template <expression E>
  requires(floating_element<element_of<E>> && rank_of<E> >= 1)
row_node<ops::softmax_op, detail::prologue_of<E>> softmax(E&& x, detail::whole axis) {
  return detail::make_row_op(ops::softmax_op{}, std::forward<E>(x), axis);
}

}  // namespace sinter
