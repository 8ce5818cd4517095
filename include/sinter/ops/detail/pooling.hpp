// sinter/ops/detail/pooling.hpp: the windows of pooling, sliding and adaptive ones.
#pragma once

#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/window.hpp"

namespace sinter {

/// By how much a pooling window moves: one number, or one for each axis; where none is given, by its own size.
template <int N>
class pool_stride {
 public:
  pool_stride() : values_(1), is_kernel_(true) {}
  template <std::integral I>
  pool_stride(I all) : values_(all) {}  // NOLINT: implicit on purpose
  pool_stride(std::initializer_list<index_t> each) : values_(each) {}

  const per_axis<N>& of(const per_axis<N>& kernel) const { return is_kernel_ ? kernel : values_; }

 private:
  per_axis<N> values_;
  bool is_kernel_ = false;
};

/// As an extent of adaptive pooling: that of x.
///
///     adaptive_avg_pool2d(x, {keep_extent, 7});
inline constexpr index_t keep_extent = -1;

namespace ops {

/// The numbers from begin to end - 1.
struct pool_range {
  index_t begin, end;
  SINTER_WORD index_t size() const { return end - begin; }
};

/// The windows along one axis. The window of result o has its tap t at element start(o) + t * dilation of x.
struct pool_axis {
  index_t in = 1, out = 1;
  index_t kernel = 1;  ///< taps of a window; of adaptive ones the most that a window has
  index_t stride = 1, padding = 0, dilation = 1;
  bool is_adaptive = false;  ///< the windows cut x into `out` parts of like size, which may overlap by an element

  SINTER_WORD index_t start(index_t o) const { return is_adaptive ? o * in / out : o * stride - padding; }
  /// The taps of result o that meet an element of x.
  SINTER_WORD pool_range taps(index_t o) const {
    const index_t at = start(o);
    if (is_adaptive) return {0, ((o + 1) * in + out - 1) / out - at};
    const index_t begin = at >= 0 ? 0 : (dilation - 1 - at) / dilation;
    index_t end = at >= in ? 0 : (in - 1 - at) / dilation + 1;
    if (end > kernel) end = kernel;
    return begin < end ? pool_range{begin, end} : pool_range{0, 0};
  }
  /// The results whose windows begin at or before element i and end at or behind it.
  SINTER_WORD pool_range results(index_t i) const {
    if (is_adaptive) return {i * out / in, ((i + 1) * out + in - 1) / in};
    const index_t first = i + padding - (kernel - 1) * dilation, last = (i + padding) / stride;
    return {first > 0 ? (first + stride - 1) / stride : 0, last < out ? last + 1 : out};
  }
  /// The tap of result o at element i, which lies in its window; -1 between two taps.
  SINTER_WORD index_t tap_at(index_t o, index_t i) const {
    const index_t distance = i - start(o);
    return distance % dilation == 0 ? distance / dilation : -1;
  }
  /// How many elements the average of result o counts along this axis. Padding counts as far as it reaches, on both
  /// sides of x; what a last window has beyond that does not.
  SINTER_WORD index_t counted(index_t o, bool padding_counts) const {
    if (is_adaptive || !padding_counts) return taps(o).size();
    const index_t inside = (in + padding - start(o) + dilation - 1) / dilation;
    return inside < kernel ? inside : kernel;
  }
};

/// Pooling as kernels see it: three spatial axes, of which the leading ones have one element where there are fewer. x
/// and y have their channels last.
struct pool_extents {
  index_t batch = 0, channels = 0;
  pool_axis axis[3];

