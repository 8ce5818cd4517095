// sinter/ops/layer_norm.hpp: rows of mean 0 and variance 1.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/row_op.hpp"

namespace sinter {

struct use_weights_of_rank_1;

namespace ops {

/// What the gradients of layer_norm and rms_norm are, with the mean of g taken off or not.
template <class Row, class C>
SINTER_WORD void reverse_norm(const Row& r, C mean) {
  const auto y = r.result(), g = r.gradient();
  const C slope = r.sum(over(y, g, [](auto a, auto b) SINTER_INLINE_LAMBDA { return a * b; })) / r.count(),
          factor = r.saved();
  r.put(over(y, g, [=](auto a, auto b) SINTER_INLINE_LAMBDA { return factor * (b - mean - a * slope); }));
}

struct layer_norm_op : row_op {
  static constexpr const char* name = "layer_norm";
  static constexpr bool saves_row_factor = true;
  double eps;
  layer_norm_op(int along, double e) : row_op(along), eps(e) {}

  template <class Row>
  SINTER_WORD auto forward(const Row& r) const {
    using C = typename Row::value_type;
    const auto x = r.keep(r.x());
    const C mean = mean_of(r, x);
    return r.finish(x, {.shift = mean, .scale = root_mean_square_factor(r, x, mean, static_cast<C>(eps))});
  }
  template <class Row>
  SINTER_WORD void reverse(const Row& r) const {
    reverse_norm(r, r.sum(r.gradient()) / r.count());
  }
};

}  // namespace ops

namespace detail {

inline double checked_eps(const char* op, double eps) {
  if (!(eps >= 0) || !std::isfinite(eps))
    refuse<value_error>({op, ": eps is ", eps, "; it must be a finite number, 0 or more"});
  return eps;
}

/// fitting<T>, or what is wrong with the weights W of a normalisation of X along its last axis.
template <class X, class... W>
constexpr auto find_row_operand_mistake() {
  if constexpr (!(expression<W> && ...)) return not_operands{};
  else if constexpr (!std::is_same_v<operand_check<X, W...>, fitting<element_of<X>>>) return operand_check<X, W...>{};
  else if constexpr (((rank_of<W> != 1) || ...))
    return mistake<operands_of_ranks<rank_of<X>, rank_of<W>...>, use_weights_of_rank_1>{};
  else return fitting<element_of<X>>{};
}
template <class X, class... W>
using row_operand_mistake = decltype(find_row_operand_mistake<bare<X>, bare<W>...>());

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
template <class E>
  requires detail::takes_operands<ops::layer_norm_op, E>
detail::kernel_of<ops::layer_norm_op, E> layer_norm(E&& x, double eps = 1e-5) {
  return detail::make_kernel(ops::layer_norm_op(rank_of<E> - 1, detail::checked_eps("layer_norm", eps)),
                             std::forward<E>(x));
}

/// layer_norm(x, eps) * weight + bias, both of one value for each of the last axis. Without gradients one pass. Errors:
/// shape_error for a weight or bias of another length.
///
///     tensor y = layer_norm(x, gain, bias);
template <class E, class W, class B>
  requires(detail::takes_operands<ops::layer_norm_op, E> && detail::is_fitting<detail::row_operand_mistake<E, W, B>>)
auto layer_norm(E&& x, W&& weight, B&& bias, double eps = 1e-5) {
  detail::check_row_operand("layer_norm", "weight", x, weight);
  detail::check_row_operand("layer_norm", "bias", x, bias);
  return layer_norm(std::forward<E>(x), eps) * std::forward<W>(weight) + std::forward<B>(bias);
}
SINTER_KERNEL_REJECTIONS(layer_norm, ops::layer_norm_op)
template <class E, class W, class B, class Problem = typename detail::row_operand_mistake<E, W, B>::problem,
          class Fix = typename detail::row_operand_mistake<E, W, B>::fix>
  requires detail::takes_operands<ops::layer_norm_op, E>
void layer_norm(E&&, W&&, B&&, double = 0) = delete;

}  // namespace sinter
