// sinter/cuda/conv_channelwise.hpp: convolutions on GPUs whose groups have one channel (depthwise ones): channels do
// not mix, so there is no product.
#pragma once

#include "sinter/cuda/conv_patches.hpp"

namespace sinter::cuda_impl {

/// Results of a part: a thread for Lanes neighbouring channels of a pixel. Result channel c reads `reads` channels from
/// c / shares * reads on. Weights are (taps, filters). Lanes is 1 unless reads and shares are.
template <class T, int Lanes>
struct channelwise_body {
  conv_axis axes[3];
  part_places places;
  splitter by_pieces, by_shares;
  index_t rows, channels, from_channels, filters, reads;
  const T *from, *weights, *bias;
  T* to;
  bool add;

  channelwise_body(const conv_extents& e, const conv_part& part, bool back, const T* images, const T* packed,
                   const T* bias_or_null, T* results, bool adds)
      : axes{part.axes[0], part.axes[1], part.axes[2]},
        places(part, e.batch * part.pixels()),
        rows(e.batch * part.pixels()),
        channels(back ? e.channels : e.filters),
        from_channels(back ? e.filters : e.channels),
        filters(e.filters),
        reads(back ? e.filters / e.channels : 1),
        from(images),
        weights(packed),
        bias(bias_or_null),
        to(results),
        add(adds) {
    by_pieces = splitter(channels / Lanes, numel());
    by_shares = splitter(back ? 1 : e.filters / e.channels, channels);
  }
  SINTER_WORD index_t numel() const { return rows * (channels / Lanes); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    each_element(g, numel(), [&](index_t i) {
      index_t piece = i;
      const index_t row = by_pieces(piece), channel = piece * Lanes;
      index_t image = 0, out[3] = {0, 0, 0}, rest = channel;
      places.results.find(row, image, out);
      const index_t first = by_shares(rest) * reads;
      chunk<C, Lanes> sums{};
      if (bias != nullptr) {
        SINTER_UNROLL
        for (int l = 0; l < Lanes; ++l) sums.value[l] = static_cast<C>(bias[channel + l]);
      }
      const T* w = weights + channel * reads;
      for (index_t k0 = 0; k0 < axes[0].taps; ++k0)
        for (index_t k1 = 0; k1 < axes[1].taps; ++k1)
          for (index_t k2 = 0; k2 < axes[2].taps; ++k2, w += filters) {
            const index_t a = axes[0].at(out[0], k0), b = axes[1].at(out[1], k1), c = axes[2].at(out[2], k2);
            if (a < 0 || b < 0 || c < 0 || a >= axes[0].in || b >= axes[1].in || c >= axes[2].in) continue;
            const index_t pixel = ((image * axes[0].in + a) * axes[1].in + b) * axes[2].in + c;
            add_products(from + pixel * from_channels + first, w, sums);
          }
      write_chunk<T, Lanes>(to + places(row) * channels + channel, true, Lanes, sizeof(T), add, sums);
    });
  }

 private:
  SINTER_WORD void add_products(const T* x, const T* w, chunk<compute_type<T>, Lanes>& sums) const {
    using C = compute_type<T>;
    for (index_t j = 0; j < reads; ++j) {
      const auto a = *reinterpret_cast<const chunk<T, Lanes>*>(in_memory(x + j));
      const auto b = *reinterpret_cast<const chunk<T, Lanes>*>(in_memory(w + j));
      SINTER_UNROLL
      for (int l = 0; l < Lanes; ++l) sums.value[l] += static_cast<C>(a.value[l]) * static_cast<C>(b.value[l]);
    }
  }
};

/// Sums of the gradient of each weight over parts of the pixels: a block for Lanes times `columns` filters, a tap and a
/// part. Its threads add up every so many pixels, then the first ones of them what all have, in order.
template <class T, int Lanes>
struct channelwise_sums_body {
  using C = compute_type<T>;
  conv_axis axes[3];
  pixel_space results, taps;
  splitter by_shares;
  index_t rows, channels, filters, tap_count, tiles, part_rows, parts;
  int columns;  ///< threads side by side, a power of two
  const T *x, *dy;
  C* sums;  ///< (part, tap, filter)

