// sinter/ops/conv_transpose.hpp: transposed convolutions over one, two and three spatial axes.
#pragma once

#include "sinter/ops/conv.hpp"

namespace sinter {

/// How a transposed convolution spreads its window over N spatial axes: one number, or one for each axis.
///
///     conv_transpose2d(x, w, b, {.stride = 2, .padding = 1, .output_padding = 1});
template <int N>
struct conv_transpose_options {
  per_axis<N> stride = 1;
  window_padding<N> padding = 0;   ///< results that are left out in front and behind; numbers
  per_axis<N> output_padding = 0;  ///< more results behind, fewer than stride or dilation
  index_t groups = 1;
  per_axis<N> dilation = 1;
};

namespace ops {

/// The gradient of x of a convolution from y to x, as an op: y(n, f, i) = b(f) + the sum of x(n, c, o) w(c, f, t) over
/// the channels c of f's group, the taps t and the places o with o stride + t dilation - padding = i.
template <int N, bool Bias>
struct conv_transpose_op : kernel_op {
  static constexpr const char* name = N == 1 ? "conv_transpose1d" : N == 2 ? "conv_transpose2d" : "conv_transpose3d";
  static constexpr int rank_of_images = N + 2;
  static constexpr bool has_bias = Bias, transposed = true;
  static constexpr unsigned grad_uses[Bias ? 3 : 2] = {uses::second, uses::first};
  static constexpr memory_format format = memory_format::channels_last;
  static constexpr bool takes_epilogue = true, has_variants = true;
  static constexpr take takes(int operand) { return operand == 0 ? take::dense : take::strided; }
  template <device D>
  static constexpr bool has_kernels_on = true;

  conv_transpose_options<N> options;
  explicit conv_transpose_op(const conv_transpose_options<N>& o) : options(o) {}

  template <class... B>
  extents<N + 2> shape(const extents<N + 2>& x, const extents<N + 2>& w, const B&... bias) const {
    using sinter::detail::refuse;
    const conv_transpose_options<N>& o = options;
    sinter::detail::check_window(name, o.stride, o.dilation);
    check_conv_channels(name, o.groups, x, w, w[0], w[1] * o.groups, bias...);
    extents<N + 2> y;
    y[0] = x[0];
    y[1] = w[1] * o.groups;
    for (int d = 0; d < N; ++d) {
      const index_t padding = o.padding.number(name, d), more = o.output_padding[d];
      if (more < 0 || (more >= o.stride[d] && more >= o.dilation[d]))
        refuse<value_error>({name, ": output_padding is ", more, "; it must be 0 or more, and below the stride, ",
                             o.stride[d], ", or the dilation, ", o.dilation[d]});
      y[d + 2] = (x[d + 2] - 1) * o.stride[d] - 2 * padding + o.dilation[d] * (w[d + 2] - 1) + more + 1;
      if (y[d + 2] < 1)
        refuse<shape_error>({name, ": padding ", padding, " leaves nothing of the results along axis ", d + 2,
                             " for x of shape ", x, " and weights of shape ", w});
    }
    return y;
  }

  /// Of the convolution from y to x.
  conv_extents extents_of(const extents<N + 2>& x, const extents<N + 2>& w, const extents<N + 2>& w_strides,
                          const extents<N + 2>& y) const {
    return make_conv_extents<N>(options, y, x, w, w_strides);
  }

