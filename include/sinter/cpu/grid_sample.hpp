// sinter/cpu/grid_sample.hpp: images read at the places of a grid, on the host.
#pragma once

#include <algorithm>
#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/ops/grid_sample.hpp"

namespace sinter::cpu_impl {

/// The elements that are read at up to 64 places of a sample, tap by tap.
template <class C, int Axes>
struct sampled_places {
  static constexpr int most = 64;
  static constexpr int most_taps = Axes == 2 ? 16 : 8;
  int n = 0, taps = 0;
  index_t at[std::size_t{most_taps}][std::size_t{most}];
  C weight[std::size_t{most_taps}][std::size_t{most}];
  C slope[std::size_t{Axes}][std::size_t{most_taps}][std::size_t{most}];

  template <class T>
  sampled_places(const ops::grid_sampling<Axes>& s, const T* grid, index_t places)
      : n(static_cast<int>(places)), taps(s.taps()) {
    for (int p = 0; p < n; ++p) {
      int k = 0;
      s.template each_tap<C>(grid + index_t{p} * Axes, [&](index_t offset, C w, const C(&by_axis)[std::size_t{Axes}]) {
        at[k][p] = offset;
        weight[k][p] = w;
        for (int d = 0; d < Axes; ++d) slope[d][k][p] = by_axis[d];
        ++k;
      });
    }
  }
};

/// f(sample, first place, its elements) for all blocks of places of the samples from `begin` to `end`.
template <class C, int Axes, class T, class F>
void each_block(const ops::grid_sampling<Axes>& s, const T* grid, index_t sample, index_t first, index_t end,
                const F& f) {
  using block = sampled_places<C, Axes>;
  for (; first < end; first += block::most)
    f(first, block(s, grid + (sample * s.places + first) * Axes, std::min<index_t>(block::most, end - first)));
}

/// Places of a task.
inline constexpr index_t sampled_by_task = 512;
/// f(sample, first place, end) for all places, in parallel.
template <int Axes, class F>
void for_places(const ops::grid_sampling<Axes>& s, thread_pool& pool, const F& f) {
  const index_t tasks = (s.places + sampled_by_task - 1) / sampled_by_task;
  pool.parallel_for(s.batch * tasks, [&](index_t task) {
    const index_t first = task % tasks * sampled_by_task;
    f(task / tasks, first, std::min(first + sampled_by_task, s.places));
  });
}

template <class T, int Axes>
void sample_grid(const ops::grid_sampling<Axes>& s, const T* x, const T* grid, T* y, thread_pool& pool) {
  using C = compute_type<T>;
  for_places(s, pool, [&](index_t sample, index_t begin, index_t end) {
    each_block<C>(s, grid, sample, begin, end, [&](index_t first, const auto& block) {
      for (index_t c = 0; c < s.channels; ++c) {
        const T* const plane = x + sample * s.x_batch + c * s.x_channel;
        T* const to = y + (sample * s.channels + c) * s.places + first;
        for (int p = 0; p < block.n; ++p) {
          C sum = 0;
          for (int k = 0; k < block.taps; ++k)
            if (block.at[k][p] >= 0) sum += block.weight[k][p] * static_cast<C>(plane[block.at[k][p]]);
          to[p] = static_cast<T>(sum);
        }
      }
    });
  });
}

/// dx += g times weights, where the strides of `s` are those of dx. A task has all places of some channels of a sample,
/// so that each element is summed in one order.
template <class C, class T, int Axes>
void add_sampled(const ops::grid_sampling<Axes>& s, const T* grid, const T* g, C* dx, thread_pool& pool) {
  constexpr index_t channels_of_task = 8;
  const index_t groups = (s.channels + channels_of_task - 1) / channels_of_task;
  pool.parallel_for(s.batch * groups, [&](index_t task) {
    const index_t sample = task / groups, channel = task % groups * channels_of_task;
    const index_t end = std::min(channel + channels_of_task, s.channels);
    each_block<C>(s, grid, sample, 0, s.places, [&](index_t first, const auto& block) {
      for (index_t c = channel; c < end; ++c) {
        C* const plane = dx + sample * s.x_batch + c * s.x_channel;
        const T* const from = g + (sample * s.channels + c) * s.places + first;
        for (int p = 0; p < block.n; ++p)
          for (int k = 0; k < block.taps; ++k)
            if (block.at[k][p] >= 0) plane[block.at[k][p]] += block.weight[k][p] * static_cast<C>(from[p]);
      }
    });
  });
}

/// dgrid (+)= g times slopes.
template <class T, int Axes>
void sample_slopes(const ops::grid_sampling<Axes>& s, const T* x, const T* grid, const T* g, T* dgrid, bool add,
                   thread_pool& pool) {
  using C = compute_type<T>;
  for_places(s, pool, [&](index_t sample, index_t begin, index_t end) {
    each_block<C>(s, grid, sample, begin, end, [&](index_t first, const auto& block) {
      C sums[std::size_t{Axes}][64] = {};
      for (index_t c = 0; c < s.channels; ++c) {
        const T* const plane = x + sample * s.x_batch + c * s.x_channel;
        const T* const from = g + (sample * s.channels + c) * s.places + first;
        for (int p = 0; p < block.n; ++p)
          for (int k = 0; k < block.taps; ++k) {
            if (block.at[k][p] < 0) continue;
            const C product = static_cast<C>(from[p]) * static_cast<C>(plane[block.at[k][p]]);
            for (int d = 0; d < Axes; ++d) sums[d][p] += product * block.slope[d][k][p];
          }
      }
      T* const to = dgrid + (sample * s.places + first) * Axes;
      for (int p = 0; p < block.n; ++p)
        for (int d = 0; d < Axes; ++d) {
          T& y = to[p * Axes + Axes - 1 - d];
          y = static_cast<T>(add ? static_cast<C>(y) + sums[d][p] : sums[d][p]);
        }
    });
  });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::grid_sample_op, D> {
  template <class T, int R, class Epilogue>
  static void forward(const ops::grid_sample_op& op, const tensor<T, R, D>& y, const Epilogue*,
                      const tensor<T, R, D>& x, const tensor<T, R, D>& grid) {
    cpu_impl::sample_grid(op.sampling_of(x, grid), x.data(), grid.data(), y.data(), backend<D>::pool());
  }
  template <class Backward>
  static void reverse(const ops::grid_sample_op& op, const Backward& b) {
    auto& pool = backend<D>::pool();
    const auto& grid = b.template operand<1>();
    const auto& g = b.gradient();
    if (b.template wants<0>())
      op.add_to_image(
          b, [&](const auto& s, const auto& dx) { cpu_impl::add_sampled(s, grid.data(), g.data(), dx.data(), pool); });
    if (b.template wants<1>()) {
      const auto& x = b.template operand<0>();
      const auto place = b.template place_of<1>();
      cpu_impl::sample_slopes(op.sampling_of(x, grid), x.data(), grid.data(), g.data(), place.to.data(), place.add,
                              pool);
    }
  }
};

}  // namespace sinter::detail
