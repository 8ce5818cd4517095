// sinter/cpu/detail/conv_depthwise.hpp: convolutions whose channels do not mix, a vector of channels at a time.
#pragma once

#include <algorithm>
#include <type_traits>
#include <utility>

#include "sinter/cpu/detail/conv_product.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// One element of the scalar type, in the place of a packet where too few channels are left for one.
template <class T>
struct one_lane {
  static constexpr index_t width = 1;
  T v;
  SINTER_INLINE static one_lane zero() { return {T(0)}; }
  SINTER_INLINE static one_lane load(const T* p) { return {*p}; }
  SINTER_INLINE void store(T* p) const { *p = v; }
  SINTER_INLINE one_lane plus(one_lane x) const { return {v + x.v}; }
  SINTER_INLINE one_lane plus_product(one_lane x, one_lane y) const { return {v + x.v * y.v}; }
};

template <class T>
struct all_lanes {
  using packet = typename tile_shape<T>::packet;
  static constexpr index_t width = tile_shape<T>::lanes;
  packet v;
  SINTER_INLINE static all_lanes zero() { return {Eigen::internal::pset1<packet>(T(0))}; }
  SINTER_INLINE static all_lanes load(const T* p) { return {Eigen::internal::ploadu<packet>(p)}; }
  SINTER_INLINE void store(T* p) const { Eigen::internal::pstoreu(p, v); }
  SINTER_INLINE all_lanes plus(all_lanes x) const { return {Eigen::internal::padd(v, x.v)}; }
  SINTER_INLINE all_lanes plus_product(all_lanes x, all_lanes y) const { return {Eigen::internal::pmadd(x.v, y.v, v)}; }
};

/// Calls f(channel, type_identity<V>, integer_sequence of the vectors V at once) for all channels. A V itself would be
/// a constant that nvcc has no code for.
template <class T, class F>
SINTER_INLINE void for_channels(index_t channels, F&& f) {
  constexpr index_t width = all_lanes<T>::width;
  index_t c = 0;
  for (; c + 4 * width <= channels; c += 4 * width)
    f(c, std::type_identity<all_lanes<T>>(), std::make_integer_sequence<int, 4>{});
  for (; c + width <= channels; c += width)
    f(c, std::type_identity<all_lanes<T>>(), std::make_integer_sequence<int, 1>{});
  for (; c < channels; ++c) f(c, std::type_identity<one_lane<T>>(), std::make_integer_sequence<int, 1>{});
}

/// result(pixel, c) = [result +] sum over taps of patch(pixel, (tap, c)) w(tap, c).
template <class T>
struct depthwise_product {
  static constexpr index_t rows_per_task = 128;
  static constexpr index_t least_products = 65536;  ///< of a task, where there are too few tasks

  const patches<T>& a;            ///< of all channels
  const weight_rows<T>& weights;  ///< (tap, channel)
  const result_rows<T>& c;
  bool add;
  const conv_finish<T>& finish;

  void compute(thread_pool& pool) const {
    const index_t rows = a.rows(), wanted = smaller(3 * pool.size(), rows * a.columns() / least_products);
    const index_t usual = ceil_div(rows, rows_per_task), tasks = pool.size() > 1 && usual < wanted ? wanted : usual;
    pool.parallel_for(tasks, [&](index_t task) {
      const index_t begin = share_begin(rows, tasks, task), end = share_begin(rows, tasks, task + 1);
      patch_walk<T> walk(a, begin);
      finished_rows<T> finished{finish.after, c, 0, a.channels};
      for (index_t left = end - begin; left > 0;) {
        const index_t run = smaller(left, walk.left_in_line()), o = walk.at(2);
        const index_t to = c.at(walk);
        compute_line(walk, o, run, c.data + to);
        for (index_t i = 0; finish.after && i < run; ++i) finished.add(to + i * c.step[2], 1);
        left -= run;
        walk.skip(run);
      }
      finished.run();
    });
  }

 private:
  static constexpr int pixels_at_once = 4, vectors_at_once = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 4 : 2;
  static constexpr index_t rows_at_once = 32;

  /// A row of taps that meets the image: where it begins, from a pixel's base and in the weights.
  struct tap_row {
    index_t image, weights;
  };
  /// Some pixels of a line, [begin, end), and rows of taps to add up.
  struct tap_rows {
    const patch_walk<T>& walk;
    index_t begin, end;
    index_range inside;  ///< the pixels of which all taps of the last axis meet the image
    T* to;               ///< of pixel `begin`
    bool adds, last;     ///< results are added to; bias comes now
    const tap_row* rows;
    index_t count;
  };

