// sinter/ops/conv_axes.hpp: the numbers of a convolution as kernels see them, and the places that its taps meet.
#pragma once

#include <algorithm>
#include <numeric>

#include "sinter/core/types.hpp"

namespace sinter::ops {

/// A convolution as kernels see it: three spatial axes, of which the leading ones have one element where there are
/// fewer. x and y have their channels last. A transposed convolution is seen as the one whose gradient it is: its
/// result is that one's x.
struct conv_extents {
  index_t batch, channels, filters, groups;
  index_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  index_t stride[3] = {1, 1, 1}, padding[3] = {0, 0, 0}, dilation[3] = {1, 1, 1};
  index_t w_filter = 0, w_channel = 0, w_tap[3] = {0, 0, 0};  ///< strides of the weights

  /// The same for an x that lies channel by channel, of one group and at most two axes: its channels are an axis, and
  /// the weights reach over all of it.
  conv_extents of_planes() const {
    conv_extents e = *this;
    e.in[0] = e.kernel[0] = channels;
    e.w_tap[0] = w_channel;
    e.channels = 1;
    return e;
  }
};

struct index_range {
  index_t begin, end;
  constexpr bool holds(index_t i) const { return i >= begin && i < end; }
};

constexpr index_t floor_div(index_t a, index_t b) { return a >= 0 ? a / b : -((b - 1 - a) / b); }

/// One spatial axis: result o meets element first + o * step + tap * dilation.
struct conv_axis {
  index_t in, out, taps, step, dilation, first;

  constexpr index_t at(index_t o, index_t tap) const { return first + o * step + tap * dilation; }
  /// The element that the first tap of result o meets, or the last; the nearest one where that is outside.
  constexpr index_t met(index_t o, bool last) const {
    const index_t element = at(o, last ? taps - 1 : 0);
    return element < 0 ? 0 : element < in ? element : in - 1;
  }

  /// Is result o element o, and nothing else?
  constexpr bool is_identity() const { return taps == 1 && step == 1 && first == 0 && in == out; }

  /// The taps that meet an element at result o.
  constexpr index_range taps_inside(index_t o) const {
    const index_t at = first + o * step;
    if (at >= 0 && at + (taps - 1) * dilation < in) return {0, taps};
    const index_t begin = at >= 0 ? 0 : (dilation - 1 - at) / dilation;
    const index_t end = at >= in ? 0 : std::min(taps, (in - 1 - at) / dilation + 1);
    return begin < end ? index_range{begin, end} : index_range{0, 0};
  }

  /// The results among [o0, o1) for which all taps from `low` to `high` meet an element.
  constexpr index_range results_inside(index_t low, index_t high, index_t o0, index_t o1) const {
    const index_t begin = -floor_div(first + low * dilation, step);
    const index_t end = floor_div(in - 1 - first - high * dilation, step) + 1;
    const index_t from = begin > o0 ? begin : o0, to = std::min(end, o1);
    return from < to ? index_range{from, to} : index_range{o0, o0};
  }
};

/// Axis a of a convolution, from y to x. Shape has the extents of conv_extents.
template <class Shape>
constexpr conv_axis forward_axis(const Shape& s, int a) {
  return {s.in[a], s.out[a], s.kernel[a], s.stride[a], s.dilation[a], -s.padding[a]};
}

/// A problem of stride 1 that makes every `stride`th element of an axis of dx: taps last_tap, last_tap - tap_step, ...
/// of the kernel, for dx at `phase`, phase + stride, ...
struct gradient_phase {
  conv_axis axis;  ///< over dy
  index_t last_tap, tap_step;
};

/// Element i of dx meets o of dy at tap k where i + padding = o * stride + k * dilation. With g the greatest common
/// divisor of stride and dilation, the taps for i = phase + q * stride are k0, k0 + stride / g, ..., if there are any,
/// and they meet o = q + (phase + padding - k0 * dilation) / stride, and every dilation / g th one before. The taps are
/// taken in reverse order, so that o rises.
template <class Shape>
constexpr gradient_phase phase_of(const Shape& s, int a, index_t phase) {
  const index_t stride = s.stride[a], dilation = s.dilation[a], g = std::gcd(stride, dilation);
  const index_t tap_step = stride / g, o_step = dilation / g, reach = std::min(s.kernel[a], tap_step);
  index_t k0 = 0;
  while (k0 < reach && (phase + s.padding[a] - k0 * dilation) % stride != 0) ++k0;
  const index_t taps = k0 < reach ? (s.kernel[a] - k0 + tap_step - 1) / tap_step : 0;
  const index_t last = taps > 0 ? k0 + (taps - 1) * tap_step : 0;
  const index_t first = taps > 0 ? (phase + s.padding[a] - last * dilation) / stride : 0;
  const index_t results = phase < s.in[a] ? (s.in[a] - phase + stride - 1) / stride : 0;
  return {{s.out[a], results, taps, 1, o_step, first}, last, tap_step};
}

}  // namespace sinter::ops
