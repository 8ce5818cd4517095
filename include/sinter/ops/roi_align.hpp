// sinter/ops/roi_align.hpp: regions of images, resized to one size.
#pragma once

#include <limits>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/detail/add_in.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/floor.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/indices.hpp"
#include "sinter/ops/where.hpp"
#include "sinter/ops/window.hpp"

namespace sinter {

struct use_images_of_rank_4_and_boxes_of_rank_2;
struct options_that_are_not_in_braces;
struct write_them_with_names_in_braces_such_as_dot_spatial_scale;

/// How roi_align reads a region.
///
///     roi_align(x, boxes, 7, {.spatial_scale = 1 / 16.0, .sampling_ratio = 2, .aligned = true});
struct roi_align_options {
  double spatial_scale = 1;     ///< the numbers of boxes times this are places of x
  index_t sampling_ratio = -1;  ///< places along an axis of a result; 0 or less: as many as it has elements, rounded up
  bool aligned = false;  ///< elements lie at whole numbers, not at halves; regions may be smaller than an element
};

namespace ops {

/// The two elements of an axis around a place, and how much each counts.
template <class C>
struct roi_taps {
  bool is_inside = false;
  index_t low = 0, high = 0;
  C of_low = 0, of_high = 0;
};
/// A region along one axis: results `step` apart, each the mean over `count` places.
template <class C>
struct roi_axis {
  C start = 0, step = 0;
  index_t count = 0, in = 0;

  /// Place k of result `o`.
  SINTER_WORD roi_taps<C> taps(index_t o, index_t k) const {
    roi_taps<C> t;
    C at = start + static_cast<C>(o) * step + (static_cast<C>(k) + C(0.5)) * step / static_cast<C>(count);
    t.is_inside = at >= C(-1) && at <= static_cast<C>(in) && in > 0;
    if (!t.is_inside) return t;
    if (at < 0) at = 0;
    t.low = static_cast<index_t>(at);
    if (t.low >= in - 1) {
      t.low = t.high = in - 1;
      at = static_cast<C>(t.low);
    } else {
      t.high = t.low + 1;
    }
    t.of_high = at - static_cast<C>(t.low);
    t.of_low = 1 - t.of_high;
    return t;
  }
};
template <class C>
struct roi {
  index_t sample = -1;  ///< of no image: -1
  C fill = 0;           ///< what sums start from: 0, or NaN
  roi_axis<C> axis[2];

  /// What the sum over the places of a result is multiplied by.
  SINTER_WORD C share() const {
    const index_t n = axis[0].count * axis[1].count;
    return 1 / static_cast<C>(n > 1 ? n : 1);
  }
};

/// Images and regions as kernels see them. Boxes are dense (K,5), results dense (K,C,H',W'). Strides in elements.
struct roi_sampling {
  index_t batch = 0, channels = 0, regions = 0;
  index_t in[2] = {}, out[2] = {};
  index_t x_batch = 0, x_channel = 0, x_step[2] = {};
  roi_align_options options;

  SINTER_WORD index_t places() const { return out[0] * out[1]; }
  template <class T>
  SINTER_WORD roi<compute_type<T>> region(const T* box) const {
    using C = compute_type<T>;
    roi<C> r;
    const C sample = static_cast<C>(box[0]);
    if (!(sample >= 0 && sample < static_cast<C>(batch))) return r;
    r.sample = static_cast<index_t>(sample);
    const C scale = static_cast<C>(options.spatial_scale), shift = options.aligned ? C(0.5) : C(0);
    SINTER_UNROLL
    for (int d = 0; d < 2; ++d) {
      roi_axis<C>& a = r.axis[d];
      a.in = in[d];
      a.start = static_cast<C>(box[2 - d]) * scale - shift;
      C size = static_cast<C>(box[4 - d]) * scale - shift - a.start;
      bool is_number = size - size == 0;  // not of NaN and infinity
      if (!options.aligned && !(size > 1)) size = 1;
      a.step = size / static_cast<C>(out[d]);
      const C places = math::ceil(a.step);
      a.count = options.sampling_ratio > 0       ? options.sampling_ratio
                : places > 0 && places < C(1e7F) ? static_cast<index_t>(places)
                                                 : 0;
      is_number = is_number && (options.sampling_ratio > 0 || places < C(1e7F));
      if (!is_number) r.fill = std::numeric_limits<C>::quiet_NaN();
    }
    if (r.fill != 0) r.axis[0].count = r.axis[1].count = 0;
    return r;
  }
};

struct roi_align_op : kernel_op {
  static constexpr const char* name = "roi_align";
  static constexpr unsigned grad_uses[1] = {uses::second};
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int operand) { return operand == 0 ? take::strided : take::dense; }

