// sinter/ops/layer_norm.hpp: rows of mean 0 and variance 1.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/row_op.hpp"

namespace sinter {
namespace ops {

struct layer_norm_op {
  static constexpr const char* name = "layer_norm";
  static constexpr bool saves_row_factor = true;
  double eps;
};

}  // namespace ops

namespace detail {

inline double checked_eps(const char* op, double eps) {
  if (!(eps >= 0) || !std::isfinite(eps))
    refuse<value_error>({op, ": eps is ", eps, "; it must be a finite number, 0 or more"});
  return eps;
}

/// A weight or bias of a normalisation has one value for each of the last axis.
template <class E, class W>
void check_row_operand(const char* op, const char* what, const E& x, const W& w) {
  check_defined(op, x);
  check_defined(op, w);
  if (w.shape()[0] != x.shape()[rank_of<E> - 1])
    refuse<shape_error>({op, ": a ", what, " of shape ", w.shape(), " for rows of x of shape ", x.shape(),
                         "; it needs one value for each of the last axis"});
}

}  // namespace detail

/// (x - mean) / sqrt(variance + eps) along the last axis, with the biased variance. Floating point, any rank from 1. A
/// row is read once into cache together with the elementwise work that produces it. With f = 1 / sqrt(variance + eps),
/// derivative: f (g - mean(g) - y mean(g y)). Ba, Kiros, Hinton, "Layer normalization", 2016. Errors: value_error for a
/// negative or non-finite eps.
///
///     tensor y = layer_norm(x);
template <expression E>
  requires(floating_element<element_of<E>> && rank_of<E> >= 1)
row_node<ops::layer_norm_op, detail::prologue_of<E>> layer_norm(E&& x, double eps = 1e-5) {
  return detail::make_row_op(ops::layer_norm_op{detail::checked_eps("layer_norm", eps)}, std::forward<E>(x), -1);
}

/// layer_norm(x, eps) * weight + bias, both of one value for each of the last axis. Without gradients one pass. Errors:
/// shape_error for a weight or bias of another length.
///
///     tensor y = layer_norm(x, gain, bias);
template <expression E, expression W, expression B>
  requires(floating_element<element_of<E>> && rank_of<E> >= 1 && rank_of<W> == 1 && rank_of<B> == 1)
auto layer_norm(E&& x, W&& weight, B&& bias, double eps = 1e-5) {
  detail::check_row_operand("layer_norm", "weight", x, weight);
  detail::check_row_operand("layer_norm", "bias", x, bias);
  return layer_norm(std::forward<E>(x), eps) * std::forward<W>(weight) + std::forward<B>(bias);
}

}  // namespace sinter