  SINTER_WORD index_t results() const { return batch * axis[0].out * axis[1].out * axis[2].out * channels; }
  SINTER_WORD index_t elements() const { return batch * axis[0].in * axis[1].in * axis[2].in * channels; }
  SINTER_WORD index_t taps() const { return axis[0].kernel * axis[1].kernel * axis[2].kernel; }
  /// The number of a tap in its window, in row-major order.
  SINTER_WORD index_t tap_number(const index_t (&tap)[3]) const {
    return (tap[0] * axis[1].kernel + tap[1]) * axis[2].kernel + tap[2];
  }
  /// Where tap number `tap` of result o lies in its plane of x, in row-major order.
  SINTER_WORD index_t place_in_plane(const index_t (&o)[3], index_t tap) const {
    index_t place = 0, area = 1;
    for (int d = 2; d >= 0; --d) {
      place += (axis[d].start(o[d]) + tap % axis[d].kernel * axis[d].dilation) * area;
      tap /= axis[d].kernel;
      area *= axis[d].in;
    }
    return place;
  }
};

/// How many windows lie along an axis of x. Errors: as max_pool2d's.
SINTER_SHARED index_t count_windows(const char* op, sinter::detail::shape_piece x, int axis, index_t kernel,
                                    index_t stride, index_t padding, index_t dilation, bool ceil_mode);
#if SINTER_DEFINES
SINTER_SHARED index_t count_windows(const char* op, sinter::detail::shape_piece x, int axis, index_t kernel,
                                    index_t stride, index_t padding, index_t dilation, bool ceil_mode) {
  using sinter::detail::refuse;
  const index_t in = x.extents[axis];
  if (kernel < 1) refuse<value_error>({op, ": the kernel is ", kernel, "; it must be 1 or more"});
  sinter::detail::check_window(op, stride, dilation);
  if (padding < 0 || padding > kernel / 2)
    refuse<value_error>(
        {op, ": padding ", padding, " for a kernel of ", kernel, "; it must be from 0 to half of that"});
  if (in < 1) refuse<shape_error>({op, ": x of shape ", x, " has no elements on axis ", axis});
  // Rounded up, a window may begin where only part of it fits, but not in the padding behind x.
  const index_t reach = dilation * (kernel - 1) + 1, room = in + 2 * padding - reach;
  index_t out = 0;
  if (room >= 0) out = room / stride + 1 + (ceil_mode && room % stride != 0 ? 1 : 0);
  else out = ceil_mode && room + stride > 0 ? 1 : 0;
  if (ceil_mode && (out - 1) * stride >= in + padding) --out;
  if (out < 1)
    refuse<shape_error>({op, ": a window of ", reach, " elements is larger than axis ", axis, " of x of shape ", x,
                         " with padding ", padding});
  return out;
}
#endif  // SINTER_DEFINES

/// A window of one size that moves by a stride.
template <int N>
struct sliding_window {
  static constexpr bool is_adaptive = false;
  per_axis<N> kernel, stride, padding, dilation;
  bool ceil_mode;

  /// The shape of the result. Errors: as max_pool2d's.
  extents<N + 2> results(const char* op, const extents<N + 2>& x) const {
    extents<N + 2> y = x;
    for (int d = 0; d < N; ++d)
      y[d + 2] = count_windows(op, {x.data(), N + 2}, d + 2, kernel[d], stride[d], padding[d], dilation[d], ceil_mode);
    return y;
  }
  void set_axis(pool_axis& to, int d) const {
    to.kernel = kernel[d];
    to.stride = stride[d];
    to.padding = padding[d];
    to.dilation = dilation[d];
  }
};

/// Windows that cut x into as many parts as there shall be results.
template <int N>
struct adaptive_window {
  static constexpr bool is_adaptive = true;
  per_axis<N> size;

  /// The shape of the result. Errors: as adaptive_avg_pool2d's.
  extents<N + 2> results(const char* op, const extents<N + 2>& x) const {
    using sinter::detail::refuse;
    extents<N + 2> y = x;
    for (int d = 0; d < N; ++d) {
      if (x[d + 2] < 1) refuse<shape_error>({op, ": x of shape ", x, " has no elements on axis ", d + 2});
      if (size[d] < 0 && size[d] != keep_extent)
        refuse<value_error>({op, ": a result of size ", size[d], "; a size is 0 or more, or keep_extent"});
      if (size[d] != keep_extent) y[d + 2] = size[d];
    }
    return y;
  }
  void set_axis(pool_axis& to, int) const {
    to.is_adaptive = true;
    if (to.out > 0) to.kernel = to.in % to.out == 0 ? to.in / to.out : to.in / to.out + 2;
  }
};

/// Base of pooling ops: their operand, their shapes, and where the axes stand that kernels see.
template <int N, class Window>
struct pool_op : kernel_op {
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  static constexpr memory_format format = memory_format::channels_last;
  static constexpr bool takes_epilogue = true, has_variants = true;
  template <device D>
  static constexpr bool has_kernels_on = true;

  Window window;
  explicit pool_op(const Window& w) : window(w) {}

  pool_extents extents_of(const extents<N + 2>& x, const extents<N + 2>& y) const {
    pool_extents e;
    e.batch = x[0];
    e.channels = x[1];
    for (int d = 0, to = 3 - N; d < N; ++d, ++to) {
      e.axis[to].in = x[d + 2];
      e.axis[to].out = y[d + 2];
      window.set_axis(e.axis[to], d);
    }
    return e;
  }
  template <class X>
  static constexpr auto mistake() {
    return kernel_op::floating_of_rank<N + 2, N + 2, X>();
  }
};

}  // namespace ops
}  // namespace sinter
