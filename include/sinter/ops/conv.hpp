// sinter/ops/conv.hpp: convolutions over one, two and three spatial axes.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/conv_axes.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/negate.hpp"
#include "sinter/ops/pad.hpp"
#include "sinter/ops/relu.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/window.hpp"

namespace sinter {

template <int>
struct use_x_and_weights_of_rank;
struct use_a_bias_of_rank_1;

/// How a convolution moves its window over N spatial axes: one number, or one for each axis.
///
///     conv2d(x, w, b, {.stride = 2, .padding = {1, 2}});
///     conv2d(x, w, b, {.padding = padding::same});
template <int N>
struct conv_options {
  per_axis<N> stride = 1;
  window_padding<N> padding = 0;  ///< zeros in front of and behind x, padding::same or padding::valid
  per_axis<N> dilation = 1;
  index_t groups = 1;
  pad_mode padding_mode = pad_mode::constant;  ///< what stands around x in place of zeros: a copy is made, see pad
};

namespace detail {

/// What a padding mode puts around an image, for weights of that shape.
template <int N>
pad_amounts amounts_around(const conv_options<N>& o, const extents<N + 2>& w) {
  index_t amounts[std::size_t{2 * N}];
  for (int d = 0; d < N; ++d) {
    const index_t span = o.dilation[d] * (w[d + 2] - 1);
    amounts[2 * (N - 1 - d)] = o.padding.before(d, span);
    amounts[2 * (N - 1 - d) + 1] = o.padding.after(d, span);
  }
  return amounts;
}

}  // namespace detail

namespace ops {

/// Of the ops of conv_op and conv_transpose_op.
template <class Op>
concept is_convolution = requires {
  Op::rank_of_images;
  Op::transposed;
};

/// The identity. Behind a formula it has backward compute the formula's value again, where that value would be kept.
template <class T>
struct computed_again_op : cast_op<T, T> {
  static constexpr const char* name = "statement";
  static constexpr bool is_hidden = true;  // by explain()
};

/// Is a value of Op computed again in less time than it is read from memory? What consists of such ops is computed
/// where a convolution reads it, and not stored.
template <class Op>
inline constexpr bool is_quick =
    std::is_same_v<Op, add_op> || std::is_same_v<Op, subtract_op> || std::is_same_v<Op, multiply_op> ||
    std::is_same_v<Op, negate_op> || std::is_same_v<Op, relu_op>;
template <class T>
inline constexpr bool is_quick<computed_again_op<T>> = true;

/// What a formula consists of: quick ops alone, and so many tensors or variables of rank R.
template <int R, class E>
struct formula_parts {
  static constexpr bool quick =
      sinter::detail::is_tensor<E> || sinter::detail::is_variable<E> || sinter::detail::is_constant<E>;
  static constexpr int images = quick && !sinter::detail::is_constant<E> && rank_of<E> == R;
};
template <int R, class Op, class... A>
struct formula_parts<R, map_expr<Op, A...>> {
  static constexpr bool quick = is_quick<Op> && (formula_parts<R, A>::quick && ...);
  static constexpr int images = (formula_parts<R, A>::images + ...);
};
/// Is E a formula of one image and of numbers for its channels, such as relu((x - mean) * scale + shift)? That image is
/// kept for backward in place of the formula's value; of several, more would be kept.
template <class E>
inline constexpr bool is_quick_formula = false;
template <class Op, class... A>
inline constexpr bool is_quick_formula<map_expr<Op, A...>> = [] {
  using parts = formula_parts<map_expr<Op, A...>::rank, map_expr<Op, A...>>;
  return parts::quick && parts::images == 1;
}();

/// What is wrong with operands of these types, x and weights of rank R.
template <int R, class X, class W, class... B>
constexpr auto find_conv_mistake() {
  using namespace sinter::detail;
  using T = element_of<X>;
  if constexpr (!floating_element<T> || !std::is_same_v<T, element_of<W>> || !(std::is_same_v<T, element_of<B>> && ...))
    return sinter::detail::mistake<operands_of_element_types<T, element_of<W>, element_of<B>...>,
                                   use_floating_point_operands_of_one_type>{};
  else if constexpr (rank_of<X> != R || rank_of<W> != R)
    return sinter::detail::mistake<operands_of_ranks<rank_of<X>, rank_of<W>, rank_of<B>...>,
                                   use_x_and_weights_of_rank<R>>{};
  else if constexpr (!((rank_of<B> == 1) && ...))
    return sinter::detail::mistake<operands_of_ranks<rank_of<X>, rank_of<W>, rank_of<B>...>, use_a_bias_of_rank_1>{};
  else return fitting<T>{};
}

/// Channels of x that meet weights of so many inputs, and a bias of one value for each of the results' channels.
SINTER_SHARED void check_conv_channels(const char* name, index_t groups, sinter::detail::shape_piece x,
                                       sinter::detail::shape_piece w, index_t inputs, index_t outputs,
                                       const index_t* bias);
template <int R, class... B>
void check_conv_channels(const char* name, index_t groups, const extents<R>& x, const extents<R>& w, index_t inputs,
                         index_t outputs, const B&... bias) {
  const index_t* channels = nullptr;
  ((channels = bias.data()), ...);
  check_conv_channels(name, groups, {x.data(), R}, {w.data(), R}, inputs, outputs, channels);
}
#if SINTER_DEFINES
SINTER_SHARED void check_conv_channels(const char* name, index_t groups, sinter::detail::shape_piece of_x,
                                       sinter::detail::shape_piece of_w, index_t inputs, index_t outputs,
                                       const index_t* bias) {
  using sinter::detail::refuse;
  const index_t *const x = of_x.extents, *const w = of_w.extents;
  if (groups < 1) refuse<value_error>({name, ": groups is ", groups, "; it must be 1 or more"});
  if (w[0] % groups != 0 || x[1] % groups != 0)
    refuse<shape_error>({name, ": ", groups, " groups do not divide the ", x[1], " channels of x of shape ", of_x,
                         " and the ", w[0], " filters of weights of shape ", of_w});
  if (x[1] != inputs)
    refuse<shape_error>({name, ": x of shape ", of_x, " has ", x[1], " channels; weights of shape ", of_w, " take ",
                         inputs, groups > 1 ? sinter::detail::joined({" in ", groups, " groups"}) : ""});
  for (int d = 2; d < of_w.rank; ++d)
    if (w[d] < 1) refuse<shape_error>({name, ": weights of shape ", of_w, " have no taps"});
  if (bias != nullptr && bias[0] != outputs)
    refuse<shape_error>({name, ": a bias of shape ", sinter::detail::shape_piece{bias, 1}, " for ", outputs,
                         " filters; it has one value for each"});
}
#endif  // SINTER_DEFINES

/// Of a convolution from `image` to `result`.
template <int N, class Options>
conv_extents make_conv_extents(const Options& o, const extents<N + 2>& image, const extents<N + 2>& result,
                               const extents<N + 2>& w, const extents<N + 2>& w_strides) {
  conv_extents e{image[0], image[1], result[1], o.groups};
  e.w_filter = w_strides[0];
  e.w_channel = w_strides[1];
  for (int d = 0, to = 3 - N; d < N; ++d, ++to) {
    e.in[to] = image[d + 2];
    e.out[to] = result[d + 2];
    e.kernel[to] = w[d + 2];
    e.stride[to] = o.stride[d];
    e.padding[to] = o.padding.before(d, o.dilation[d] * (w[d + 2] - 1));
    e.dilation[to] = o.dilation[d];
    e.w_tap[to] = w_strides[d + 2];
  }
  return e;
}

/// y(n,f,o) = b(f) + sum over channels c of f's group and taps t of x(n, c, o stride + t dilation - padding) w(f,c,t).
template <int N, bool Bias>
struct conv_op : kernel_op {
  static constexpr const char* name = N == 1 ? "conv1d" : N == 2 ? "conv2d" : "conv3d";
  static constexpr int rank_of_images = N + 2;
  static constexpr bool has_bias = Bias, transposed = false;
  static constexpr unsigned grad_uses[Bias ? 3 : 2] = {uses::second, uses::first};
  static constexpr memory_format format = memory_format::channels_last;
  static constexpr bool takes_epilogue = true, has_variants = true;
  static constexpr take takes(int operand) { return operand == 0 ? take::dense : take::strided; }
  template <device D>
  static constexpr bool has_kernels_on = true;
  template <class A>
  static constexpr bool takes_formula(int operand) {
    return operand == 0 && is_cpu_v<device_of<A>> && is_quick_formula<A> && !narrow_element<element_of<A>>;
  }

