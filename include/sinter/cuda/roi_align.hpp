// sinter/cuda/roi_align.hpp: regions of images on GPUs. Plain kernels, not tuned: the gradient of an image is summed by
// a thread for each plane, in order, so that it does not depend on the schedule.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/roi_align.hpp"

namespace sinter::cuda_impl {

/// f(offset in a plane, weight) for the elements that a result of a region reads.
template <class C, class F>
SINTER_WORD void each_of_result(const ops::roi_sampling& s, const ops::roi<C>& r, index_t row, index_t column,
                                const F& f) {
  const C share = r.share();
  for (index_t i = 0; i < r.axis[0].count; ++i) {
    const ops::roi_taps<C> a = r.axis[0].taps(row, i);
    if (!a.is_inside) continue;
    const index_t low = a.low * s.x_step[0], high = a.high * s.x_step[0];
    for (index_t j = 0; j < r.axis[1].count; ++j) {
      const ops::roi_taps<C> b = r.axis[1].taps(column, j);
      if (!b.is_inside) continue;
      const index_t left = b.low * s.x_step[1], right = b.high * s.x_step[1];
      const C of_low = a.of_low * share, of_high = a.of_high * share;
      f(low + left, of_low * b.of_low);
      if (b.of_high > 0) f(low + right, of_low * b.of_high);
      if (a.of_high > 0) f(high + left, of_high * b.of_low);
      if (a.of_high > 0 && b.of_high > 0) f(high + right, of_high * b.of_high);
    }
  }
}

/// y = x in the regions: a thread for each result.
template <class T>
struct align_body {
  using C = compute_type<T>;
  ops::roi_sampling shape;
  const T* x;
  const T* boxes;
  T* y;

  SINTER_WORD index_t numel() const { return shape.regions * shape.channels * shape.places(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t n = numel();
    for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) {
      const index_t plane = i / shape.places(), place = i - plane * shape.places();
      const index_t k = plane / shape.channels, channel = plane - k * shape.channels;
      const ops::roi<C> r = shape.region(boxes + 5 * k);
      C sum = r.fill;
      if (r.sample >= 0) {
        const T* const from = x + r.sample * shape.x_batch + channel * shape.x_channel;
        const index_t row = place / shape.out[1];
        each_of_result(shape, r, row, place - row * shape.out[1],
                       [&](index_t at, C weight) { sum += weight * static_cast<C>(from[at]); });
      }
      y[i] = static_cast<T>(sum);
    }
  }
};

/// dx += g times weights: a thread for each plane.
template <class T>
struct add_regions_body {
  using C = compute_type<T>;
  ops::roi_sampling shape;
  const T* boxes;
  const T* g;
  C* dx;

  SINTER_WORD index_t numel() const { return shape.batch * shape.channels; }
  template <class G>
  SINTER_WORD void operator()(const G& by) const {
    const index_t n = shape.regions == 0 ? 0 : numel();
    for (index_t plane = by.block() * by.threads() + by.thread(); plane < n; plane += by.blocks() * by.threads()) {
      const index_t sample = plane / shape.channels, channel = plane - sample * shape.channels;
      C* const to = dx + sample * shape.x_batch + channel * shape.x_channel;
      for (index_t k = 0; k < shape.regions; ++k) {
        const ops::roi<C> r = shape.region(boxes + 5 * k);
        if (r.sample != sample) continue;
        const T* from = g + (k * shape.channels + channel) * shape.places();
        for (index_t row = 0; row < shape.out[0]; ++row)
          for (index_t column = 0; column < shape.out[1]; ++column, ++from)
            each_of_result(shape, r, row, column,
                           [&](index_t at, C weight) { to[at] += weight * static_cast<C>(*from); });
      }
    }
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::roi_align_op, D> {
  template <class T, class Epilogue>
  static void forward(const ops::roi_align_op& op, const tensor<T, 4, D>& y, const Epilogue*, const tensor<T, 4, D>& x,
                      const tensor<T, 2, D>& boxes) {
    cuda_impl::launch_each<D>(
        {"roi_align", y.shape()},
        cuda_impl::align_body<T>{op.sampling_of(x, boxes), access::data(x), access::data(boxes), access::data(y)});
  }
  template <class Backward>
  static void reverse(const ops::roi_align_op& op, const Backward& b) {
    const auto& boxes = b.template operand<1>();
    const auto& g = b.gradient();
    using T = element_of<decltype(g)>;
    op.add_to_image(b, [&](const auto& s, const auto& dx) {
      cuda_impl::launch_each<D>(
          {"roi_align", dx.shape()},
          cuda_impl::add_regions_body<T>{s, access::data(boxes), access::data(g), access::data(dx)});
    });
  }
};

}  // namespace sinter::detail
