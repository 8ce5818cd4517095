// sinter/cuda/grid_sample.hpp: images read at the places of a grid, on GPUs. Plain kernels, not tuned: the gradient of
// an image is summed by a thread for each plane, in order, so that it does not depend on the schedule.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/grid_sample.hpp"

namespace sinter::cuda_impl {

/// y = x at the places: a thread for each, which walks the channels.
template <class T, int Axes>
struct sample_body {
  using C = compute_type<T>;
  ops::grid_sampling<Axes> shape;
  const T* x;
  const T* grid;
  T* y;

  SINTER_WORD index_t numel() const { return shape.batch * shape.places * shape.channels; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t n = numel();
    for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) {
      const index_t place = i % shape.places, plane = i / shape.places, sample = plane / shape.channels;
      const T* const from = x + sample * shape.x_batch + (plane - sample * shape.channels) * shape.x_channel;
      C sum = 0;
      shape.template each_tap<C>(grid + (sample * shape.places + place) * Axes, [&](index_t at, C weight, const auto&) {
        if (at >= 0) sum += weight * static_cast<C>(from[at]);
      });
      y[i] = static_cast<T>(sum);
    }
  }
};

/// dx += g times weights: a thread for each plane.
template <class T, int Axes>
struct add_sampled_body {
  using C = compute_type<T>;
  ops::grid_sampling<Axes> shape;
  const T* grid;
  const T* g;
  C* dx;

  SINTER_WORD index_t numel() const { return shape.batch * shape.channels; }
  template <class G>
  SINTER_WORD void operator()(const G& by) const {
    const index_t n = shape.places == 0 ? 0 : numel();
    for (index_t plane = by.block() * by.threads() + by.thread(); plane < n; plane += by.blocks() * by.threads()) {
      const index_t sample = plane / shape.channels;
      C* const to = dx + sample * shape.x_batch + (plane - sample * shape.channels) * shape.x_channel;
      for (index_t place = 0; place < shape.places; ++place) {
        const C gradient = static_cast<C>(g[plane * shape.places + place]);
        shape.template each_tap<C>(grid + (sample * shape.places + place) * Axes,
                                   [&](index_t at, C weight, const auto&) {
                                     if (at >= 0) to[at] += weight * gradient;
                                   });
      }
    }
  }
};

/// dgrid (+)= g times slopes: a thread for each place.
template <class T, int Axes>
struct sample_slopes_body {
  using C = compute_type<T>;
  ops::grid_sampling<Axes> shape;
  const T* x;
  const T* grid;
  const T* g;
  T* dgrid;
  bool add;

  SINTER_WORD index_t numel() const { return shape.batch * shape.places; }
  template <class G>
  SINTER_WORD void operator()(const G& by) const {
    const index_t n = numel();
    for (index_t i = by.block() * by.threads() + by.thread(); i < n; i += by.blocks() * by.threads()) {
      const index_t sample = i / shape.places, place = i - sample * shape.places;
      C sums[std::size_t{Axes}] = {};
      for (index_t c = 0; c < shape.channels; ++c) {
        const T* const from = x + sample * shape.x_batch + c * shape.x_channel;
        const C gradient = static_cast<C>(g[(sample * shape.channels + c) * shape.places + place]);
        shape.template each_tap<C>(grid + i * Axes, [&](index_t at, C, const auto& slope) {
          if (at < 0) return;
          for (int d = 0; d < Axes; ++d) sums[d] += gradient * static_cast<C>(from[at]) * slope[d];
        });
      }
      for (int d = 0; d < Axes; ++d) {
        T& to = dgrid[i * Axes + Axes - 1 - d];
        to = static_cast<T>(add ? static_cast<C>(to) + sums[d] : sums[d]);
      }
    }
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::grid_sample_op, D> {
  template <class T, int R, class Epilogue>
  static void forward(const ops::grid_sample_op& op, const tensor<T, R, D>& y, const Epilogue*,
                      const tensor<T, R, D>& x, const tensor<T, R, D>& grid) {
    cuda_impl::launch_each<D>({"grid_sample", y.shape()},
                              cuda_impl::sample_body<T, R - 2>{op.sampling_of(x, grid), access::data(x),
                                                               access::data(grid), access::data(y)});
  }
  template <class Backward>
  static void reverse(const ops::grid_sample_op& op, const Backward& b) {
    const auto& grid = b.template operand<1>();
    const auto& g = b.gradient();
    using T = element_of<decltype(g)>;
    constexpr int axes = bare<decltype(g)>::rank - 2;
    if (b.template wants<0>())
      op.add_to_image(b, [&](const auto& s, const auto& dx) {
        cuda_impl::launch_each<D>(
            {"grid_sample", dx.shape()},
            cuda_impl::add_sampled_body<T, axes>{s, access::data(grid), access::data(g), access::data(dx)});
      });
    if (b.template wants<1>()) {
      const auto& x = b.template operand<0>();
      const auto place = b.template place_of<1>();
      cuda_impl::launch_each<D>(
          {"grid_sample", grid.shape()},
          cuda_impl::sample_slopes_body<T, axes>{op.sampling_of(x, grid), access::data(x), access::data(grid),
                                                 access::data(g), access::data(place.to), place.add});
    }
  }
};

}  // namespace sinter::detail
