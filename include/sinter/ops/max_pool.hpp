// sinter/ops/max_pool.hpp: the largest element of each window, over one, two and three spatial axes.
#pragma once

#include "sinter/ops/detail/picked.hpp"
#include "sinter/ops/detail/pooling.hpp"

namespace sinter {

/// How max_pool moves its window over N spatial axes: one number, or one for each axis.
///
///     max_pool2d(x, 3, {.stride = 2, .padding = 1});
///     max_pool2d(x, {3, 2}, {.ceil_mode = true});
template <int N>
struct max_pool_options {
  pool_stride<N> stride = {};  ///< by default the kernel
  per_axis<N> padding = 0;     ///< on both sides of x; at most half of the kernel
  per_axis<N> dilation = 1;    ///< from one tap to the next
  bool ceil_mode = false;      ///< a last window of which only part fits gives a result too
};

namespace ops {

/// Which tap of its window each result is, in row-major order: bytes, or where a window has more than 255 taps, words.
/// The largest byte, or -1, stands for a window without elements.
template <device D>
struct pool_places {
  tensor<std::uint8_t, 1, D> bytes;
  tensor<std::int32_t, 1, D> words;
};
inline constexpr index_t most_byte_taps = 255, no_byte_place = 255;

/// When forward saves the places of its results.
enum class save_places { never, while_recording, always };

/// y(n,c,o) = the largest of x(n, c, elements of o's window), the first of equal ones, NaN where there is one.
template <int N, class Window>
struct max_pool_op : pool_op<N, Window> {
  static constexpr const char* name = Window::is_adaptive ? (N == 1   ? "adaptive_max_pool1d"
                                                             : N == 2 ? "adaptive_max_pool2d"
                                                                      : "adaptive_max_pool3d")
                                      : N == 1            ? "max_pool1d"
                                      : N == 2            ? "max_pool2d"
                                                          : "max_pool3d";
  template <class T, device D>
  using saves = pool_places<D>;

  save_places when;
  max_pool_op(const Window& w, save_places s) : pool_op<N, Window>(w), when(s) {}

