// sinter/ops/avg_pool.hpp: the mean of each window, over one, two and three spatial axes.
#pragma once

#include <optional>

#include "sinter/ops/detail/pooling.hpp"

namespace sinter {

/// How avg_pool moves its window over N spatial axes, one number, or one for each axis, and what it divides by.
///
///     avg_pool2d(x, {3, 2}, {.stride = 2, .padding = {1, 0}, .count_include_pad = false});
template <int N>
struct avg_pool_options {
  pool_stride<N> stride = {};                    ///< by default the kernel
  per_axis<N> padding = 0;                       ///< zeros on both sides of x; at most half of the kernel
  bool ceil_mode = false;                        ///< a last window of which only part fits gives a result too
  bool count_include_pad = true;                 ///< these zeros count as elements
  std::optional<index_t> divisor_override = {};  ///< what all sums are divided by, instead of the elements
  per_axis<N> dilation = 1;                      ///< from one tap to the next; PyTorch has none
};

namespace ops {

/// What sums are divided by.
struct pool_divisor {
  index_t number = 0;  ///< 0: the number of elements
  bool padding_counts = false;

  SINTER_WORD index_t of(const pool_axis (&axis)[3], const index_t (&o)[3]) const {
    if (number != 0) return number;
    return axis[0].counted(o[0], padding_counts) * axis[1].counted(o[1], padding_counts) *
           axis[2].counted(o[2], padding_counts);
  }
};

/// y(n,c,o) = the sum of x(n, c, elements of o's window), divided by their number.
template <int N, class Window>
struct avg_pool_op : pool_op<N, Window> {
  static constexpr const char* name = Window::is_adaptive ? (N == 1   ? "adaptive_avg_pool1d"
                                                             : N == 2 ? "adaptive_avg_pool2d"
                                                                      : "adaptive_avg_pool3d")
                                      : N == 1            ? "avg_pool1d"
                                      : N == 2            ? "avg_pool2d"
                                                          : "avg_pool3d";

  pool_divisor divisor;
  explicit avg_pool_op(const Window& w, const pool_divisor& by = {}) : pool_op<N, Window>(w), divisor(by) {}

  extents<N + 2> shape(const extents<N + 2>& x) const { return this->window.results(name, x); }
};

}  // namespace ops

namespace detail {

template <int N>
using avg_pool_op = ops::avg_pool_op<N, ops::sliding_window<N>>;

template <int N>
avg_pool_op<N> avg_pool_of(const per_axis<N>& kernel, const avg_pool_options<N>& o) {
  if (o.divisor_override == index_t{0})
    refuse<value_error>({avg_pool_op<N>::name, ": divisor_override is 0; leave it out, or divide by another number"});
  const ops::sliding_window<N> window{kernel, o.stride.of(kernel), o.padding, o.dilation, o.ceil_mode};
  return avg_pool_op<N>(window, {o.divisor_override.value_or(0), o.count_include_pad});
}

}  // namespace detail

/// The mean of each window of x (N,C,H,W): (N,C,H',W'), where H' = (H + 2 padding - KH) / stride + 1, as
/// torch.nn.functional.avg_pool2d. That is rounded down, or with ceil_mode up, but no window begins behind x. The
/// window moves by its own size unless a stride is given. Floating point. The result is channels-last; x is read as it
/// is where it is channels-last, else from a copy. Elementwise work on the result runs inside the kernel on the host.
/// Derivative: each element gets g divided by what its window was divided by, from all windows with it. Errors:
/// value_error for a kernel, stride or dilation below 1, for padding below 0 or above half of the kernel and for a
/// divisor of 0, shape_error for a window larger than the padded x.
///
///     auto h = avg_pool2d(pictures, {3, 2}, {.stride = 2, .padding = 1, .count_include_pad = false});
template <class X>
  requires detail::takes_operands<detail::avg_pool_op<2>, X>
detail::kernel_of<detail::avg_pool_op<2>, X> avg_pool2d(X&& x, const per_axis<2>& kernel,
                                                        const avg_pool_options<2>& options = {}) {
  return detail::make_kernel(detail::avg_pool_of<2>(kernel, options), std::forward<X>(x));
}
/// The mean of each window of x (N,C,L); see avg_pool2d.
///
///     auto h = avg_pool1d(signals, 2);
template <class X>
  requires detail::takes_operands<detail::avg_pool_op<1>, X>
detail::kernel_of<detail::avg_pool_op<1>, X> avg_pool1d(X&& x, const per_axis<1>& kernel,
                                                        const avg_pool_options<1>& options = {}) {
  return detail::make_kernel(detail::avg_pool_of<1>(kernel, options), std::forward<X>(x));
}
/// The mean of each window of x (N,C,D,H,W); see avg_pool2d.
///
///     auto h = avg_pool3d(volumes, 2, {.ceil_mode = true});
template <class X>
  requires detail::takes_operands<detail::avg_pool_op<3>, X>
detail::kernel_of<detail::avg_pool_op<3>, X> avg_pool3d(X&& x, const per_axis<3>& kernel,
                                                        const avg_pool_options<3>& options = {}) {
  return detail::make_kernel(detail::avg_pool_of<3>(kernel, options), std::forward<X>(x));
}

// Rejections: the same parameters, so that braces in a call find them.
#define SINTER_AVG_POOL_REJECTIONS(name, axes)                                                             \
  template <class X, class Problem = typename detail::kernel_check<detail::avg_pool_op<axes>, X>::problem, \
            class Fix = typename detail::kernel_check<detail::avg_pool_op<axes>, X>::fix>                  \
  void name(X&&, const per_axis<axes>&, const avg_pool_options<axes>& = {}) = delete;
SINTER_AVG_POOL_REJECTIONS(avg_pool1d, 1)
SINTER_AVG_POOL_REJECTIONS(avg_pool2d, 2)
SINTER_AVG_POOL_REJECTIONS(avg_pool3d, 3)
#undef SINTER_AVG_POOL_REJECTIONS

}  // namespace sinter
