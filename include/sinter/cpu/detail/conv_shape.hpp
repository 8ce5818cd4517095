// sinter/cpu/detail/conv_shape.hpp: the extents of a convolution, and what is left to do with its results.
#pragma once

#include "sinter/core/types.hpp"
#include "sinter/cpu/detail/gemm_args.hpp"
#include "sinter/ops/conv_axes.hpp"

namespace sinter::cpu_impl {

/// A convolution of up to three spatial axes (depth, height, width); the leading extents of fewer axes are 1.
///
/// y(n, o, f) = sum over taps t and channels c of x(n, o * stride + t * dilation - padding, c) w(f, c, t), where x is 0
/// outside its extents. x is (N, in..., C) and y is (N, out..., F), both dense with the channels last. The channels and
/// the filters are cut into `groups` equal parts, and each part of the filters reads its part of the channels.
/// `padding` counts what lies in front of x; what lies behind follows from `out`.
struct conv_shape {
  index_t batch, channels, filters, groups;
  index_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

/// Strides of the weights (F, C / groups, kernel...), in elements.
struct conv_weight_strides {
  index_t filter, channel, tap[3];
};

/// The strides of row-major weights (F, C / groups, kernel...).
constexpr conv_weight_strides dense_weights(const conv_shape& s) {
  const index_t area = s.kernel[1] * s.kernel[2], taps = s.kernel[0] * area;
  return {s.channels / s.groups * taps, taps, {area, s.kernel[2], 1}};
}

/// The image that a convolution reads, dense: `data`, or where that is null what make(ctx, begin, end, to) writes
/// there, elements [begin, end) in the order of memory. It is called by several threads, more than once for some
/// elements, and must not call `gemm` or a convolution.
template <class T>
struct conv_image {
  const T* data = nullptr;
  void (*make)(const void* ctx, index_t begin, index_t end, T* to) = nullptr;
  const void* ctx = nullptr;

  conv_image(const T* memory) : data(memory) {}
  conv_image(void (*how)(const void*, index_t, index_t, T*), const void* with) : make(how), ctx(with) {}
};

/// What happens to results while they are in cache: `bias` (one per column) is added unless it is null, and `after` is
/// called on tiles of the matrix (pixels, channels).
template <class T>
struct conv_finish {
  const T* bias = nullptr;
  tile_epilogue after = {};
};

namespace detail {

using ops::conv_axis;
using ops::floor_div;
using ops::forward_axis;
using ops::index_range;

}  // namespace detail
}  // namespace sinter::cpu_impl