  extents<N + 2> shape(const extents<N + 2>& x) const {
    const extents<N + 2> y = this->window.results(name, x);
    if (this->extents_of(x, y).taps() > std::numeric_limits<std::int32_t>::max())
      sinter::detail::refuse<shape_error>(
          {name, ": x of shape ", x, " gives windows of more than 2^31 - 1 elements; pool in two steps"});
    return y;
  }
  /// Memory for the places of n results, if they are to be saved.
  template <device D>
  pool_places<D> new_places(index_t n, index_t taps) const {
    pool_places<D> places;
    if (when == save_places::never || (when == save_places::while_recording && !sinter::detail::recording()))
      return places;
    if (taps > most_byte_taps) places.words = tensor<std::int32_t, 1, D>::uninitialized({{n}});
    else places.bytes = tensor<std::uint8_t, 1, D>::uninitialized({{n}});
    return places;
  }
};

}  // namespace ops

namespace detail {

template <int N>
using max_pool_op = ops::max_pool_op<N, ops::sliding_window<N>>;

template <class X>
constexpr ops::save_places places_to_save() {
  return is_tracked_v<bare<X>> ? ops::save_places::while_recording : ops::save_places::never;
}
template <int N>
max_pool_op<N> max_pool_of(const per_axis<N>& kernel, const max_pool_options<N>& o, ops::save_places when) {
  return {{kernel, o.stride.of(kernel), o.padding, o.dilation, o.ceil_mode}, when};
}

/// The result of a max_pool_op, and where its elements stand in their planes of x.
template <class Op, class X>
values_and_indices<evaluated<X>> pool_with_indices(const Op& op, X&& x) {
  const auto e = make_kernel(op, std::forward<X>(x));
  using E = bare<decltype(e)>;
  static_assert(E::order < 2, "sinter: this op has no second derivative; use it on variables of order 1");
  using D = device_of<E>;
  const auto value = e.new_value();
  const auto places = e.compute_into(value, no_epilogue<D>);
  const auto indices =
      tensor<std::int64_t, E::rank, D>::uninitialized(value.shape(), strides_in(Op::format, value.shape()));
  kernels<Op, D>::find_indices(op, places, e.operands.template get<0>().shape(), indices);
  if constexpr (E::order > 0) return {e.record(value, places), indices};
  else return {value, indices};
}

}  // namespace detail

/// The largest element of each window of x (N,C,H,W): (N,C,H',W'), where H' = (H + 2 padding - dilation (KH - 1) - 1) /
/// stride + 1, as torch.nn.functional.max_pool2d. That is rounded down, or with ceil_mode up, but no window begins
/// behind x. The window moves by its own size unless a stride is given. Floating point. A window with a NaN gives NaN;
/// one whose taps all miss x, which takes a dilation, gives -inf. The result is channels-last; x is read as it is where
/// it is channels-last, else from a copy. Elementwise work on it runs inside the kernel on the host. Derivative: g goes
/// to the element that was taken, the first of equal ones. Errors: value_error for a kernel, stride or dilation below 1
/// and for padding below 0 or above half of the kernel, shape_error for a window larger than the padded x.
///
///     auto h = max_pool2d(pictures, 3, {.stride = 2, .padding = 1});
template <class X>
  requires detail::takes_operands<detail::max_pool_op<2>, X>
detail::kernel_of<detail::max_pool_op<2>, X> max_pool2d(X&& x, const per_axis<2>& kernel,
                                                        const max_pool_options<2>& options = {}) {
  return detail::make_kernel(detail::max_pool_of<2>(kernel, options, detail::places_to_save<X>()), std::forward<X>(x));
}
/// The largest element of each window of x (N,C,L); see max_pool2d.
///
///     auto h = max_pool1d(signals, 2);
template <class X>
  requires detail::takes_operands<detail::max_pool_op<1>, X>
detail::kernel_of<detail::max_pool_op<1>, X> max_pool1d(X&& x, const per_axis<1>& kernel,
                                                        const max_pool_options<1>& options = {}) {
  return detail::make_kernel(detail::max_pool_of<1>(kernel, options, detail::places_to_save<X>()), std::forward<X>(x));
}
/// The largest element of each window of x (N,C,D,H,W); see max_pool2d.
///
///     auto h = max_pool3d(volumes, {1, 2, 2});
template <class X>
  requires detail::takes_operands<detail::max_pool_op<3>, X>
detail::kernel_of<detail::max_pool_op<3>, X> max_pool3d(X&& x, const per_axis<3>& kernel,
                                                        const max_pool_options<3>& options = {}) {
  return detail::make_kernel(detail::max_pool_of<3>(kernel, options, detail::places_to_save<X>()), std::forward<X>(x));
}

/// The result of max_pool2d as `values`, and as `indices`, int64 of the same shape, where each of its elements stands
/// in its plane of x: h W + w, as PyTorch's return_indices. -1 for a window whose taps all miss x. Runs at once.
/// Derivative and errors: as max_pool2d.
///
///     auto [largest, places] = max_pool2d_with_indices(pictures, 2);
template <class X>
  requires detail::takes_operands<detail::max_pool_op<2>, X>
values_and_indices<detail::evaluated<X>> max_pool2d_with_indices(X&& x, const per_axis<2>& kernel,
                                                                 const max_pool_options<2>& options = {}) {
  return detail::pool_with_indices(detail::max_pool_of<2>(kernel, options, ops::save_places::always),
                                   std::forward<X>(x));
}
/// The result of max_pool1d, and where its elements stand along L; see max_pool2d_with_indices.
///
///     auto [largest, places] = max_pool1d_with_indices(signals, 2);
template <class X>
  requires detail::takes_operands<detail::max_pool_op<1>, X>
values_and_indices<detail::evaluated<X>> max_pool1d_with_indices(X&& x, const per_axis<1>& kernel,
                                                                 const max_pool_options<1>& options = {}) {
  return detail::pool_with_indices(detail::max_pool_of<1>(kernel, options, ops::save_places::always),
                                   std::forward<X>(x));
}
/// The result of max_pool3d, and where its elements stand in D, H and W: (d H + h) W + w; see max_pool2d_with_indices.
///
///     auto [largest, places] = max_pool3d_with_indices(volumes, 2);
template <class X>
  requires detail::takes_operands<detail::max_pool_op<3>, X>
values_and_indices<detail::evaluated<X>> max_pool3d_with_indices(X&& x, const per_axis<3>& kernel,
                                                                 const max_pool_options<3>& options = {}) {
  return detail::pool_with_indices(detail::max_pool_of<3>(kernel, options, ops::save_places::always),
                                   std::forward<X>(x));
}

// Rejections: the same parameters, so that braces in a call find them.
#define SINTER_MAX_POOL_REJECTIONS(name, axes)                                                             \
  template <class X, class Problem = typename detail::kernel_check<detail::max_pool_op<axes>, X>::problem, \
            class Fix = typename detail::kernel_check<detail::max_pool_op<axes>, X>::fix>                  \
  void name(X&&, const per_axis<axes>&, const max_pool_options<axes>& = {}) = delete;
SINTER_MAX_POOL_REJECTIONS(max_pool1d, 1)
SINTER_MAX_POOL_REJECTIONS(max_pool2d, 2)
SINTER_MAX_POOL_REJECTIONS(max_pool3d, 3)
SINTER_MAX_POOL_REJECTIONS(max_pool1d_with_indices, 1)
SINTER_MAX_POOL_REJECTIONS(max_pool2d_with_indices, 2)
SINTER_MAX_POOL_REJECTIONS(max_pool3d_with_indices, 3)
#undef SINTER_MAX_POOL_REJECTIONS

}  // namespace sinter
