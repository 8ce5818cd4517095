// sinter/ops/batch_moments.hpp: mean and variance of every channel.
#pragma once

#include "sinter/ops/cast.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {
namespace ops {

struct batch_moments_op : kernel_op {
  static constexpr const char* name = "batch_moments";
  static constexpr unsigned grad_uses[1] = {uses::first | uses::result};
  static constexpr bool has_variants = true;
  static constexpr take takes(int) { return take::strided; }
  template <class T, class...>
  using result = compute_type<T>;
  static constexpr int rank(int) { return 2; }
  template <device D>
  static constexpr bool has_kernels_on = true;

  template <int R>
  extents<2> shape(const extents<R>& x) const {
    return {{2, x[1]}};
  }
  template <class X>
  static constexpr auto mistake() {
    return floating_of_rank<2, max_rank, X>();
  }
};

}  // namespace ops

namespace detail {

/// Numbers of channels as they stand beside x of rank R: (C) => (C, 1, ...).
template <int R, class V>
auto per_channel(const V& v) {
  index_t to[std::size_t{R - 1}];
  for (int d = 1; d < R - 1; ++d) to[d] = 1;
  to[0] = v.shape()[0];
  return eval_to_read(v).reshape(to);
}

/// x with the channels of a pixel side by side in memory.
template <class X>
auto pixel_by_pixel(const X& x) {
  if constexpr (X::rank == 2) return x.contiguous();
  else return x.to_memory_format(channels_last);
}

/// With n elements of a channel, mean m, and gradients a and b of mean and variance: dx = a / n + 2 b / n (x - m).
template <class Backward>
void reverse_batch_moments(const Backward& b) {
  const auto& x = b.template operand<0>();
  using T = element_of<decltype(x)>;
  using C = compute_type<T>;
  constexpr int R = rank_of<decltype(x)>;
  const index_t channels = x.shape()[1];
  if (x.numel() == 0) return void(b.template place_of<0>());
  const C each = static_cast<C>(1 / static_cast<double>(x.numel() / channels));
  const auto shift = per_channel<R>(eval(b.gradient()[0] * each));
  const auto slope = per_channel<R>(eval(b.gradient()[1] * (2 * each)));
  const auto mean = per_channel<R>(b.result()[0]);
  const auto place = b.template place_of<0>();
  using To = bare<decltype(place.to)>;
  const auto dx = cast<T>(shift + slope * (cast<C>(x) - mean));
  if (place.add) To(place.to) += dx;
  else write(dx, place.to);
}

}  // namespace detail

/// Mean and biased variance of every channel of x (N,C,...) over the batch and all further axes: (2,C), of float where
/// x is half or bfloat16. Floating point, any rank from 2; one pass over x, in blocks that stay in cache: their means
/// and sums of squared distances are merged in a fixed order, so that no digits cancel and the number of threads does
/// not show. Chan, Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979.
/// Derivative: (a + 2 b (x - mean)) / n, for gradients a and b of mean and variance and n elements of a channel. NaN
/// where a channel has no elements.
///
///     tensor moments = batch_moments(pictures);  // moments[0]: means, moments[1]: variances
template <class X>
  requires detail::takes_operands<ops::batch_moments_op, X>
detail::kernel_of<ops::batch_moments_op, X> batch_moments(X&& x) {
  return detail::make_kernel(ops::batch_moments_op(), std::forward<X>(x));
}
SINTER_KERNEL_REJECTIONS(batch_moments, ops::batch_moments_op)

}  // namespace sinter
