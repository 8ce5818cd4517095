// sinter/ops/rms_norm.hpp: rows of mean square 1.
#pragma once

#include "sinter/ops/layer_norm.hpp"

namespace sinter {
namespace ops {

struct rms_norm_op {
  static constexpr const char* name = "rms_norm";
  static constexpr bool saves_row_factor = true;
  double eps;
};

}  // namespace ops

/// x / sqrt(mean(x^2) + eps) along the last axis. Floating point, any rank from 1. A row is read once into cache
/// together with the elementwise work that produces it. With f = 1 / sqrt(mean(x^2) + eps), derivative: f (g - y mean(g
/// y)). Zhang, Sennrich, "Root mean square layer normalization", 2019. Errors: value_error for a negative or non-finite
/// eps.
///
///     tensor y = rms_norm(x);
template <expression E>
  requires(floating_element<element_of<E>> && rank_of<E> >= 1)
row_node<ops::rms_norm_op, detail::prologue_of<E>> rms_norm(E&& x, double eps = 1e-6) {
  return detail::make_row_op(ops::rms_norm_op{detail::checked_eps("rms_norm", eps)}, std::forward<E>(x), -1);
}

/// rms_norm(x, eps) * weight, of one value for each of the last axis. Without gradients one pass. Errors: shape_error
/// for a weight of another length.
///
///     tensor y = rms_norm(x, gain);
template <expression E, expression W>
  requires(floating_element<element_of<E>> && rank_of<E> >= 1 && rank_of<W> == 1)
auto rms_norm(E&& x, W&& weight, double eps = 1e-6) {
  detail::check_row_operand("rms_norm", "weight", x, weight);
  return rms_norm(std::forward<E>(x), eps) * std::forward<W>(weight);
}

}  // namespace sinter
