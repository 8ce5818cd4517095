// sinter/ops/rms_norm.hpp: rows of mean square 1.
#pragma once

#include "sinter/ops/layer_norm.hpp"

namespace sinter {
namespace ops {

struct rms_norm_op : last_axes_op {
  static constexpr const char* name = "rms_norm";
  static constexpr bool saves_row_factor = true;
  double eps;
  rms_norm_op(int first, double e) : last_axes_op(first), eps(e) {}

  template <class Row>
  SINTER_WORD auto forward(const Row& r) const {
    using C = typename Row::value_type;
    const auto x = r.keep(r.x());
    return r.finish(x, {.scale = root_mean_square_factor(r, x, C(0), math::constant<C>(eps))});
  }
  template <class Row>
  SINTER_WORD void reverse(const Row& r) const {
    reverse_norm(r, typename Row::value_type(0));
  }
};

}  // namespace ops

/// x / sqrt(mean(x^2) + eps) along the last axis, with eps 1e-6. Floating point, any rank from 1. A
/// row is read once into cache together with the elementwise work that produces it. With f = 1 / sqrt(mean(x^2) + eps),
/// derivative: f (g - y mean(g y)). Zhang, Sennrich, "Root mean square layer normalization", 2019. Errors: value_error
/// for a negative or non-finite eps.
///
///     tensor y = rms_norm(x);
template <class E>
  requires detail::takes_operands<ops::rms_norm_op, E>
detail::kernel_of<ops::rms_norm_op, E> rms_norm(E&& x) {
  return detail::normalise_rows<ops::rms_norm_op>(rank_of<E> - 1, std::forward<E>(x), 1e-6);
}
/// The same with another eps.
template <class E, class Eps>
  requires(detail::takes_operands<ops::rms_norm_op, E> && std::is_arithmetic_v<Eps>)
detail::kernel_of<ops::rms_norm_op, E> rms_norm(E&& x, Eps eps) {
  return detail::normalise_rows<ops::rms_norm_op>(rank_of<E> - 1, std::forward<E>(x), static_cast<double>(eps));
}

/// The same along the last axes, of which `shape` has the extents, as PyTorch's normalized_shape: in braces, or the
/// shape of another tensor. Errors: shape_error where x has other last axes.
///
///     tensor y = rms_norm(x, {2, 3});  // rows of 6 elements
template <class E>
  requires detail::takes_operands<ops::rms_norm_op, E>
detail::kernel_of<ops::rms_norm_op, E> rms_norm(E&& x, const detail::row_extents& shape, double eps = 1e-6) {
  const int first = shape.first_axis("rms_norm", x);
  return detail::normalise_rows<ops::rms_norm_op>(first, std::forward<E>(x), eps);
}

/// rms_norm(x, shape, eps) * weight, where `shape` is that of weight: with rank K rows are the last K axes. Without
/// gradients one pass. Errors: shape_error for a weight of another shape than the last axes of x.
///
///     tensor y = rms_norm(x, gain);
template <class E, class W>
  requires(detail::is_fitting<detail::row_norm_mistake<ops::rms_norm_op, E, W>>)
auto rms_norm(E&& x, W&& weight, double eps = 1e-6) {
  const int first = detail::first_axis_of_weight("rms_norm", x, weight);
  return detail::normalise_rows<ops::rms_norm_op>(first, std::forward<E>(x), eps) * std::forward<W>(weight);
}
template <class E, class... More,
          class Problem = typename detail::row_norm_mistake<ops::rms_norm_op, E, More...>::problem,
          class Fix = typename detail::row_norm_mistake<ops::rms_norm_op, E, More...>::fix>
void rms_norm(E&&, More&&...) = delete;

}  // namespace sinter
