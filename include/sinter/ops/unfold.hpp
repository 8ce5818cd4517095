// sinter/ops/unfold.hpp: unfold and fold: the windows of an image as columns, and columns added up to an image; and the
// windows along an axis.
#pragma once

#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/window.hpp"

namespace sinter {

/// How a window moves over an image for unfold and fold: one number, or one for each axis.
///
///     unfold(x, {3, 3}, {.padding = 1, .stride = 2});
struct unfold_options {
  per_axis<2> dilation = 1;
  per_axis<2> padding = 0;  ///< zeros in front of and behind x
  per_axis<2> stride = 1;
};

namespace ops {

/// An image (N,C,H,W) and its columns (N, C KH KW, BH BW): element (c,kh,kw), (bh,bw) of a column is element
/// b stride + k dilation - padding of channel c. Strides in elements.
struct unfold_extents {
  index_t batch = 1, channels = 1;
  index_t in[2] = {}, blocks[2] = {}, kernel[2] = {};
  index_t stride[2] = {}, padding[2] = {}, dilation[2] = {};
  index_t image_batch = 0, image_channel = 0, image[2] = {};
  index_t column_batch = 0, column_row = 0, column_block = 0;
};

/// Base of unfold and fold, with or without the axis of the batch.
struct window_columns_op : kernel_op {
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  static constexpr take takes(int) { return take::strided; }
  template <device D>
  static constexpr bool has_kernels_on = true;

  per_axis<2> kernel_size;
  unfold_options options;
  window_columns_op(const per_axis<2>& kernel, const unfold_options& o) : kernel_size(kernel), options(o) {}

  /// The number of windows along an axis. Errors: as unfold's.
  index_t blocks_of(const char* op, int axis, index_t extent) const {
    using sinter::detail::refuse;
    sinter::detail::check_window(op, options.stride, options.dilation);
    const index_t kernel = kernel_size[axis], zeros = options.padding[axis];
    if (kernel < 1) refuse<value_error>({op, ": kernel_size is ", kernel, "; it must be 1 or more"});
    if (zeros < 0) refuse<value_error>({op, ": padding is ", zeros, "; it must not be negative"});
    const index_t reach = options.dilation[axis] * (kernel - 1) + 1;
    if (extent + 2 * zeros < reach)
      refuse<shape_error>({op, ": a window of ", reach, " elements is larger than the ", extent,
                           " elements of an image's axis with padding ", zeros});
    return (extent + 2 * zeros - reach) / options.stride[axis] + 1;
  }

  template <class Image, class Columns>
  unfold_extents extents_of(const Image& image, const Columns& columns) const {
    constexpr int R = Image::rank, first = R - 3;
    unfold_extents e;
    if constexpr (first == 1) {
      e.batch = image.shape()[0];
      e.image_batch = image.strides()[0];
      e.column_batch = columns.strides()[0];
    }
    e.channels = image.shape()[first];
    e.image_channel = image.strides()[first];
    e.column_row = columns.strides()[first];
    e.column_block = columns.strides()[first + 1];
    for (int d = 0; d < 2; ++d) {
      e.in[d] = image.shape()[first + 1 + d];
      e.image[d] = image.strides()[first + 1 + d];
      e.blocks[d] = blocks_of("unfold", d, e.in[d]);
      e.kernel[d] = kernel_size[d];
      e.stride[d] = options.stride[d];
      e.padding[d] = options.padding[d];
      e.dilation[d] = options.dilation[d];
    }
    return e;
  }
};

struct unfold_op : window_columns_op {
  static constexpr const char* name = "unfold";
  static constexpr bool makes_columns = true;
  using window_columns_op::window_columns_op;

  static constexpr int rank(int image) { return image - 1; }
  template <int R>
  extents<R - 1> shape(const extents<R>& x) const {
    extents<R - 1> y;
    if constexpr (R == 4) y[0] = x[0];
    y[R - 3] = x[R - 3] * kernel_size[0] * kernel_size[1];
    y[R - 2] = blocks_of(name, 0, x[R - 2]) * blocks_of(name, 1, x[R - 1]);
    return y;
  }
  template <class X>
  static constexpr auto mistake() {
    return floating_of_rank<3, 4, X>();
  }
};

struct fold_op : window_columns_op {
  static constexpr const char* name = "fold";
  static constexpr bool makes_columns = false;

  per_axis<2> output_size;
  fold_op(const per_axis<2>& size, const per_axis<2>& kernel, const unfold_options& o)
      : window_columns_op(kernel, o), output_size(size) {}