  index_t out[2];
  roi_align_options options;
  roi_align_op(const per_axis<2>& size, const roi_align_options& o) : out{size[0], size[1]}, options(o) {}

  extents<4> shape(const extents<4>& x, const extents<2>& boxes) const {
    using sinter::detail::refuse;
    if (boxes[1] != 5)
      refuse<shape_error>(
          {"roi_align: boxes of shape ", boxes, "; a box is five numbers, the image and x1, y1, x2, y2"});
    if (out[0] < 1 || out[1] < 1)
      refuse<value_error>({"roi_align: results of size ", extents<2>{{out[0], out[1]}}, "; it must be at least 1"});
    if (!(options.spatial_scale - options.spatial_scale == 0))
      refuse<value_error>({"roi_align: spatial_scale is ", options.spatial_scale, "; it must be finite"});
    return {{boxes[0], x[1], out[0], out[1]}};
  }
  template <class X, class B>
  static constexpr auto mistake() {
    if constexpr (!sinter::detail::is_fitting<decltype(floating_of_rank<4, 4, X, B>())>)
      return floating_of_rank<4, 4, X, B>();
    else if constexpr (rank_of<B> != 2)
      return sinter::detail::mistake<operands_of_ranks<rank_of<X>, rank_of<B>>,
                                     use_images_of_rank_4_and_boxes_of_rank_2>{};
    else return sinter::detail::fitting<element_of<X>>{};
  }

  /// For x, or a gradient of its shape, and boxes.
  template <class X, class B>
  roi_sampling sampling_of(const X& x, const B& boxes) const {
    const auto& e = x.shape();
    const auto& s = x.strides();
    return {e[0], e[1], boxes.shape()[0], {e[2], e[3]}, {out[0], out[1]}, s[0], s[1], {s[2], s[3]}, options};
  }
  /// add(sampling, dx) adds to the gradient of x. Those of half and bfloat16 are gathered in float.
  template <class Backward, class F>
  void add_to_image(const Backward& b, const F& add) const {
    const auto& boxes = b.template operand<1>();
    sinter::detail::add_in_float(b.template sum_of<0>(), [&](const auto& dx) { add(sampling_of(dx, boxes), dx); });
  }
};

}  // namespace ops

namespace detail {

/// A list of boxes for each image, with the number of the image in front of each.
template <class T, device D>
tensor<T, 2, D> numbered_boxes(const std::vector<tensor<T, 2, D>>& lists) {
  index_t n = 0, image = 0;
  for (const auto& boxes : lists) {
    check_defined("roi_align", boxes);
    if (boxes.shape()[1] != 4)
      refuse<shape_error>({"roi_align: boxes of shape ", boxes.shape(), " in a list; a box is four numbers"});
    n += boxes.shape()[0];
  }
  const auto all = tensor<T, 2, D>::uninitialized({{n, 5}});
  n = 0;
  for (const auto& boxes : lists) {
    const auto rows = all.slice(0, n, n + boxes.shape()[0]);
    rows.select(1, 0).in_place() = static_cast<T>(image++);
    rows.slice(1, 1, 5).in_place() = boxes;
    n += boxes.shape()[0];
  }
  return all;
}
/// Errors: index_error for a number that is not one of n images.
SINTER_SHARED_COLD void check_box_images(const double* numbers, index_t count, index_t n);
#if SINTER_DEFINES
SINTER_SHARED_COLD void check_box_images(const double* numbers, index_t count, index_t n) {
  for (index_t i = 0; i < count; ++i) {
    const double image = numbers[i];
    if (!(image >= 0 && image < static_cast<double>(n)))
      refuse<index_error>({"roi_align: image ", image, " at position ", i, " is out of range [0, ", n, ")"});
    if (image != static_cast<double>(static_cast<index_t>(image)))
      refuse<index_error>({"roi_align: image ", image, " at position ", i, " is not a whole number"});
  }
}
#endif  // SINTER_DEFINES

}  // namespace detail