  channelwise_sums_body(const conv_extents& e, const conv_part& part, const T* images, const T* gradients)
      : axes{part.axes[0], part.axes[1], part.axes[2]},
        rows(e.batch * part.pixels()),
        channels(e.channels),
        filters(e.filters),
        tap_count(part.taps()),
        columns(1),
        x(images),
        dy(gradients),
        sums(nullptr) {
    const index_t out[3] = {axes[0].out, axes[1].out, axes[2].out}, tap[3] = {axes[0].taps, axes[1].taps, axes[2].taps};
    results = pixel_space(out, rows);
    taps = pixel_space(tap, tap_count);
    by_shares = splitter(filters / channels, filters);
    while (columns < 32 && columns * Lanes < filters) columns *= 2;
    tiles = (filters + columns * Lanes - 1) / (columns * Lanes);
    const index_t wanted = (2 * enough_blocks + tap_count * tiles - 1) / (tap_count * tiles);
    const index_t least = 4 * (block_threads / columns);
    part_rows = std::max((rows + wanted - 1) / wanted, least);
    parts = (rows + part_rows - 1) / part_rows;
  }
  std::size_t bytes() const { return static_cast<std::size_t>(parts * tap_count * filters) * sizeof(C); }
  launch_shape launch() const {
    return {blocks_for(parts * tap_count * tiles), block_threads * std::size_t{Lanes} * sizeof(C)};
  }

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const int column = g.thread() & (columns - 1), line = g.thread() / columns, lines = g.threads() / columns;
    C* const shared = g.template shared<C>();
    for (index_t item = g.block(); item < parts * tap_count * tiles; item += g.blocks()) {
      const index_t tile = item % tiles, rest = item / tiles, part = rest / tap_count, number = rest - part * tap_count;
      const index_t filter = (tile * columns + column) * Lanes, end = (part + 1) * part_rows;
      chunk<C, Lanes> sum{};
      if (filter < filters) add_up(number, filter, part * part_rows + line, end < rows ? end : rows, lines, sum);
      SINTER_UNROLL
      for (int l = 0; l < Lanes; ++l) shared[(line * columns + column) * Lanes + l] = sum.value[l];
      g.sync();
      if (line == 0 && filter < filters) {
        for (int other = 1; other < lines; ++other) {
          SINTER_UNROLL
          for (int l = 0; l < Lanes; ++l) sum.value[l] += shared[(other * columns + column) * Lanes + l];
        }
        SINTER_UNROLL
        for (int l = 0; l < Lanes; ++l) sums[rest * filters + filter + l] = sum.value[l];
      }
      g.sync();
    }
  }

 private:
  SINTER_WORD void add_up(index_t number, index_t filter, index_t begin, index_t end, int step,
                          chunk<C, Lanes>& sum) const {
    index_t nothing = 0, tap[3] = {0, 0, 0}, channel = filter;
    taps.find(number, nothing, tap);
    channel = by_shares(channel);
    for (index_t row = begin; row < end; row += step) {
      index_t pixel = 0, out[3] = {0, 0, 0};
      results.find(row, pixel, out);
      bool inside = true;
      SINTER_UNROLL
      for (int a = 0; a < 3; ++a) {
        const index_t at = axes[a].at(out[a], tap[a]);
        inside = inside && at >= 0 && at < axes[a].in;
        pixel = pixel * axes[a].in + at;
      }
      if (!inside) continue;
      const auto a = *reinterpret_cast<const chunk<T, Lanes>*>(in_memory(x + pixel * channels + channel));
      const auto b = *reinterpret_cast<const chunk<T, Lanes>*>(in_memory(dy + row * filters + filter));
      SINTER_UNROLL
      for (int l = 0; l < Lanes; ++l) sum.value[l] += static_cast<C>(a.value[l]) * static_cast<C>(b.value[l]);
    }
  }
};

/// dw (+)= the sums of the parts, in their order: a thread for each weight.
template <class T>
struct channelwise_weights_body {
  weight_matrix matrix;  ///< (taps, filters)
  const compute_type<T>* sums;
  T* dw;
  index_t parts;
  bool add;
  SINTER_WORD index_t numel() const { return matrix.numel(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, numel(), [&](index_t i) {
      compute_type<T> sum = 0;
      for (index_t part = 0; part < parts; ++part) sum += sums[part * numel() + i];
      index_t at = 0;
      if (matrix.find(i, at)) put_or_add(dw[at], sum, add);
    });
  }
};

}  // namespace sinter::cuda_impl