  /// Images of few channels are read channel by channel, in less time than it takes to copy them channels last.
  template <class, class X>
  static memory_format format_of(int operand, const X& x) {
    const bool by_channels = operand == 0 && is_cpu_v<device_of<X>> && N < 3 && x.shape()[1] <= 4;
    return by_channels && !x.is_contiguous(format) ? memory_format::contiguous : format;
  }

  conv_options<N> options;
  explicit conv_op(const conv_options<N>& o) : options(o) {}

  template <class... B>
  extents<N + 2> shape(const extents<N + 2>& x, const extents<N + 2>& w, const B&... bias) const {
    sinter::detail::check_window(name, options.stride, options.dilation);
    check_conv_channels(name, options.groups, x, w, w[1] * options.groups, w[0], bias...);
    if (pads_by_copy()) padded(x, w);
    extents<N + 2> y;
    y[0] = x[0];
    y[1] = w[0];
    for (int d = 0; d < N; ++d) {
      const index_t reach = options.dilation[d] * (w[d + 2] - 1) + 1;
      y[d + 2] = options.padding.results(name, d, x[d + 2], reach, options.stride[d], x);
    }
    return y;
  }

  conv_extents extents_of(const extents<N + 2>& x, const extents<N + 2>& w, const extents<N + 2>& w_strides,
                          const extents<N + 2>& y) const {
    return make_conv_extents<N>(options, x, y, w, w_strides);
  }

