// sinter/ops/adaptive_pool.hpp: pooling to a given size, over one, two and three spatial axes.
#pragma once

#include "sinter/ops/avg_pool.hpp"
#include "sinter/ops/max_pool.hpp"

namespace sinter {

namespace detail {

template <int N>
using adaptive_avg_pool_op = ops::avg_pool_op<N, ops::adaptive_window<N>>;
template <int N>
using adaptive_max_pool_op = ops::max_pool_op<N, ops::adaptive_window<N>>;

template <int N>
adaptive_max_pool_op<N> adaptive_max_pool_of(const per_axis<N>& size, ops::save_places when) {
  return {ops::adaptive_window<N>{size}, when};
}

}  // namespace detail

/// The means of x (N,C,H,W) in a grid of size (H',W'): (N,C,H',W'), as torch.nn.functional.adaptive_avg_pool2d. Result
/// i along H is that of the elements from i H / H', rounded down, to (i + 1) H / H', rounded up. The size is one
/// number, or one for each axis; keep_extent is that of x, and 1 is global pooling. Floating point. The result is
/// channels-last, as that of avg_pool2d. Elementwise work on the result runs inside the kernel on the host. Derivative:
/// each element gets g divided by the number of elements, from all parts with it. Errors: value_error for a negative
/// size, shape_error where an axis of x has no elements.
///
///     auto features = adaptive_avg_pool2d(pictures, 1);
template <class X>
  requires detail::takes_operands<detail::adaptive_avg_pool_op<2>, X>
detail::kernel_of<detail::adaptive_avg_pool_op<2>, X> adaptive_avg_pool2d(X&& x, const per_axis<2>& size) {
  return detail::make_kernel(detail::adaptive_avg_pool_op<2>({size}), std::forward<X>(x));
}
/// The means of `size` parts of x (N,C,L); see adaptive_avg_pool2d.
///
///     auto features = adaptive_avg_pool1d(signals, 5);
template <class X>
  requires detail::takes_operands<detail::adaptive_avg_pool_op<1>, X>
detail::kernel_of<detail::adaptive_avg_pool_op<1>, X> adaptive_avg_pool1d(X&& x, const per_axis<1>& size) {
  return detail::make_kernel(detail::adaptive_avg_pool_op<1>({size}), std::forward<X>(x));
}
/// The means of x (N,C,D,H,W) in a grid; see adaptive_avg_pool2d.
///
///     auto features = adaptive_avg_pool3d(volumes, {keep_extent, 7, 7});
template <class X>
  requires detail::takes_operands<detail::adaptive_avg_pool_op<3>, X>
detail::kernel_of<detail::adaptive_avg_pool_op<3>, X> adaptive_avg_pool3d(X&& x, const per_axis<3>& size) {
  return detail::make_kernel(detail::adaptive_avg_pool_op<3>({size}), std::forward<X>(x));
}

/// The largest elements of x (N,C,H,W) in a grid of size (H',W'), which lies as that of adaptive_avg_pool2d. A part
/// with a NaN gives NaN. Floating point. The result is channels-last. Elementwise work on it runs inside the kernel on
/// the host. Derivative: g goes to the element that was taken, the first of equal ones. Errors: as adaptive_avg_pool2d.
///
///     auto features = adaptive_max_pool2d(pictures, {3, 2});
template <class X>
  requires detail::takes_operands<detail::adaptive_max_pool_op<2>, X>
detail::kernel_of<detail::adaptive_max_pool_op<2>, X> adaptive_max_pool2d(X&& x, const per_axis<2>& size) {
  return detail::make_kernel(detail::adaptive_max_pool_of<2>(size, detail::places_to_save<X>()), std::forward<X>(x));
}
/// The largest elements of `size` parts of x (N,C,L); see adaptive_max_pool2d.
///
///     auto features = adaptive_max_pool1d(signals, 5);
template <class X>
  requires detail::takes_operands<detail::adaptive_max_pool_op<1>, X>
detail::kernel_of<detail::adaptive_max_pool_op<1>, X> adaptive_max_pool1d(X&& x, const per_axis<1>& size) {
  return detail::make_kernel(detail::adaptive_max_pool_of<1>(size, detail::places_to_save<X>()), std::forward<X>(x));
}
/// The largest elements of x (N,C,D,H,W) in a grid; see adaptive_max_pool2d.
///
///     auto features = adaptive_max_pool3d(volumes, 1);
template <class X>
  requires detail::takes_operands<detail::adaptive_max_pool_op<3>, X>
detail::kernel_of<detail::adaptive_max_pool_op<3>, X> adaptive_max_pool3d(X&& x, const per_axis<3>& size) {
  return detail::make_kernel(detail::adaptive_max_pool_of<3>(size, detail::places_to_save<X>()), std::forward<X>(x));
}

/// The result of adaptive_max_pool2d as `values`, and as `indices`, int64 of the same shape, where each of its elements
/// stands in its plane of x: h W + w, as PyTorch's return_indices. Runs at once. Derivative and errors: as
/// adaptive_max_pool2d.
///
///     auto [largest, places] = adaptive_max_pool2d_with_indices(pictures, 1);
template <class X>
  requires detail::takes_operands<detail::adaptive_max_pool_op<2>, X>
values_and_indices<detail::evaluated<X>> adaptive_max_pool2d_with_indices(X&& x, const per_axis<2>& size) {
  return detail::pool_with_indices(detail::adaptive_max_pool_of<2>(size, ops::save_places::always), std::forward<X>(x));
}
/// The result of adaptive_max_pool1d, and where its elements stand along L; see adaptive_max_pool2d_with_indices.
///
///     auto [largest, places] = adaptive_max_pool1d_with_indices(signals, 3);
template <class X>
  requires detail::takes_operands<detail::adaptive_max_pool_op<1>, X>
values_and_indices<detail::evaluated<X>> adaptive_max_pool1d_with_indices(X&& x, const per_axis<1>& size) {
  return detail::pool_with_indices(detail::adaptive_max_pool_of<1>(size, ops::save_places::always), std::forward<X>(x));
}
/// The result of adaptive_max_pool3d, and where its elements stand in D, H and W: (d H + h) W + w; see
/// adaptive_max_pool2d_with_indices.
///
///     auto [largest, places] = adaptive_max_pool3d_with_indices(volumes, 2);
template <class X>
  requires detail::takes_operands<detail::adaptive_max_pool_op<3>, X>
values_and_indices<detail::evaluated<X>> adaptive_max_pool3d_with_indices(X&& x, const per_axis<3>& size) {
  return detail::pool_with_indices(detail::adaptive_max_pool_of<3>(size, ops::save_places::always), std::forward<X>(x));
}

// Rejections: the same parameters, so that braces in a call find them.
#define SINTER_ADAPTIVE_POOL_REJECTIONS(name, op, axes)                                           \
  template <class X, class Problem = typename detail::kernel_check<detail::op<axes>, X>::problem, \
            class Fix = typename detail::kernel_check<detail::op<axes>, X>::fix>                  \
  void name(X&&, const per_axis<axes>&) = delete;
SINTER_ADAPTIVE_POOL_REJECTIONS(adaptive_avg_pool1d, adaptive_avg_pool_op, 1)
SINTER_ADAPTIVE_POOL_REJECTIONS(adaptive_avg_pool2d, adaptive_avg_pool_op, 2)
SINTER_ADAPTIVE_POOL_REJECTIONS(adaptive_avg_pool3d, adaptive_avg_pool_op, 3)
SINTER_ADAPTIVE_POOL_REJECTIONS(adaptive_max_pool1d, adaptive_max_pool_op, 1)
SINTER_ADAPTIVE_POOL_REJECTIONS(adaptive_max_pool2d, adaptive_max_pool_op, 2)
SINTER_ADAPTIVE_POOL_REJECTIONS(adaptive_max_pool3d, adaptive_max_pool_op, 3)
SINTER_ADAPTIVE_POOL_REJECTIONS(adaptive_max_pool1d_with_indices, adaptive_max_pool_op, 1)
SINTER_ADAPTIVE_POOL_REJECTIONS(adaptive_max_pool2d_with_indices, adaptive_max_pool_op, 2)
SINTER_ADAPTIVE_POOL_REJECTIONS(adaptive_max_pool3d_with_indices, adaptive_max_pool_op, 3)
#undef SINTER_ADAPTIVE_POOL_REJECTIONS

}  // namespace sinter
