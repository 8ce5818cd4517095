// sinter/ops/group_norm.hpp: groups of channels of mean 0 and variance 1, in every sample.
#pragma once

#include "sinter/ops/batch_norm.hpp"

namespace sinter {

namespace detail {

template <class X, class... W>
auto apply_group_norm(const char* op, X&& operand, index_t groups, double eps, const W&... affine) {
  check_defined(op, operand);
  const auto x = eval(std::forward<X>(operand));
  using T = element_of<decltype(x)>;
  constexpr int R = rank_of<decltype(x)>;
  if (groups < 1 || x.shape()[1] % groups != 0)
    refuse<shape_error>(
        {op, ": ", groups, " groups do not divide the ", x.shape()[1], " channels of x of shape ", x.shape()});
  check_channel_operands(op, x, affine...);
  const index_t in_rows[2] = {x.shape()[0] * groups, x.numel() == 0 ? 0 : -1};
  index_t as_before[std::size_t{R}];
  for (int d = 0; d < R; ++d) as_before[d] = x.shape()[d];
  const auto y = eval(layer_norm(x.reshape(in_rows), checked_eps(op, eps))).reshape(as_before);
  if constexpr (sizeof...(W) == 0) return y;
  else return scaled_channels<T, R>(to_compute(y), affine...);
}

}  // namespace detail

/// (x - mean) / sqrt(variance + eps) * weight + bias, with mean and biased variance over a group of neighbouring
/// channels of one sample of x (N,C,...), as torch.nn.functional.group_norm. Weight and bias (C,) may be left out.
/// Floating point, any rank from 2. Runs at once as layer_norm of rows; x is read row-major, from a copy where it lies
/// otherwise. Wu and He, "Group normalization", 2018. Errors: shape_error for groups that do not divide the channels
/// and for weights that do not fit them; value_error for a negative eps.
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
