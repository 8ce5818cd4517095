// sinter/cpu/detail/conv_shape.hpp: the extents of a convolution, and what is left to do with its results.
#pragma once

#include "sinter/core/types.hpp"
#include "sinter/cpu/detail/gemm_args.hpp"

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

/// What happens to results while they are in cache: `bias` (one per column) is added unless it is null, and
/// `epilogue(ctx, r0, r1, c0, c1)`, if not null, is called as that of gemm_args: once for every element, on complete
/// tiles of the matrix (pixels, channels), by the thread which finished them. It must not call `gemm` or a convolution.
template <class T>
struct conv_finish {
  const T* bias = nullptr;
  void (*epilogue)(void* ctx, index_t r0, index_t r1, index_t c0, index_t c1) = nullptr;
  void* ctx = nullptr;
};

namespace detail {

struct index_range {
  index_t begin, end;
  bool holds(index_t i) const { return i >= begin && i < end; }
};

constexpr index_t floor_div(index_t a, index_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// One spatial axis: result o meets element first + o * step + tap * dilation.
struct conv_axis {
  index_t in, out, taps, step, dilation, first;

  index_t at(index_t o, index_t tap) const { return first + o * step + tap * dilation; }

  /// The taps that meet an element at result o.
  index_range taps_inside(index_t o) const {
    const index_t at = first + o * step;
    if (at >= 0 && at + (taps - 1) * dilation < in) return {0, taps};
    const index_t begin = at >= 0 ? 0 : (dilation - 1 - at) / dilation;
    const index_t end = at >= in ? 0 : smaller(taps, (in - 1 - at) / dilation + 1);
    return begin < end ? index_range{begin, end} : index_range{0, 0};
  }

  /// The results among [o0, o1) for which all taps from `low` to `high` meet an element.
  index_range results_inside(index_t low, index_t high, index_t o0, index_t o1) const {
    const index_t begin = -floor_div(first + low * dilation, step);
    const index_t end = floor_div(in - 1 - first - high * dilation, step) + 1;
    const index_t from = begin > o0 ? begin : o0, to = smaller(end, o1);
    return from < to ? index_range{from, to} : index_range{o0, o0};
  }
};

inline conv_axis forward_axis(const conv_shape& s, int a) {
  return {s.in[a], s.out[a], s.kernel[a], s.stride[a], s.dilation[a], -s.padding[a]};
}

}  // namespace detail
}  // namespace sinter::cpu_impl
