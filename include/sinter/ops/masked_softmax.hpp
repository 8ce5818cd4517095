// sinter/ops/masked_softmax.hpp: softmax of some elements, of the negative, and of the largest alone.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/ops/argmax.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/log_softmax.hpp"
#include "sinter/ops/negate.hpp"
#include "sinter/ops/softmax.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {
namespace detail {

/// x, and -inf where the mask is false.
template <class X, class M>
auto where_masked(X&& x, M&& mask) {
  return where(std::forward<M>(mask), std::forward<X>(x), -std::numeric_limits<double>::infinity());
}
template <class X, class M, class Op>
concept takes_mask_beside = takes_operands<Op, X> && can_choose<bare<M>, bare<X>, double>;

}  // namespace detail

/// The softmax along an axis of the elements at which a mask of bool, which broadcasts, is true; 0 elsewhere. NaN along
/// lines without such an element, as PyTorch's torch.masked.softmax. Derivative: that of softmax.
///
///     tensor p = masked_softmax(logits, is_word, -1);
template <class X, class M>
  requires(detail::takes_mask_beside<X, M, ops::softmax_op>)
auto masked_softmax(X&& x, M&& mask, detail::whole axis) {
  return softmax(detail::where_masked(std::forward<X>(x), std::forward<M>(mask)), axis);
}
/// The logarithm of masked_softmax; -inf where the mask is false.
///
///     tensor logarithms = masked_log_softmax(logits, is_word, -1);
template <class X, class M>
  requires(detail::takes_mask_beside<X, M, ops::log_softmax_op>)
auto masked_log_softmax(X&& x, M&& mask, detail::whole axis) {
  return log_softmax(detail::where_masked(std::forward<X>(x), std::forward<M>(mask)), axis);
}

/// softmax(-x) along an axis.
///
///     tensor p = softmin(energies, 1);
template <class X>
  requires detail::takes_operands<ops::softmax_op, X>
auto softmin(X&& x, detail::whole axis) {
  return softmax(-std::forward<X>(x), axis);
}

/// 1 at the first largest element along an axis, 0 elsewhere; of x's type. Runs at once. No derivative. Errors:
/// shape_error where the axis has no elements.
///
///     tensor choice = hardmax(logits, 1);
template <class X>
  requires detail::takes_operands<ops::softmax_op, X>
auto hardmax(const X& x, detail::whole axis) {
  detail::check_defined("hardmax", x);
  const int a = detail::checked_axis("hardmax", axis, rank_of<X>);
  auto line = detail::ones_extents<rank_of<X>>();
  line[a] = x.shape()[a];
  const auto places = arange<std::int64_t, device_of<X>>(x.shape()[a]).reshape(line.values);
  return eval(cast<element_of<X>>(places == argmax(x, a, keepdim)));
}

#define SINTER_MASK_REJECTIONS(name)                                                                 \
  template <class X, class M, class Problem = typename detail::where_mistake<M, X, double>::problem, \
            class Fix = typename detail::where_mistake<M, X, double>::fix>                           \
  void name(X&&, M&&, index_t) = delete;
SINTER_MASK_REJECTIONS(masked_softmax)
SINTER_MASK_REJECTIONS(masked_log_softmax)
#undef SINTER_MASK_REJECTIONS
SINTER_OPERAND_REJECTIONS(softmin, ops::softmax_op)
SINTER_OPERAND_REJECTIONS(hardmax, ops::softmax_op)

}  // namespace sinter
