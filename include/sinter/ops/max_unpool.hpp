// sinter/ops/max_unpool.hpp: elements put back where max_pool took them from.
#pragma once

#include "sinter/ops/detail/pooling.hpp"
#include "sinter/ops/detail/scatter.hpp"

namespace sinter {

/// Of which pooling max_unpool is the way back, over N spatial axes: one number, or one for each axis.
///
///     max_unpool2d(values, indices, 3, {.stride = 2, .padding = 1});
///     max_unpool2d(values, indices, 2, {.output_size = {5, 5}});
template <int N>
struct max_unpool_options {
  pool_stride<N> stride = {};   ///< by default the kernel
  per_axis<N> padding = 0;      ///< on both sides
  per_axis<N> output_size = 0;  ///< 0 for the smallest that the windows fill
};

namespace detail {

template <int N, class X, class I>
constexpr auto find_unpool_mistake() {
  using index_check = decltype(find_index_mistake<X, I, false>());
  if constexpr (!is_fitting<index_check>) return index_check{};
  else if constexpr (rank_of<X> != N + 2)
    return mistake<operands_of_ranks<rank_of<X>, rank_of<I>>, use_an_operand_of_rank<N + 2, N + 2>>{};
  else return fitting<element_of<X>>{};
}
template <class X, class I, int N>
using unpool_mistake = decltype(find_unpool_mistake<N, bare<X>, bare<I>>());

/// The extent of a result. Errors: as max_unpool2d's.
SINTER_SHARED index_t unpooled_extent(const char* op, int axis, index_t in, index_t kernel, index_t stride,
                                      index_t padding, index_t asked);
#if SINTER_DEFINES
SINTER_SHARED index_t unpooled_extent(const char* op, int axis, index_t in, index_t kernel, index_t stride,
                                      index_t padding, index_t asked) {
  if (kernel < 1) refuse<value_error>({op, ": the kernel is ", kernel, "; it must be 1 or more"});
  check_window(op, stride, 1);
  if (padding < 0) refuse<value_error>({op, ": padding is ", padding, "; it must not be negative"});
  const index_t least = (in - 1) * stride - 2 * padding + kernel;
  const index_t n = asked == 0 ? least : asked;
  if (n < 1 || n <= least - stride || n >= least + stride)
    refuse<value_error>({op, ": a result of ", n, " elements on axis ", axis, "; ", in, " windows come from ",
                         least - stride + 1 > 1 ? least - stride + 1 : 1, " to ", least + stride - 1});
  return n;
}
#endif

template <int N, class X, class I>
auto unpooled(const char* op, X&& x, const I& indices, const per_axis<N>& kernel, const max_unpool_options<N>& o) {
  using T = element_of<X>;
  using D = device_of<X>;
  check_defined(op, x);
  check_defined(op, indices);
  const extents<N + 2> shape = x.shape();
  if (!(shape == indices.shape()))
    refuse<shape_error>({op, ": indices of shape ", indices.shape(), " for x of shape ", shape});
  extents<N + 2> result = shape;
  index_t plane = 1;
  for (int d = 0; d < N; ++d)
    plane *= result[d + 2] =
        unpooled_extent(op, d + 2, shape[d + 2], kernel[d], o.stride.of(kernel)[d], o.padding[d], o.output_size[d]);
  const auto base = zeros<T, D>({1, 1, 1}).broadcast_to({shape[0], shape[1], plane});
  const index_t taken = shape.numel() / (shape[0] * shape[1] > 0 ? shape[0] * shape[1] : 1);
  const auto index = eval(indices).reshape({shape[0], shape[1], taken});
  return scattered<ops::scatter_rule::replace, false>(
             op, base, 2, index, eval_to_read(std::forward<X>(x)).reshape({shape[0], shape[1], taken}))
      .reshape(result);
}

}  // namespace detail

/// Each element of x (N,C,H',W') at its place in a plane of zeros (N,C,H,W): `indices` say where, as
/// max_pool2d_with_indices gives them, of any integer type and x's shape. H = (H' - 1) stride - 2 padding + KH; as more
/// than one size pools to H', output_size may name another. Where windows shared an element, the last one writes it.
/// Every element type; the result is row-major. Runs at once. Derivative: each element's g at its place. As
/// torch.nn.functional.max_unpool2d. Errors: shape_error for indices of another shape, value_error for numbers that
/// max_pool2d would refuse and for an output_size that does not pool to x, index_error for an index outside of the
/// plane, -1 too, on a GPU as for gather.
///
///     auto [values, indices] = max_pool2d_with_indices(pictures, 2);
///     tensor sparse = max_unpool2d(values, indices, 2);
template <class X, class I>
  requires(detail::is_fitting<detail::unpool_mistake<X, I, 2>>)
auto max_unpool2d(X&& x, const I& indices, const per_axis<2>& kernel, const max_unpool_options<2>& options = {}) {
  return detail::unpooled<2>("max_unpool2d", std::forward<X>(x), indices, kernel, options);
}
/// Elements put back along one axis, (N,C,L') => (N,C,L); see max_unpool2d.
///
///     auto [values, indices] = max_pool1d_with_indices(signals, 3, {.stride = 2});
///     tensor sparse = max_unpool1d(values, indices, 3, {.stride = 2});
template <class X, class I>
  requires(detail::is_fitting<detail::unpool_mistake<X, I, 1>>)
auto max_unpool1d(X&& x, const I& indices, const per_axis<1>& kernel, const max_unpool_options<1>& options = {}) {
  return detail::unpooled<1>("max_unpool1d", std::forward<X>(x), indices, kernel, options);
}
/// Elements put back in volumes, (N,C,D',H',W') => (N,C,D,H,W); see max_unpool2d.
///
///     auto [values, indices] = max_pool3d_with_indices(volumes, 2);
///     tensor sparse = max_unpool3d(values, indices, 2);
template <class X, class I>
  requires(detail::is_fitting<detail::unpool_mistake<X, I, 3>>)
auto max_unpool3d(X&& x, const I& indices, const per_axis<3>& kernel, const max_unpool_options<3>& options = {}) {
  return detail::unpooled<3>("max_unpool3d", std::forward<X>(x), indices, kernel, options);
}

// Rejections: the same parameters, so that braces in a call find them.
#define SINTER_MAX_UNPOOL_REJECTIONS(name, axes)                                                    \
  template <class X, class I, class Problem = typename detail::unpool_mistake<X, I, axes>::problem, \
            class Fix = typename detail::unpool_mistake<X, I, axes>::fix>                           \
  void name(X&&, const I&, const per_axis<axes>&, const max_unpool_options<axes>& = {}) = delete;
SINTER_MAX_UNPOOL_REJECTIONS(max_unpool1d, 1)
SINTER_MAX_UNPOOL_REJECTIONS(max_unpool2d, 2)
SINTER_MAX_UNPOOL_REJECTIONS(max_unpool3d, 3)
#undef SINTER_MAX_UNPOOL_REJECTIONS

}  // namespace sinter
