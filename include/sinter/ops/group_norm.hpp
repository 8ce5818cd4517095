// sinter/ops/group_norm.hpp: groups of channels of mean 0 and variance 1, in every sample.
#pragma once

#include "sinter/ops/batch_norm.hpp"
#include "sinter/ops/mean.hpp"

namespace sinter {

/// Where instance_norm with running moments takes mean and variance from.
struct instance_norm_options {
  bool use_input_stats = true;  ///< from each sample, and the running ones move towards the means of these
  double momentum = 0.1;        ///< the part of the batch in the new running ones
  double eps = 1e-5;            ///< added to the variance
};

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

template <class X, class Running, class... W>
auto instance_norm_of(X&& operand, const Running& mean, const Running& variance, const instance_norm_options& o,
                      const W&... affine) {
  check_defined("instance_norm", operand);
  checked_eps("instance_norm", o.eps);
  const auto x = eval_to_read(std::forward<X>(operand));
  constexpr int R = rank_of<X>;
  const extents<R> shape = x.shape();
  check_channel_operand("instance_norm", "running mean", x, mean);
  check_channel_operand("instance_norm", "running variance", x, variance);
  if (!o.use_input_stats) return eval(apply_batch_norm(x, mean, variance, {.eps = o.eps}, affine...));
  extents<R> apart = shape;  // each channel of each sample as a channel
  apart[0] = 1;
  apart[1] = shape[0] * shape[1];
  const index_t count = channel_size(apart);
  if (count == 1)
    refuse<shape_error>(
        {"instance_norm: x of shape ", shape, " has one value for each channel of a sample, which has no variance"});
  const auto y = eval(apply_group_norm("instance_norm", x, shape[1], o.eps, affine...));
  if (x.numel() > 0) {  // at the end, so that a call that throws has moved nothing
    const no_grad untracked;
    const auto each = eval(batch_moments(untrack(x).reshape(apart.values)));
    move_running(mean, variance, eval(sinter::mean(each.reshape({2, shape[0], shape[1]}), 1)), o.momentum, count);
  }
  return y;
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
/// The same with running moments, tensors (C) of float or double: each sample is normalised by its own moments, and the
/// running ones move towards the means of these, the variances unbiased, as those of batch_norm do; without
/// use_input_stats the running ones take their place. Weight, or weight and bias, may be left out. Runs at once.
/// Errors: also shape_error for one value a channel of a sample, where the running moments move.
///
///     auto y = instance_norm(pictures, running_mean, running_var, gain, shift, {.momentum = 0.01});
template <class X, class M, class V, class W, class B>
  requires detail::takes_channel_operands<X, M, V, W, B>
auto instance_norm(X&& x, const M& running_mean, const V& running_var, const W& weight, const B& bias,
                   const instance_norm_options& options = {}) {
  return detail::instance_norm_of(std::forward<X>(x), running_mean, running_var, options, weight, bias);
}
template <class X, class M, class V, class W>
  requires detail::takes_channel_operands<X, M, V, W>
auto instance_norm(X&& x, const M& running_mean, const V& running_var, const W& weight,
                   const instance_norm_options& options = {}) {
  return detail::instance_norm_of(std::forward<X>(x), running_mean, running_var, options, weight);
}
template <class X, class M, class V>
  requires detail::takes_channel_operands<X, M, V>
auto instance_norm(X&& x, const M& running_mean, const V& running_var, const instance_norm_options& options) {
  return detail::instance_norm_of(std::forward<X>(x), running_mean, running_var, options);
}
template <class X, class... W, class Problem = typename detail::channel_operand_mistake<X, W...>::problem,
          class Fix = typename detail::channel_operand_mistake<X, W...>::fix>
void instance_norm(X&&, const W&...) = delete;

}  // namespace sinter