  static constexpr int rank(int columns) { return columns + 1; }
  template <int R>
  extents<R + 1> shape(const extents<R>& x) const {
    using sinter::detail::refuse;
    const index_t windows = blocks_of(name, 0, output_size[0]) * blocks_of(name, 1, output_size[1]);
    const index_t taps = kernel_size[0] * kernel_size[1];
    if (x[R - 2] % taps != 0)
      refuse<shape_error>({"fold: columns of shape ", x, " have ", x[R - 2], " elements, which windows of ",
                           kernel_size[0], " x ", kernel_size[1], " do not divide"});
    if (x[R - 1] != windows)
      refuse<shape_error>({"fold: columns of shape ", x, " are ", x[R - 1], "; an image of ", output_size[0], " x ",
                           output_size[1], " has ", windows, " windows"});
    extents<R + 1> y;
    if constexpr (R == 3) y[0] = x[0];
    y[R - 2] = x[R - 2] / taps;
    y[R - 1] = output_size[0];
    y[R] = output_size[1];
    return y;
  }
  template <class X>
  static constexpr auto mistake() {
    return floating_of_rank<2, 3, X>();
  }
};

}  // namespace ops

/// The windows of an image as columns, as torch.nn.functional.unfold (im2col): (N,C,H,W) => (N, C KH KW, windows), and
/// (C,H,W) => (C KH KW, windows). A window is larger by dilation, moves by stride, and reads zeros outside of x, of
/// which there are `padding` at each side. Floating point; the result is row-major. Derivative: fold of g. Errors:
/// shape_error for a window larger than the padded x, value_error for a kernel_size, stride or dilation below 1 and
/// negative padding.
///
///     tensor columns = unfold(pictures, {3, 3}, {.padding = 1});
template <class X>
  requires detail::takes_operands<ops::unfold_op, X>
detail::kernel_of<ops::unfold_op, X> unfold(X&& x, const per_axis<2>& kernel_size, const unfold_options& options = {}) {
  return detail::make_kernel(ops::unfold_op(kernel_size, options), std::forward<X>(x));
}
template <class X, class Problem = typename detail::kernel_check<ops::unfold_op, X>::problem,
          class Fix = typename detail::kernel_check<ops::unfold_op, X>::fix>
void unfold(X&&, const per_axis<2>&, const unfold_options& = {}) = delete;

/// Windows of `size` neighbours along an axis, each `step` behind the one before, as a view of x: (…,n,…) => (…,(n -
/// size) / step + 1,…,size), where the last axis is a window; PyTorch's Tensor.unfold. Every element type. Derivative:
/// each element's g, from all windows that it is in. Errors: value_error for a size below 0 or a step below 1,
/// shape_error for windows larger than the axis, index_error for an axis that x does not have.
///
///     tensor smooth = mean(unfold(signal, 0, 5, 1), -1);
template <class X>
  requires(detail::has_axes<X> && rank_of<X> < max_rank)
auto unfold(X&& x, detail::whole axis, detail::whole size, detail::whole step) {
  return detail::eval_to_read(std::forward<X>(x)).unfold(axis, size, step);
}
template <class X, class Problem = typename detail::axes_mistake<X>::problem,
          class Fix = typename detail::axes_mistake<X>::fix>
void unfold(X&&, index_t, index_t, index_t) = delete;

/// Columns added up to an image of `output_size`, as torch.nn.functional.fold (col2im): (N, C KH KW, windows) =>
/// (N,C,H,W), and (C KH KW, windows) => (C,H,W). Each element is the sum over the windows that it is in; options are
/// those of the unfold whose columns these are. Floating point; the result is row-major. Derivative: unfold of g.
/// Errors: as unfold, and shape_error for columns whose number or size is another.
///
///     tensor sums = fold(unfold(pictures, {2, 2}), {28, 28}, {2, 2});
template <class X>
  requires detail::takes_operands<ops::fold_op, X>
detail::kernel_of<ops::fold_op, X> fold(X&& x, const per_axis<2>& output_size, const per_axis<2>& kernel_size,
                                        const unfold_options& options = {}) {
  return detail::make_kernel(ops::fold_op(output_size, kernel_size, options), std::forward<X>(x));
}
template <class X, class Problem = typename detail::kernel_check<ops::fold_op, X>::problem,
          class Fix = typename detail::kernel_check<ops::fold_op, X>::fix>
void fold(X&&, const per_axis<2>&, const per_axis<2>&, const unfold_options& = {}) = delete;

}  // namespace sinter