/// Regions of images (N,C,H,W), each resized to one size, as torchvision.ops.roi_align: boxes (K,5), which are the
/// number of an image and the corners x1, y1, x2, y2 => (K,C,H',W'). A result is the mean over places of a grid inside
/// its part of the box, read between the four elements around; one by more than an element outside of the image is 0.
/// Options: .spatial_scale = 1, by which corners are multiplied to be places of x; .sampling_ratio = -1, places along
/// an axis of a result, as many as it has elements if 0 or less; .aligned = false, true where elements lie at whole
/// numbers. The results of a box are NaN, and pass no derivative on, where a corner is NaN or infinite, or where a
/// result would have 10^7 or more places along an axis without a sampling_ratio. Floating point; the result is
/// row-major. Derivative: to x g times each element's weight, none to the boxes. K. He et al., "Mask R-CNN", 2017.
/// Errors: shape_error for boxes that are not five numbers, value_error for a size below 1 or a spatial_scale that is
/// not finite, index_error for the number of an image that is not there or no integer, on a GPU where the host next
/// waits for it.
///
///     tensor parts = roi_align(pictures, regions, {7, 7}, {.spatial_scale = 0.25, .aligned = true});
template <class X, class B>
  requires detail::takes_operands<ops::roi_align_op, X, B>
detail::kernel_of<ops::roi_align_op, X, B> roi_align(X&& x, B&& boxes, const per_axis<2>& output_size,
                                                     const roi_align_options& options = {}) {
  auto y = detail::make_kernel(ops::roi_align_op(output_size, options), std::forward<X>(x), std::forward<B>(boxes));
  const no_grad guard;
  const index_t n = y.operands.template get<0>().shape()[0];
  const auto images = detail::plain(eval(cast<double>(y.operands.template get<1>().select(1, 0)))).contiguous();
  if constexpr (is_cpu_v<device_of<B>>) detail::check_box_images(images.data(), images.numel(), n);
  else
    detail::check_indices({"roi_align", "image"},
                          detail::plain(eval(cast<std::int64_t>(where(images == floor(images), images, -1.)))), n);
  return y;
}
/// The same of a list of boxes (L,4) for each image.
///
///     tensor parts = roi_align(pictures, std::vector{found, more}, 7);
template <class X, class T, device D>
  requires detail::takes_operands<ops::roi_align_op, X, tensor<T, 2, D>>
detail::kernel_of<ops::roi_align_op, X, tensor<T, 2, D>> roi_align(X&& x, const std::vector<tensor<T, 2, D>>& boxes,
                                                                   const per_axis<2>& output_size,
                                                                   const roi_align_options& options = {}) {
  return roi_align(std::forward<X>(x), detail::numbered_boxes(boxes), output_size, options);
}
template <class X, class B, class Problem = typename detail::kernel_check<ops::roi_align_op, X, B>::problem,
          class Fix = typename detail::kernel_check<ops::roi_align_op, X, B>::fix>
void roi_align(X&&, B&&, const per_axis<2>&, const roi_align_options& = {}) = delete;
template <class X, class B, class N, class... More, class Problem = options_that_are_not_in_braces,
          class Fix = write_them_with_names_in_braces_such_as_dot_spatial_scale>
  requires(std::is_arithmetic_v<N>)
void roi_align(X&&, B&&, const per_axis<2>&, N, const More&...) = delete;

}  // namespace sinter