  /// Does something else than zeros stand around x? Then a copy of x has it.
  bool pads_by_copy() const { return options.padding_mode != pad_mode::constant; }
  extents<N + 2> padded(const extents<N + 2>& x, const extents<N + 2>& w) const {
    return pad_op<float>(sinter::detail::amounts_around(options, w), options.padding_mode, 0).shape(x);
  }
  /// Is this formula computed before the kernel runs? It is where the kernel cannot compute it as it reads.
  template <class X>
  bool evaluates_first(const X& x) const {
    using namespace sinter::detail;
    return N == 3 || options.groups != 1 || pads_by_copy() ||
           !are_same_strides(x.shape(), result_strides(x), strides_in(format, x.shape()));
  }

  template <class X, class W, class... B>
  static constexpr auto mistake() {
    return find_conv_mistake<N + 2, X, W, B...>();
  }
};

}  // namespace ops

namespace detail {

/// The type of X as conv_op takes it: a formula that would have to keep its value ends in computed_again_op.
template <class Op, class X>
struct image_type {
  using type = X;
};
template <class Op, class X>
  requires(expression<X> && Op::template takes_formula<bare<X>>(0) && !fuses_as_prologue<bare<X>>)
struct image_type<Op, X> {
  using type = map_expr<ops::computed_again_op<element_of<X>>, bare<X>>;
};
template <class Op, class X>
using image_of = typename image_type<Op, X>::type;

/// x as op takes it: evaluated, with what the padding mode puts around it, so that op has no padding to do; or the
/// formula as it is, around which the kernels put it.
template <int N, bool Bias, class X, class W>
auto surrounded(ops::conv_op<N, Bias>& op, X&& x, const W& w) {
  using Image = image_of<ops::conv_op<N, Bias>, X>;
  if constexpr (ops::conv_op<N, Bias>::template takes_formula<bare<Image>>(0)) {
    if constexpr (std::is_same_v<bare<Image>, bare<X>>) return bare<X>(std::forward<X>(x));
    else return make_map(ops::computed_again_op<element_of<X>>{}, std::forward<X>(x));
  } else {
    if (op.options.padding_mode == pad_mode::constant) return evaluated<X>(eval_to_read(std::forward<X>(x)));
    check_defined(op.name, x);
    check_defined(op.name, w);
    const pad_amounts amounts = amounts_around(op.options, w.shape());
    const pad_mode mode = op.options.padding_mode;
    op.options.padding = 0;
    op.options.padding_mode = pad_mode::constant;
    return evaluated<X>(eval(pad(std::forward<X>(x), amounts, mode)));
  }
}

}  // namespace detail

/// The convolution (really the correlation) of x (N,C,H,W) with weights (F,C/groups,KH,KW) and a bias (F,):
/// (N,F,H',W'), where H' = (H + 2 padding - dilation (KH - 1) - 1) / stride + 1, rounded down, as
/// torch.nn.functional.conv2d. The result is channels-last; x is read as it is where it is channels-last, else from a
/// copy. Elementwise work on the result runs inside the kernel. Derivative: dx, dw and db are convolutions of the
/// gradient, and its sum. Errors: shape_error for channels and groups that do not fit and for a window larger than the
/// padded x, value_error for a stride or dilation below 1 and negative padding.
///
///     auto h = relu(conv2d(pictures, filters, bias, {.stride = 2, .padding = 1}));
template <class X, class W, class B>
  requires detail::takes_operands<ops::conv_op<2, true>, X, W, B>
detail::kernel_of<ops::conv_op<2, true>, detail::image_of<ops::conv_op<2, true>, X>, W, B> conv2d(
    X&& x, W&& w, B&& bias, const conv_options<2>& options = {}) {
  ops::conv_op<2, true> op(options);
  return detail::make_kernel(op, detail::surrounded(op, std::forward<X>(x), w), std::forward<W>(w),
                             std::forward<B>(bias));
}
/// The same without a bias.
template <class X, class W>
  requires detail::takes_operands<ops::conv_op<2, false>, X, W>
detail::kernel_of<ops::conv_op<2, false>, detail::image_of<ops::conv_op<2, false>, X>, W> conv2d(
    X&& x, W&& w, const conv_options<2>& options = {}) {
  ops::conv_op<2, false> op(options);
  return detail::make_kernel(op, detail::surrounded(op, std::forward<X>(x), w), std::forward<W>(w));
}
template <class X, class W, class B,
          class Problem = typename detail::kernel_check<ops::conv_op<2, true>, X, W, B>::problem,
          class Fix = typename detail::kernel_check<ops::conv_op<2, true>, X, W, B>::fix>
void conv2d(X&&, W&&, B&&, const conv_options<2>& = {}) = delete;
template <class X, class W, class Problem = typename detail::kernel_check<ops::conv_op<2, false>, X, W>::problem,
          class Fix = typename detail::kernel_check<ops::conv_op<2, false>, X, W>::fix>
void conv2d(X&&, W&&, const conv_options<2>& = {}) = delete;

/// The convolution of x (N,C,L) with weights (F,C/groups,K) and a bias (F,); see conv2d.
///
///     auto h = conv1d(signals, taps, bias, {.dilation = 2});
template <class X, class W, class B>
  requires detail::takes_operands<ops::conv_op<1, true>, X, W, B>
detail::kernel_of<ops::conv_op<1, true>, detail::image_of<ops::conv_op<1, true>, X>, W, B> conv1d(
    X&& x, W&& w, B&& bias, const conv_options<1>& options = {}) {
  ops::conv_op<1, true> op(options);
  return detail::make_kernel(op, detail::surrounded(op, std::forward<X>(x), w), std::forward<W>(w),
                             std::forward<B>(bias));
}
template <class X, class W>
  requires detail::takes_operands<ops::conv_op<1, false>, X, W>
detail::kernel_of<ops::conv_op<1, false>, detail::image_of<ops::conv_op<1, false>, X>, W> conv1d(
    X&& x, W&& w, const conv_options<1>& options = {}) {
  ops::conv_op<1, false> op(options);
  return detail::make_kernel(op, detail::surrounded(op, std::forward<X>(x), w), std::forward<W>(w));
}
template <class X, class W, class B,
          class Problem = typename detail::kernel_check<ops::conv_op<1, true>, X, W, B>::problem,
          class Fix = typename detail::kernel_check<ops::conv_op<1, true>, X, W, B>::fix>
void conv1d(X&&, W&&, B&&, const conv_options<1>& = {}) = delete;
template <class X, class W, class Problem = typename detail::kernel_check<ops::conv_op<1, false>, X, W>::problem,
          class Fix = typename detail::kernel_check<ops::conv_op<1, false>, X, W>::fix>
void conv1d(X&&, W&&, const conv_options<1>& = {}) = delete;

/// The convolution of x (N,C,D,H,W) with weights (F,C/groups,KD,KH,KW) and a bias (F,); see conv2d.
///
///     auto h = conv3d(volumes, blocks, bias, {.padding = 1});
template <class X, class W, class B>
  requires detail::takes_operands<ops::conv_op<3, true>, X, W, B>
detail::kernel_of<ops::conv_op<3, true>, detail::image_of<ops::conv_op<3, true>, X>, W, B> conv3d(
    X&& x, W&& w, B&& bias, const conv_options<3>& options = {}) {
  ops::conv_op<3, true> op(options);
  return detail::make_kernel(op, detail::surrounded(op, std::forward<X>(x), w), std::forward<W>(w),
                             std::forward<B>(bias));
}
template <class X, class W>
  requires detail::takes_operands<ops::conv_op<3, false>, X, W>
detail::kernel_of<ops::conv_op<3, false>, detail::image_of<ops::conv_op<3, false>, X>, W> conv3d(
    X&& x, W&& w, const conv_options<3>& options = {}) {
  ops::conv_op<3, false> op(options);
  return detail::make_kernel(op, detail::surrounded(op, std::forward<X>(x), w), std::forward<W>(w));
}
template <class X, class W, class B,
          class Problem = typename detail::kernel_check<ops::conv_op<3, true>, X, W, B>::problem,
          class Fix = typename detail::kernel_check<ops::conv_op<3, true>, X, W, B>::fix>
void conv3d(X&&, W&&, B&&, const conv_options<3>& = {}) = delete;
template <class X, class W, class Problem = typename detail::kernel_check<ops::conv_op<3, false>, X, W>::problem,
          class Fix = typename detail::kernel_check<ops::conv_op<3, false>, X, W>::fix>
void conv3d(X&&, W&&, const conv_options<3>& = {}) = delete;

}  // namespace sinter
