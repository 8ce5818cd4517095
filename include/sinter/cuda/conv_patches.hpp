// sinter/cuda/conv_patches.hpp: convolutions on GPUs as matrices: patches of images, weights in the same order, and
// results put where they belong.
#pragma once

#include "sinter/cuda/chunk.hpp"
#include "sinter/cuda/pixels.hpp"
#include "sinter/ops/conv_axes.hpp"

namespace sinter::cuda_impl {

using ops::conv_axis, ops::conv_extents;

/// Results of a convolution, or of the gradient of its images, which all see the same taps: `step` apart from `first`
/// on among all results. The taps of `axes` are taps first_tap + k * tap_step of the weights. Without strides one part
/// is the whole.
struct conv_part {
  conv_axis axes[3];  ///< from a result to the images that are read
  index_t step[3] = {1, 1, 1}, first[3] = {0, 0, 0}, extent[3];
  index_t first_tap[3] = {0, 0, 0}, tap_step[3] = {1, 1, 1};

  index_t pixels() const { return axes[0].out * axes[1].out * axes[2].out; }
  index_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  bool is_whole() const { return step[0] * step[1] * step[2] == 1; }
  /// Is the patch of a result the pixel at the same place?
  bool is_identity() const { return axes[0].is_identity() && axes[1].is_identity() && axes[2].is_identity(); }
};

inline conv_part forward_part(const conv_extents& e) {
  return {{ops::forward_axis(e, 0), ops::forward_axis(e, 1), ops::forward_axis(e, 2)},
          {1, 1, 1},
          {0, 0, 0},
          {e.out[0], e.out[1], e.out[2]}};
}
/// f(part) for all parts of the gradient of the images.
template <class F>
void each_data_part(const conv_extents& e, const F& f) {
  for (index_t phase = 0; phase < e.stride[0] * e.stride[1] * e.stride[2]; ++phase) {
    conv_part part{};
    index_t rest = phase;
    for (int a = 2; a >= 0; --a) {
      const index_t at = rest % e.stride[a];
      rest /= e.stride[a];
      const ops::gradient_phase p = ops::phase_of(e, a, at);
      part.axes[a] = p.axis;
      part.step[a] = e.stride[a];
      part.first[a] = at;
      part.extent[a] = e.in[a];
      part.first_tap[a] = p.last_tap;
      part.tap_step[a] = -p.tap_step;
    }
    f(part);
  }
}

/// Weights as matrices, one for each group: (rows, width), of which column (tap, inner channel) is one of the weights
/// and what lies behind the last one is 0.
struct weight_matrix {
  struct axis {
    index_t count, stride;
  };
  axis groups, rows, inner, taps[3];
  index_t origin = 0, width;
  splitter by_width, by_rows, by_inner;
  pixel_space by_taps;

  weight_matrix(const conv_extents& e, const conv_part& part, axis of_groups, axis of_rows, axis of_inner,
                index_t alignment)
      : groups(of_groups), rows(of_rows), inner(of_inner) {
    for (int a = 0; a < 3; ++a) {
      taps[a] = {part.axes[a].taps, part.tap_step[a] * e.w_tap[a]};
      origin += part.first_tap[a] * e.w_tap[a];
    }
    width = (columns() + alignment - 1) / alignment * alignment;
    by_width = splitter(width, numel());
    by_rows = splitter(rows.count, groups.count * rows.count);
    by_inner = splitter(inner.count, width);
    const index_t counts[3] = {taps[0].count, taps[1].count, taps[2].count};
    by_taps = pixel_space(counts, width);
  }
  SINTER_WORD index_t columns() const { return taps[0].count * taps[1].count * taps[2].count * inner.count; }
  SINTER_WORD index_t numel() const { return groups.count * rows.count * width; }

  /// The stride of the columns in the weights as they are; 0 where they have none, or are to be padded.
  index_t column_stride() const {
    if (width != columns()) return 0;
    index_t stride = 0, extent = 1;
    for (const axis* a : {&inner, &taps[2], &taps[1], &taps[0]}) {
      if (a->count == 1) continue;
      if (stride == 0) stride = a->stride;
      else if (a->stride != stride * extent) return 0;
      extent *= a->count;
    }
    return stride == 0 ? 1 : stride;
  }