  template <class X, class W, class... B>
  static constexpr auto mistake() {
    return find_conv_mistake<N + 2, X, W, B...>();
  }
};

}  // namespace ops

/// The transposed convolution of x (N,C,H,W) with weights (C,F/groups,KH,KW) and a bias (F,): (N,F,H',W'), where H' =
/// (H - 1) stride - 2 padding + dilation (KH - 1) + output_padding + 1, as torch.nn.functional.conv_transpose2d. It is
/// the gradient of x of the conv2d with these weights and numbers. Layouts and elementwise work are those of conv2d.
/// Derivative: dx is a conv2d of the gradient, dw a convolution of x and the gradient, db its sum. Errors: shape_error
/// for channels and groups that do not fit and for padding that leaves no results, value_error for a stride or dilation
/// below 1, for negative padding and for an output_padding that is not below stride or dilation.
///
///     auto larger = conv_transpose2d(pictures, kernels, {.stride = 2, .padding = 1, .output_padding = 1});
template <class X, class W, class B>
  requires detail::takes_operands<ops::conv_transpose_op<2, true>, X, W, B>
detail::kernel_of<ops::conv_transpose_op<2, true>, X, W, B> conv_transpose2d(
    X&& x, W&& w, B&& bias, const conv_transpose_options<2>& options = {}) {
  return detail::make_kernel(ops::conv_transpose_op<2, true>(options), std::forward<X>(x), std::forward<W>(w),
                             std::forward<B>(bias));
}
/// The same without a bias.
template <class X, class W>
  requires detail::takes_operands<ops::conv_transpose_op<2, false>, X, W>
detail::kernel_of<ops::conv_transpose_op<2, false>, X, W> conv_transpose2d(
    X&& x, W&& w, const conv_transpose_options<2>& options = {}) {
  return detail::make_kernel(ops::conv_transpose_op<2, false>(options), std::forward<X>(x), std::forward<W>(w));
}
template <class X, class W, class B,
          class Problem = typename detail::kernel_check<ops::conv_transpose_op<2, true>, X, W, B>::problem,
          class Fix = typename detail::kernel_check<ops::conv_transpose_op<2, true>, X, W, B>::fix>
void conv_transpose2d(X&&, W&&, B&&, const conv_transpose_options<2>& = {}) = delete;
template <class X, class W,
          class Problem = typename detail::kernel_check<ops::conv_transpose_op<2, false>, X, W>::problem,
          class Fix = typename detail::kernel_check<ops::conv_transpose_op<2, false>, X, W>::fix>
void conv_transpose2d(X&&, W&&, const conv_transpose_options<2>& = {}) = delete;

/// The transposed convolution of x (N,C,L) with weights (C,F/groups,K) and a bias (F,); see conv_transpose2d.
///
///     auto longer = conv_transpose1d(signals, spread, {.stride = 2});
template <class X, class W, class B>
  requires detail::takes_operands<ops::conv_transpose_op<1, true>, X, W, B>
detail::kernel_of<ops::conv_transpose_op<1, true>, X, W, B> conv_transpose1d(
    X&& x, W&& w, B&& bias, const conv_transpose_options<1>& options = {}) {
  return detail::make_kernel(ops::conv_transpose_op<1, true>(options), std::forward<X>(x), std::forward<W>(w),
                             std::forward<B>(bias));
}
template <class X, class W>
  requires detail::takes_operands<ops::conv_transpose_op<1, false>, X, W>
detail::kernel_of<ops::conv_transpose_op<1, false>, X, W> conv_transpose1d(
    X&& x, W&& w, const conv_transpose_options<1>& options = {}) {
  return detail::make_kernel(ops::conv_transpose_op<1, false>(options), std::forward<X>(x), std::forward<W>(w));
}
template <class X, class W, class B,
          class Problem = typename detail::kernel_check<ops::conv_transpose_op<1, true>, X, W, B>::problem,
          class Fix = typename detail::kernel_check<ops::conv_transpose_op<1, true>, X, W, B>::fix>
void conv_transpose1d(X&&, W&&, B&&, const conv_transpose_options<1>& = {}) = delete;
template <class X, class W,
          class Problem = typename detail::kernel_check<ops::conv_transpose_op<1, false>, X, W>::problem,
          class Fix = typename detail::kernel_check<ops::conv_transpose_op<1, false>, X, W>::fix>
void conv_transpose1d(X&&, W&&, const conv_transpose_options<1>& = {}) = delete;

/// The transposed convolution of x (N,C,D,H,W) with weights (C,F/groups,KD,KH,KW) and a bias (F,); see
/// conv_transpose2d.
///
///     auto larger = conv_transpose3d(volumes, spread_blocks, {.stride = 2});
template <class X, class W, class B>
  requires detail::takes_operands<ops::conv_transpose_op<3, true>, X, W, B>
detail::kernel_of<ops::conv_transpose_op<3, true>, X, W, B> conv_transpose3d(
    X&& x, W&& w, B&& bias, const conv_transpose_options<3>& options = {}) {
  return detail::make_kernel(ops::conv_transpose_op<3, true>(options), std::forward<X>(x), std::forward<W>(w),
                             std::forward<B>(bias));
}
template <class X, class W>
  requires detail::takes_operands<ops::conv_transpose_op<3, false>, X, W>
detail::kernel_of<ops::conv_transpose_op<3, false>, X, W> conv_transpose3d(
    X&& x, W&& w, const conv_transpose_options<3>& options = {}) {
  return detail::make_kernel(ops::conv_transpose_op<3, false>(options), std::forward<X>(x), std::forward<W>(w));
}
template <class X, class W, class B,
          class Problem = typename detail::kernel_check<ops::conv_transpose_op<3, true>, X, W, B>::problem,
          class Fix = typename detail::kernel_check<ops::conv_transpose_op<3, true>, X, W, B>::fix>
void conv_transpose3d(X&&, W&&, B&&, const conv_transpose_options<3>& = {}) = delete;
template <class X, class W,
          class Problem = typename detail::kernel_check<ops::conv_transpose_op<3, false>, X, W>::problem,
          class Fix = typename detail::kernel_check<ops::conv_transpose_op<3, false>, X, W>::fix>
void conv_transpose3d(X&&, W&&, const conv_transpose_options<3>& = {}) = delete;

}  // namespace sinter
