// sinter/ops/group_norm.hpp: groups of channels of mean 0 and variance 1, in every sample.
#pragma once

#include "sinter/ops/batch_norm.hpp"

namespace sinter {

namespace ops {

/// The rows of layer_norm, each the neighbouring channels of a group.
struct group_norm_op : layer_norm_op {
  static constexpr const char* name = "group_norm";
  static constexpr take takes(int) { return take::dense; }  // of images with the channels last a copy is cheaper
  index_t groups;
  group_norm_op(index_t how_many, double e) : layer_norm_op(1, e), groups(how_many) {}

  template <int R>
  index_t row_length(const extents<R>& x) const {
    return layer_norm_op::row_length(x) / groups;
  }
};

}  // namespace ops

namespace detail {

template <class X, class... W>
auto apply_group_norm(const char* op, X&& x, index_t groups, double eps, const W&... affine) {
  check_defined(op, x);
  if (groups < 1 || x.shape()[1] % groups != 0)
    refuse<shape_error>(
        {op, ": ", groups, " groups do not divide the ", x.shape()[1], " channels of x of shape ", x.shape()});
  check_channel_operands(op, x, affine...);
  auto y = make_kernel(ops::group_norm_op(groups, checked_eps(op, eps)), std::forward<X>(x));
  if constexpr (sizeof...(W) == 0) return y;
  else return scaled_channels<element_of<X>, rank_of<X>>(to_compute(y), affine...);
}

}  // namespace detail

/// (x - mean) / sqrt(variance + eps) * weight + bias, with mean and biased variance over a group of neighbouring
/// channels of one sample of x (N,C,...), as torch.nn.functional.group_norm. Weight and bias (C,) may be left out.
/// Floating point, any rank from 2. Without gradients one pass; x is read row-major, from a copy where it lies
/// otherwise. Derivative: that of layer_norm. Wu and He, "Group normalization", 2018. Errors: shape_error for groups
/// that do not divide the channels and for weights that do not fit them; value_error for a negative eps.
///
///     auto y = group_norm(pictures, 4, gain, shift);
template <class X, class W, class B>
  requires detail::takes_channel_operands<X, W, B>
auto group_norm(X&& x, detail::whole groups, const W& weight, const B& bias, double eps = 1e-5) {
  return detail::apply_group_norm("group_norm", std::forward<X>(x), groups, eps, weight, bias);
}
template <class X, class W>
  requires detail::takes_channel_operands<X, W>
auto group_norm(X&& x, detail::whole groups, const W& weight, double eps = 1e-5) {
  return detail::apply_group_norm("group_norm", std::forward<X>(x), groups, eps, weight);
}
template <class X>
  requires detail::takes_channel_operands<X>
auto group_norm(X&& x, detail::whole groups, double eps = 1e-5) {
  return detail::apply_group_norm("group_norm", std::forward<X>(x), groups, eps);
}
template <class X, class... W, class Problem = typename detail::channel_operand_mistake<X, W...>::problem,
          class Fix = typename detail::channel_operand_mistake<X, W...>::fix>
void group_norm(X&&, detail::whole, const W&...) = delete;

/// group_norm with a group for each channel: every channel of every sample for itself, as torch.nn.functional.
/// instance_norm without running statistics. Ulyanov, Vedaldi, Lempitsky, "Instance normalization", 2016.
///
///     auto y = instance_norm(pictures, gain, shift);
template <class X, class W, class B>
  requires detail::takes_channel_operands<X, W, B>
auto instance_norm(X&& x, const W& weight, const B& bias, double eps = 1e-5) {
  return detail::apply_group_norm("instance_norm", std::forward<X>(x), x.shape()[1], eps, weight, bias);
}
template <class X, class W>
  requires detail::takes_channel_operands<X, W>
auto instance_norm(X&& x, const W& weight, double eps = 1e-5) {
  return detail::apply_group_norm("instance_norm", std::forward<X>(x), x.shape()[1], eps, weight);
}
template <class X>
  requires detail::takes_channel_operands<X>
auto instance_norm(X&& x, double eps = 1e-5) {
  return detail::apply_group_norm("instance_norm", std::forward<X>(x), x.shape()[1], eps);
}
template <class X, class... W, class Problem = typename detail::channel_operand_mistake<X, W...>::problem,
          class Fix = typename detail::channel_operand_mistake<X, W...>::fix>
void instance_norm(X&&, const W&...) = delete;

}  // namespace sinter
