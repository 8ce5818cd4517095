// sinter/cpu/roi_align.hpp: regions of images on the host.
#pragma once

#include <algorithm>
#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/ops/roi_align.hpp"

namespace sinter::cpu_impl {

/// The elements that the results of a region read along an axis: those of result o from first[o] to first[o + 1].
template <class C>
struct roi_table {
  std::vector<std::size_t> first;
  std::vector<index_t> at;  ///< offsets
  std::vector<C> weight;

  roi_table(const ops::roi_axis<C>& axis, index_t out, index_t step, C share) : first(1) {
    for (index_t o = 0; o < out; ++o) {
      for (index_t k = 0; k < axis.count; ++k) {
        const ops::roi_taps<C> t = axis.taps(o, k);
        if (!t.is_inside) continue;
        add(t.low * step, t.of_low * share);
        if (t.of_high > 0) add(t.high * step, t.of_high * share);
      }
      first.push_back(at.size());
    }
  }
  /// f(offset, weight) for the elements of result o.
  template <class F>
  void each(index_t o, const F& f) const {
    const auto i = static_cast<std::size_t>(o);
    for (std::size_t k = first[i]; k < first[i + 1]; ++k) f(at[k], weight[k]);
  }

 private:
  void add(index_t offset, C w) {
    if (at.size() > first.back() && at.back() == offset) {
      weight.back() += w;
      return;
    }
    at.push_back(offset);
    weight.push_back(w);
  }
};
/// f(place of the results, offset in a plane, weight) for all elements of a region.
template <class T, class F>
void each_of_region(const ops::roi_sampling& s, const ops::roi<compute_type<T>>& r, const F& f) {
  using C = compute_type<T>;
  const roi_table<C> rows(r.axis[0], s.out[0], s.x_step[0], r.share()), columns(r.axis[1], s.out[1], s.x_step[1], 1);
  for (index_t i = 0; i < s.out[0]; ++i)
    for (index_t j = 0; j < s.out[1]; ++j)
      rows.each(i, [&](index_t row, C w) {
        columns.each(j, [&](index_t column, C v) { f(i * s.out[1] + j, row + column, w * v); });
      });
}

/// Channels of a task.
inline constexpr index_t roi_channels = 16;
/// f(of, first channel, end) for some channels of each of n regions or samples, in parallel.
template <class F>
void for_channels(index_t n, index_t channels, thread_pool& pool, const F& f) {
  const index_t groups = (channels + roi_channels - 1) / roi_channels;
  pool.parallel_for(n * groups, [&](index_t task) {
    const index_t channel = task % groups * roi_channels;
    f(task / groups, channel, std::min(channel + roi_channels, channels));
  });
}

template <class T>
void align_regions(const ops::roi_sampling& s, const T* x, const T* boxes, T* y, thread_pool& pool) {
  using C = compute_type<T>;
  for_channels(s.regions, s.channels, pool, [&](index_t k, index_t channel, index_t end) {
    const auto r = s.region(boxes + 5 * k);
    std::vector<C> sums(static_cast<std::size_t>((end - channel) * s.places()), r.fill);
    if (r.sample >= 0)
      each_of_region<T>(s, r, [&](index_t place, index_t at, C weight) {
        const T* from = x + r.sample * s.x_batch + channel * s.x_channel + at;
        C* to = sums.data() + place;
        for (index_t c = channel; c < end; ++c, from += s.x_channel, to += s.places())
          *to += weight * static_cast<C>(*from);
      });
    T* const to = y + (k * s.channels + channel) * s.places();
    for (std::size_t i = 0; i < sums.size(); ++i) to[i] = static_cast<T>(sums[i]);
  });
}

/// dx += g times weights, where the strides of `s` are those of dx. A task has all regions of some channels of a
/// sample, so that each element is summed in one order.
template <class C, class T>
void add_regions(const ops::roi_sampling& s, const T* boxes, const T* g, C* dx, thread_pool& pool) {
  for_channels(s.batch, s.channels, pool, [&](index_t sample, index_t channel, index_t end) {
    for (index_t k = 0; k < s.regions; ++k) {
      const auto r = s.region(boxes + 5 * k);
      if (r.sample != sample) continue;
      each_of_region<T>(s, r, [&](index_t place, index_t at, C weight) {
        const T* from = g + (k * s.channels + channel) * s.places() + place;
        C* to = dx + sample * s.x_batch + channel * s.x_channel + at;
        for (index_t c = channel; c < end; ++c, from += s.places(), to += s.x_channel)
          *to += weight * static_cast<C>(*from);
      });
    }
  });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::roi_align_op, D> {
  template <class T, class Epilogue>
  static void forward(const ops::roi_align_op& op, const tensor<T, 4, D>& y, const Epilogue*, const tensor<T, 4, D>& x,
                      const tensor<T, 2, D>& boxes) {
    cpu_impl::align_regions(op.sampling_of(x, boxes), x.data(), boxes.data(), y.data(), backend<D>::pool());
  }
  template <class Backward>
  static void reverse(const ops::roi_align_op& op, const Backward& b) {
    op.add_to_image(b, [&](const auto& s, const auto& dx) {
      cpu_impl::add_regions(s, b.template operand<1>().data(), b.gradient().data(), dx.data(), backend<D>::pool());
    });
  }
};

}  // namespace sinter::detail