  void compute_line(const patch_walk<T>& walk, index_t o, index_t count, T* to) const {
    const index_t end = o + count;
    tap_row rows[std::size_t{rows_at_once}];
    tap_rows part{walk, o, end, a.axes[2].results_inside(0, a.axes[2].taps - 1, o, end), to, add, false, rows, 0};
    const patch_line line = walk.line();
    for (index_t t0 = line.taps[0].begin; t0 < line.taps[0].end; ++t0)
      for (index_t t1 = line.taps[1].begin; t1 < line.taps[1].end; ++t1) {
        if (part.count == rows_at_once) {
          compute_channels(part);
          part.adds = true;
          part.count = 0;
        }
        rows[part.count++] = {a.tap_offset(0, t0) + a.tap_offset(1, t1),
                              (t0 * a.axes[1].taps + t1) * a.axes[2].taps * a.channels};
      }
    part.last = true;
    compute_channels(part);
  }

  void compute_channels(const tap_rows& part) const {
    using vector = all_lanes<T>;
    constexpr index_t width = vector::width, many = vectors_at_once * width;
    index_t c0 = 0;
    for (; c0 + many <= a.channels; c0 += many) compute_pixels<vector, vectors_at_once>(part, c0);
    for (; c0 + width <= a.channels; c0 += width) compute_pixels<vector, 1>(part, c0);
    if (c0 < a.channels && a.channels >= width && !part.adds)  // some channels once more
      return compute_pixels<vector, 1>(part, a.channels - width);
    for (; c0 < a.channels; ++c0) compute_pixels<one_lane<T>, 1>(part, c0);
  }

  /// Several pixels at once where all taps of the last axis meet the image, of which the last ones may compute some
  /// once more.
  template <class V, int Vectors>
  void compute_pixels(const tap_rows& part, index_t c0) const {
    constexpr int together = std::is_same_v<V, one_lane<T>> ? 1 : pixels_at_once;
    const index_range inside = part.inside;
    index_t o = part.begin;
    for (; o < smaller(inside.begin, part.end); ++o) compute_sums<V, 1, Vectors>(part, o, 1, c0);
    if (const index_t groups = (inside.end - o) / together; groups > 0) {
      compute_sums<V, together, Vectors>(part, o, groups, c0);
      o += groups * together;
    }
    if (o + 1 < inside.end && inside.end - inside.begin >= together && !part.adds) {
      compute_sums<V, together, Vectors>(part, inside.end - together, 1, c0);
      o = inside.end;
    }
    for (; o < part.end; ++o) compute_sums<V, 1, Vectors>(part, o, 1, c0);
  }
  template <class V, int Pixels, int Vectors>
  void compute_sums(const tap_rows& part, index_t o, index_t groups, index_t c0) const {
    compute_sums<V, Vectors>(part, o, groups, c0, std::make_integer_sequence<int, Pixels * Vectors>{},
                             std::make_integer_sequence<int, Vectors>{});
  }
  /// Groups of pixels that follow one another, which meet the same taps as the first of them.
  template <class V, int Vectors, int... I, int... J>
  void compute_sums(const tap_rows& part, index_t o, index_t groups, index_t c0, std::integer_sequence<int, I...>,
                    std::integer_sequence<int, J...>) const {
    constexpr index_t pixels = sizeof...(I) / Vectors;
    const index_t along = a.along(), step = a.axes[2].dilation * a.axis_stride[2], channels = a.channels;
    const index_t to_step = c.step[2];
    const index_range taps = a.axes[2].taps_inside(o);
    const T* const w = weights.data() + (taps.begin * channels + c0);
    index_t x = part.walk.base_at(o) + taps.begin * step + c0;
    const T* const bias = part.last && finish.bias != nullptr ? finish.bias + c0 : nullptr;
    T* to = part.to + ((o - part.begin) * to_step + c0);
    const tap_row* const rows_end = part.rows + (taps.begin < taps.end ? part.count : 0);
    for (; groups > 0; --groups, x += pixels * along, to += pixels * to_step) {
      V sum[] = {(static_cast<void>(I), V::zero())...};
      if (part.adds) ((sum[I] = V::load(to + I / Vectors * to_step + I % Vectors * V::width)), ...);
      for (const tap_row* row = part.rows; row < rows_end; ++row) {
        const T *from = a.data + (x + row->image), *by = w + row->weights;
        for (index_t t = taps.begin; t < taps.end; ++t, from += step, by += channels) {
          const V weight[] = {V::load(by + J * V::width)...};
          ((sum[I] =
                sum[I].plus_product(V::load(from + I / Vectors * along + I % Vectors * V::width), weight[I % Vectors])),
           ...);
        }
      }
      if (bias != nullptr) ((sum[I] = sum[I].plus(V::load(bias + I % Vectors * V::width))), ...);
      (sum[I].store(to + I / Vectors * to_step + I % Vectors * V::width), ...);
    }
  }
};