  /// Finds the weight that is element i of the matrices; false if it is none.
  SINTER_WORD bool find(index_t i, index_t& at) const {
    index_t row = by_width(i), nothing = 0, tap[3] = {0, 0, 0};
    const index_t group = by_rows(row);
    if (i >= columns()) return false;
    by_taps.find(by_inner(i), nothing, tap);
    at = origin + group * groups.stride + row * rows.stride + i * inner.stride + tap[0] * taps[0].stride +
         tap[1] * taps[1].stride + tap[2] * taps[2].stride;
    return true;
  }
};
/// A row for each result of a group. Forward that is a filter, and the inner channels are those that it reads; `back`
/// it is the other way round.
inline weight_matrix weights_of_results(const conv_extents& e, const conv_part& part, bool back, index_t alignment) {
  const index_t filters = e.filters / e.groups;
  const weight_matrix::axis of_filters{filters, e.w_filter}, of_channels{e.channels / e.groups, e.w_channel};
  return {e,
          part,
          {e.groups, filters * e.w_filter},
          back ? of_channels : of_filters,
          back ? of_filters : of_channels,
          alignment};
}
/// (taps, filters) of weights that have one channel each.
inline weight_matrix weights_of_taps(const conv_extents& e, const conv_part& part) {
  return {e, part, {1, 0}, {1, 0}, {e.filters, e.w_filter}, 1};
}

template <class T>
struct pack_weights_body {
  weight_matrix matrix;
  const T* w;
  T* to;
  SINTER_WORD index_t numel() const { return matrix.numel(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, numel(), [&](index_t i) {
      index_t at = 0;
      to[i] = matrix.find(i, at) ? w[at] : T(0);
    });
  }
};
/// w (+)= the matrices; without any, zeros.
template <class From, class T>
struct unpack_weights_body {
  weight_matrix matrix;
  const From* from;
  T* w;
  bool add;
  SINTER_WORD index_t numel() const { return matrix.numel(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, numel(), [&](index_t i) {
      index_t at = 0;
      const auto value = from != nullptr ? static_cast<compute_type<T>>(from[i]) : compute_type<T>(0);
      if (matrix.find(i, at)) put_or_add(w[at], value, add);
    });
  }
};

/// Rows [first, first + rows) of the patches of each group: matrices (rows, width), of which column (tap, channel) is
/// an element of the image, or 0 outside of it. A thread copies Lanes channels at a time.
template <class T, int Lanes>
struct patches_body {
  conv_axis axes[3];
  pixel_space results, taps;
  splitter by_width, by_rows, by_channels;  ///< in pieces of Lanes elements, but for the rows
  index_t groups, rows, first, pieces, tap_count, channels, group_channels;
  const T* x;
  T* to;

  patches_body(const conv_extents& e, const conv_part& part, bool back, index_t width, const T* from, T* matrices,
               index_t first_row, index_t count)
      : axes{part.axes[0], part.axes[1], part.axes[2]}, groups(e.groups), rows(count), first(first_row) {
    pieces = width / Lanes;
    tap_count = part.taps();
    channels = back ? e.filters : e.channels;
    group_channels = channels / groups;
    const index_t out[3] = {axes[0].out, axes[1].out, axes[2].out}, tap[3] = {axes[0].taps, axes[1].taps, axes[2].taps};
    results = pixel_space(out, first + rows);
    taps = pixel_space(tap, width);
    by_width = splitter(pieces, numel());
    by_rows = splitter(rows, groups * rows);
    by_channels = splitter(group_channels / Lanes, pieces);
    x = from;
    to = matrices;
  }
  SINTER_WORD index_t numel() const { return groups * rows * pieces; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, numel(), [&](index_t i) {
      index_t piece = i, row = by_width(piece), image = 0, nothing = 0, out[3] = {0, 0, 0}, tap[3] = {0, 0, 0};
      const index_t group = by_rows(row), number = by_channels(piece);
      chunk<T, Lanes> values{};
      results.find(first + row, image, out);
      taps.find(number, nothing, tap);
      bool inside = number < tap_count;
      SINTER_UNROLL
      for (int a = 0; a < 3; ++a) {
        const index_t at = axes[a].at(out[a], tap[a]);
        inside = inside && at >= 0 && at < axes[a].in;
        image = image * axes[a].in + at;
      }
      if (inside)
        values = *reinterpret_cast<const chunk<T, Lanes>*>(
            in_memory(x + image * channels + group * group_channels + piece * Lanes));
      reinterpret_cast<chunk<T, Lanes>*>(in_memory(to))[i] = values;
    });
  }
};

/// Where the results of a part stand among all: f(row) is the number of a pixel.
struct part_places {
  pixel_space results;
  index_t step[3], first[3], extent[3];

  part_places(const conv_part& part, index_t rows) {
    const index_t out[3] = {part.axes[0].out, part.axes[1].out, part.axes[2].out};
    results = pixel_space(out, rows);
    for (int a = 0; a < 3; ++a) {
      step[a] = part.step[a];
      first[a] = part.first[a];
      extent[a] = part.extent[a];
    }
  }
  SINTER_WORD index_t operator()(index_t row) const {
    index_t pixel = 0, out[3] = {0, 0, 0};
    results.find(row, pixel, out);
    SINTER_UNROLL
    for (int a = 0; a < 3; ++a) pixel = pixel * extent[a] + out[a] * step[a] + first[a];
    return pixel;
  }
};

/// Results [first_row, first_row + rows) of a part (+)= from + bias, or what is there of both. They may lie where
/// `from` does.
template <class T, int Lanes>
struct place_results_body {
  part_places places;
  splitter by_pieces;
  const T *from, *bias;
  T* to;
  index_t first_row, rows, channels;
  bool add;

  SINTER_WORD index_t numel() const { return rows * (channels / Lanes); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    each_element(g, numel(), [&](index_t i) {
      index_t piece = i;
      const index_t row = by_pieces(piece);
      chunk<C, Lanes> sums{};
      if (from != nullptr) {
        const chunk<T, Lanes> v = reinterpret_cast<const chunk<T, Lanes>*>(in_memory(from))[i];
        SINTER_UNROLL
        for (int l = 0; l < Lanes; ++l) sums.value[l] = static_cast<C>(v.value[l]);
      }
      if (bias != nullptr) {
        SINTER_UNROLL
        for (int l = 0; l < Lanes; ++l) sums.value[l] += static_cast<C>(bias[piece * Lanes + l]);
      }
      write_chunk<T, Lanes>(to + places(first_row + row) * channels + piece * Lanes, true, Lanes, sizeof(T), add, sums);
    });
  }
};

}  // namespace sinter::cuda_impl
