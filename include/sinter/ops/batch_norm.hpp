// sinter/ops/batch_norm.hpp: channels of mean 0 and variance 1 over a batch.
#pragma once

#include <optional>

#include "sinter/expr/fuse.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/batch_moments.hpp"
#include "sinter/ops/layer_norm.hpp"
#include "sinter/ops/rsqrt.hpp"

namespace sinter {

struct use_running_moments_weights_and_biases_of_rank_1;

/// Where batch_norm takes mean and variance from.
struct batch_norm_options {
  bool training = false;  ///< from the batch, and the running ones move towards these
  double momentum = 0.1;  ///< the part of the batch in the new running ones
  double eps = 1e-5;      ///< added to the variance
};

namespace detail {

/// fitting<T>, or what is wrong with x and numbers V of its channels.
template <class X, class... V>
constexpr auto find_channel_operand_mistake() {
  if constexpr (!(expression<V> && ...)) return no_operands<V...>{};
  else if constexpr (!takes_operands<ops::batch_moments_op, X>) return kernel_check<ops::batch_moments_op, X>{};
  else {
    using T = element_of<X>;
    if constexpr (!devices_agree<X, V...>)
      return mistake<operands_on_different_devices<device_of<X>, device_of<V>...>, copy_one_operand_with_dot_to>{};
    else if constexpr (!((std::is_same_v<element_of<V>, T> || std::is_same_v<element_of<V>, compute_type<T>>) && ...))
      return mistake<operands_of_element_types<T, element_of<V>...>, use_floating_point_operands_of_one_type>{};
    else if constexpr (!((rank_of<V> == 1) && ...))
      return mistake<operands_of_ranks<rank_of<X>, rank_of<V>...>, use_running_moments_weights_and_biases_of_rank_1>{};
    else return fitting<T>{};
  }
}
template <class X, class... V>
using channel_operand_mistake = decltype(find_channel_operand_mistake<bare<X>, bare<V>...>());
template <class X, class... V>
concept takes_channel_operands = is_fitting<channel_operand_mistake<X, V...>>;

template <class X, class V>
void check_channel_operand(const char* op, const char* what, const X& x, const V& v) {
  check_defined(op, v);
  if (v.shape()[0] != x.shape()[1])
    refuse<shape_error>({op, ": a ", what, " of shape ", v.shape(), " for the ", x.shape()[1],
                         " channels of x of shape ", x.shape(), "; it needs one value for each"});
}
template <class X>
void check_channel_operands(const char*, const X&) {}
template <class X, class W, class... B>
void check_channel_operands(const char* op, const X& x, const W& weight, const B&... bias) {
  check_channel_operand(op, "weight", x, weight);
  (check_channel_operand(op, "bias", x, bias), ...);
}

template <class E>
auto to_compute(const E& e) {
  if constexpr (narrow_element<element_of<E>>) return cast<compute_type<element_of<E>>>(e);
  else return e;
}
/// x scale [+ bias], with numbers of each channel; computed in float where elements are narrow.
template <class T, int R, class X>
auto scaled_channels(const X& x) {
  if constexpr (narrow_element<T>) return cast<T>(x);
  else return x;
}
template <class T, int R, class X, class W, class... B>
auto scaled_channels(const X& x, const W& scale, const B&... bias) {
  return scaled_channels<T, R>(((x * to_compute(per_channel<R>(scale))) + ... + to_compute(per_channel<R>(bias))));
}

/// Each (C).
template <class V>
struct channel_moments {
  V mean, variance;
};

/// The mean, or the variance, of each channel of X.
template <class X>
using moments_of = typename result_of_point<compute_type<element_of<X>>, 1, device_of<X>, X::order>::type;

/// Elements of one channel.
template <int R>
index_t channel_size(const extents<R>& x) {
  index_t n = x[1] > 0 ? x[0] : 0;
  for (int d = 2; d < R; ++d) n *= x[d];
  return n;
}

/// Moves running moments towards those of a batch with `count` elements of each channel.
template <class T, device D>
void move_running(const tensor<T, 1, D>& mean, const tensor<T, 1, D>& variance, const tensor<T, 2, D>& batch,
                  double momentum, index_t count) {
  const T part = static_cast<T>(momentum), rest = static_cast<T>(1 - momentum);
  const T unbiased = static_cast<T>(momentum * static_cast<double>(count) / static_cast<double>(count - 1));
  fuse(mean.in_place() = mean * rest + batch[0] * part, variance.in_place() = variance * rest + batch[1] * unbiased);
}

/// Mean and variance of the batch in training and where there are no running ones; otherwise the running ones. `batch`
/// becomes those towards which the running ones are to move, and stays undefined for none.
template <class X, class Running, class Batch>
channel_moments<moments_of<X>> moments_for_batch_norm(const X& x, const Running& mean, const Running& variance,
                                                      const batch_norm_options& o, Batch& batch) {
  using one = moments_of<X>;
  const bool running = mean.defined() && variance.defined();
  if (running) {
    check_channel_operand("batch_norm", "running mean", x, mean);
    check_channel_operand("batch_norm", "running variance", x, variance);
  }
  if (running && !o.training) {
    const no_grad untracked;
    return channel_moments<one>{one(mean), one(variance)};
  }
  const index_t count = channel_size(x.shape());
  if (o.training && count == 1)
    refuse<shape_error>({"batch_norm: x of shape ", x.shape(),
                         " has one value for each channel, which has no variance to train with; use larger batches, or "
                         "eval()"});
  const auto now = eval(batch_moments(x));
  if (running && count > 0) batch = untrack(now);
  return channel_moments<one>{now[0], now[1]};
}

/// (x - centre) * scale + shift, of moments V, weights W and biases B. Spelled out, as compilers take a tenth of a
/// second to find it from the functions that make it.
template <class X, class V, class W = V, class B = V>
struct normalised_type {
  static constexpr int R = rank_of<X> - 1;
  using D = device_of<X>;
  using scale = typename result_of_point<element_of<V>, R, D, larger(V::order, W::order)>::type;
  using shift = typename result_of_point<element_of<V>, R, D, larger(V::order, B::order)>::type;
  using centred = map_expr<ops::subtract_op, X, tensor<element_of<V>, R, D>>;
  using type = map_expr<ops::add_op, map_expr<ops::multiply_op, centred, scale>, shift>;
};
template <class X, class V, class W, class B>
  requires narrow_element<element_of<X>>
struct normalised_type<X, V, W, B> {
  using wide = map_expr<ops::cast_op<element_of<V>, element_of<X>>, X>;
  using type = map_expr<ops::cast_op<element_of<X>, element_of<V>>, typename normalised_type<wide, V, W, B>::type>;
};
template <class X, class V, class... W>
using normalised = typename normalised_type<X, V, W...>::type;

/// (x - mean) / sqrt(variance + eps) * weight + bias, of an evaluated x; weight and bias may be missing.
template <class X, class V, class... W>
normalised<X, V, W...> normalised_channels(const X& x, const channel_moments<V>& moments, double eps,
                                           const W&... affine) {
  using T = element_of<X>;
  constexpr int R = rank_of<X>;
  const auto inverse = eval(rsqrt(moments.variance + static_cast<compute_type<T>>(eps)));
  // The mean is a constant in the pass over x, and shift has its gradient: it is a multiple of that of the bias, and
  // need not be summed over pixels again.
  const auto shifted_by = [&](const auto& scale, const auto&... bias) {
    const auto centre = untrack(moments.mean);
    const auto shift = eval(((untrack(scale) * (centre - moments.mean)) + ... + to_compute(bias)));
    return scaled_channels<T, R>(to_compute(x) - per_channel<R>(centre), scale, shift);
  };
  if constexpr (sizeof...(W) == 0) return shifted_by(inverse);
  else
    return [&](const auto& weight, const auto&... bias) {
      return shifted_by(eval(to_compute(weight) * inverse), bias...);
    }(affine...);
}

/// Batch norm of an evaluated x.
template <class X, class Running, class... W>
normalised<X, moments_of<X>, W...> batch_norm_of(const X& x, const Running& mean, const Running& variance,
                                                 const batch_norm_options& o, const W&... affine) {
  check_channel_operands("batch_norm", x, affine...);
  tensor<compute_type<element_of<X>>, 2, device_of<X>> batch;
  auto y = normalised_channels(x, moments_for_batch_norm(x, mean, variance, o, batch), o.eps, affine...);
  if (batch.defined()) {  // at the end, so that a call that throws has moved nothing
    const no_grad untracked;
    move_running(mean, variance, batch, o.momentum, channel_size(x.shape()));
  }
  return y;
}

template <class X, class Running, class... W>
auto apply_batch_norm(X&& operand, const Running& mean, const Running& variance, const batch_norm_options& o,
                      const W&... affine) {
  check_defined("batch_norm", operand);
  checked_eps("batch_norm", o.eps);
  return batch_norm_of(eval(std::forward<X>(operand)), mean, variance, o, affine...);
}

}  // namespace detail

/// (x - mean) / sqrt(variance + eps) * weight + bias for every channel of x (N,C,...), as
/// torch.nn.functional.batch_norm. In training mean and biased variance are those of the batch, and the running ones,
/// tensors (C) of float or double, move towards them in place: running = (1 - momentum) running + momentum batch, with
/// the unbiased variance. Otherwise they are the running ones; running ones that are not defined stand for none, as
/// PyTorch's None. Floating point, any rank from 2; of half and bfloat16 the moments are float, and weights may be.
///
/// The statistics are a pass of their own; scale and shift are elementwise work of the statement that follows:
/// relu(batch_norm(conv2d(x, w), ...) + skip) is a convolution, a pass that reads and one that writes, and in backward
/// one that reads g and x and writes, and one more over dx. Derivative: that of the formula, through mean and variance.
/// Ioffe and Szegedy, "Batch normalization", 2015. Errors: shape_error for numbers that do not fit the channels, and
/// for one value a channel in training; value_error for a negative eps.
///
///     auto y = batch_norm(pictures, running_mean, running_var, gain, shift, {.training = true});
template <class X, class M, class V, class W, class B>
  requires detail::takes_channel_operands<X, M, V, W, B>
auto batch_norm(X&& x, const M& running_mean, const V& running_var, const W& weight, const B& bias,
                const batch_norm_options& options = {}) {
  return detail::apply_batch_norm(std::forward<X>(x), running_mean, running_var, options, weight, bias);
}
/// The same without a bias.
template <class X, class M, class V, class W>
  requires detail::takes_channel_operands<X, M, V, W>
auto batch_norm(X&& x, const M& running_mean, const V& running_var, const W& weight,
                const batch_norm_options& options = {}) {
  return detail::apply_batch_norm(std::forward<X>(x), running_mean, running_var, options, weight);
}
/// The same without weight and bias.
template <class X, class M, class V>
  requires detail::takes_channel_operands<X, M, V>
auto batch_norm(X&& x, const M& running_mean, const V& running_var, const batch_norm_options& options = {}) {
  return detail::apply_batch_norm(std::forward<X>(x), running_mean, running_var, options);
}
template <class X, class M, class V, class... W,
          class Problem = typename detail::channel_operand_mistake<X, M, V, W...>::problem,
          class Fix = typename detail::channel_operand_mistake<X, M, V, W...>::fix>
void batch_norm(X&&, const M&, const V&, const W&...) = delete;

}  // namespace sinter
