// sinter/ops/log_softmax.hpp: log-probabilities from scores.
#pragma once

#include "sinter/ops/row_op.hpp"

namespace sinter {
namespace ops {

struct log_softmax_op {
  static constexpr const char* name = "log_softmax";
  static constexpr bool saves_row_factor = false;
};

}  // namespace ops

/// x - log(sum(exp(x))) along an axis, -1 for the last; computed from the largest element. Floating point, any rank
/// from
/// 1. Derivative: g - exp(y) sum(g).
///
///     tensor lp = log_softmax(logits, 1);
template <expression E>
  requires(floating_element<element_of<E>> && rank_of<E> >= 1)
row_node<ops::log_softmax_op, detail::prologue_of<E>> log_softmax(E&& x, detail::whole axis) {
  return detail::make_row_op(ops::log_softmax_op{}, std::forward<E>(x), axis);
}

}  // namespace sinter