/// w(tap, c) = sum over pixels of patch(pixel, (tap, c)) dy(pixel, c). The lines of pixels are cut into parts by the
/// shape alone, and the parts are added in order.
template <class T>
struct depthwise_weights {
  const patches<T>& a;
  const T* dy;
  index_t lines, parts, size;
  temporary_array<T> partial;

  depthwise_weights(const patches<T>& image, const T* gradient)
      : a(image),
        dy(gradient),
        lines(image.axes[2].out > 0 ? image.rows() / image.axes[2].out : 0),
        parts(lines < 1 ? 1 : smaller(lines, 16)),
        size(image.columns() + image.channels),
        partial(parts * size) {}

  void compute(T* dw, const conv_weight_strides& strides, T* sums, bool add, thread_pool& pool) {
    pool.parallel_for(parts, [&](index_t part) {
      T* const to = partial.data() + part * size;
      std::fill_n(to, size, T(0));
      if (lines == 0) return;
      patch_walk<T> walk(a, share_begin(lines, parts, part) * a.axes[2].out);
      for (index_t l = share_begin(lines, parts, part); l < share_begin(lines, parts, part + 1); ++l) {
        add_line(walk, dy + l * a.axes[2].out * a.channels, to, sums != nullptr);
        walk.skip(a.axes[2].out);
      }
    });
    const auto sum_of = [&](index_t i) {
      T sum = partial[i];
      for (index_t s = 1; s < parts; ++s) sum += partial[s * size + i];
      return sum;
    };
    index_t i = 0;
    for (index_t t0 = 0; t0 < a.axes[0].taps; ++t0)
      for (index_t t1 = 0; t1 < a.axes[1].taps; ++t1)
        for (index_t t2 = 0; t2 < a.axes[2].taps; ++t2)
          for (index_t c = 0; c < a.channels; ++c, ++i) {
            T& to = dw[t0 * strides.tap[0] + t1 * strides.tap[1] + t2 * strides.tap[2] + c * strides.filter];
            to = add ? to + sum_of(i) : sum_of(i);
          }
    if (sums == nullptr) return;
    for (index_t c = 0; c < a.channels; ++c, ++i) sums[c] = add ? sums[c] + sum_of(i) : sum_of(i);
  }

  void add_line(const patch_walk<T>& walk, const T* of, T* to, bool with_sums) const {
    const index_t out = a.axes[2].out, channels = a.channels;
    const patch_line line = walk.line();
    for (index_t t0 = line.taps[0].begin; t0 < line.taps[0].end; ++t0)
      for (index_t t1 = line.taps[1].begin; t1 < line.taps[1].end; ++t1)
        for (index_t t2 = 0; t2 < a.axes[2].taps; ++t2) {
          const index_range inside = a.axes[2].results_inside(t2, t2, 0, out);
          if (inside.begin == inside.end) continue;
          const index_t at = walk.line_base() + a.tap_offset(0, t0) + a.tap_offset(1, t1) +
                             a.axes[2].at(inside.begin, t2) * a.axis_stride[2];
          T* const sums = to + ((t0 * a.axes[1].taps + t1) * a.axes[2].taps + t2) * channels;
          for_channels<T>(channels, [&]<class V, int... I>(index_t c0, std::type_identity<V>,
                                                           std::integer_sequence<int, I...>) {
            V sum[] = {(static_cast<void>(I), V::zero())...};
            const T* x = a.data + at + c0;
            const T* g = of + inside.begin * channels + c0;
            for (index_t o = inside.begin; o < inside.end; ++o, x += a.axes[2].step * a.axis_stride[2], g += channels)
              ((sum[I] = sum[I].plus_product(V::load(x + I * V::width), V::load(g + I * V::width))), ...);
            ((V::load(sums + c0 + I * V::width).plus(sum[I]).store(sums + c0 + I * V::width)), ...);
          });
        }
    if (!with_sums) return;
    T* const sums = to + a.columns();
    for (index_t o = 0; o < out; ++o) add_elements(sums, of + o * channels, channels);
  }
};

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
