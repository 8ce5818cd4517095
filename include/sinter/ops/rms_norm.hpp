// sinter/ops/rms_norm.hpp: rows of mean square 1.
#pragma once

#include "sinter/ops/layer_norm.hpp"

namespace sinter {
namespace ops {

struct rms_norm_op : row_op {
  static constexpr const char* name = "rms_norm";
  static constexpr bool saves_row_factor = true;
  double eps;
  rms_norm_op(int along, double e) : row_op(along), eps(e) {}

  template <class Row>
  SINTER_WORD auto forward(const Row& r) const {
    using C = typename Row::value_type;
    const auto x = r.keep(r.x());
    return r.finish(x, {.scale = root_mean_square_factor(r, x, C(0), static_cast<C>(eps))});
  }
  template <class Row>
  SINTER_WORD void reverse(const Row& r) const {
    reverse_norm(r, typename Row::value_type(0));
  }
};

}  // namespace ops

/// x / sqrt(mean(x^2) + eps) along the last axis. Floating point, any rank from 1. A row is read once into cache
/// together with the elementwise work that produces it. With f = 1 / sqrt(mean(x^2) + eps), derivative: f (g - y mean(g
/// y)). Zhang, Sennrich, "Root mean square layer normalization", 2019. Errors: value_error for a negative or non-finite
/// eps.
///
///     tensor y = rms_norm(x);
template <class E>
  requires detail::takes_operands<ops::rms_norm_op, E>
detail::kernel_of<ops::rms_norm_op, E> rms_norm(E&& x, double eps = 1e-6) {
  return detail::make_kernel(ops::rms_norm_op(rank_of<E> - 1, detail::checked_eps("rms_norm", eps)),
                             std::forward<E>(x));
}

/// rms_norm(x, eps) * weight, of one value for each of the last axis. Without gradients one pass. Errors: shape_error
/// for a weight of another length.
///
///     tensor y = rms_norm(x, gain);
template <class E, class W>
  requires(detail::takes_operands<ops::rms_norm_op, E> && detail::is_fitting<detail::row_operand_mistake<E, W>>)
auto rms_norm(E&& x, W&& weight, double eps = 1e-6) {
  detail::check_row_operand("rms_norm", "weight", x, weight);
  return rms_norm(std::forward<E>(x), eps) * std::forward<W>(weight);
}
SINTER_KERNEL_REJECTIONS(rms_norm, ops::rms_norm_op)
template <class E, class W, class Problem = typename detail::row_operand_mistake<E, W>::problem,
          class Fix = typename detail::row_operand_mistake<E, W>::fix>
  requires detail::takes_operands<ops::rms_norm_op, E>
void rms_norm(E&&, W&&, double = 0) = delete;

}  // namespace sinter
