// sinter/cpu/detail/conv_weights.hpp: the gradient of a convolution's weights, a product over pixels.
#pragma once

#include <algorithm>
#include <utility>

#include "sinter/cpu/detail/conv_patches.hpp"
#include "sinter/cpu/detail/gemm_packed.hpp"
#include "sinter/cpu/loop.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// C(Rows, 2 packets) = [C +] A(Rows, k) B(k, 2 packets), A packed as (k, Rows); row k of B begins at b[k] + channel.
template <class T, int Rows, int... I>
void accumulate_pixels(index_t k_count, const T* a, const T* const* b, index_t channel, T* c, index_t ldc, bool add,
                       std::integer_sequence<int, I...> all) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr int lanes = tile_shape<T>::lanes;
  packet sum[sizeof...(I)];
  ((sum[I] = ei::pset1<packet>(T(0))), ...);
  for (index_t k = 0; k < k_count; ++k, a += Rows) {
    const T* const from = b[k] + channel;
    packet right[] = {ei::ploadu<packet>(from), ei::ploadu<packet>(from + lanes)};
    read_once(right[0]);
    read_once(right[1]);
    ((sum[I] = ei::pmadd(ei::pset1<packet>(a[I / 2]), right[I % 2], sum[I])), ...);
  }
  store_tile<2>(sum, c, ldc, add, all);
}

/// That kernel for an even number of rows.
template <class T>
auto pixel_kernel(index_t rows) {
  using function = void (*)(index_t, const T*, const T* const*, index_t, T*, index_t, bool);
  return []<int... I>(index_t index, std::integer_sequence<int, I...>) {
    static constexpr function table[] = {
        [](index_t k, const T* a, const T* const* b, index_t channel, T* c, index_t ldc, bool add) {
          accumulate_pixels<T, 2 * I + 2>(k, a, b, channel, c, ldc, add,
                                          std::make_integer_sequence<int, 2 * (2 * I + 2)>{});
        }...};
    return table[index];
  }(rows / 2 - 1, std::make_integer_sequence<int, tile_shape<T>::max_rows / 2>{});
}

/// partial(s, filter, column) = sum over the pixels of part s of dy(pixel, filter) patch(pixel, column), of one group,
/// and then the sum over s, in order. How the pixels are cut into parts, and parts into blocks, follows from the shape.
///
/// A task takes a part, some filters and some columns. Block by block of pixels it packs the filters of dy into memory
/// that its L2 cache holds, then some strips of the patches, and multiplies each strip, in L1, by all of them. Where a
/// strip would cross taps, the patches of a block are copied together first. With few filters, the kernel reads a strip
/// in the image.
template <class T>
struct weight_product {
  using shape = tile_shape<T>;
  static constexpr index_t max_parts = 16, max_filters = 20 * shape::max_rows;
  static constexpr index_t max_copied =
      patch_block<T> < 256 ? patch_block<T> : 256;  ///< no piece is longer than zero_line
  static constexpr index_t strips_at_once = 4;
  static constexpr index_t max_few_filters = 4 * shape::max_rows;
  static constexpr index_t max_partial = (index_t{4} << 20) / static_cast<index_t>(sizeof(T));

  const patches<T>& a;
  const T* dy;
  index_t filters, dy_stride;
  bool few_filters;  ///< packing a strip would cost more than it gains
  bool from_image;   ///< strips are packed from the image itself
  bool tap_by_tap;   ///< no strip crosses taps
  index_t rows, columns, strips, filter_parts, column_parts, blocks, block_rows, parts;
  temporary_array<T> partial;

  weight_product(const patches<T>& image, const T* gradient, index_t filter_count, index_t gradient_stride)
      : a(image),
        dy(gradient),
        filters(filter_count),
        dy_stride(gradient_stride),
        few_filters(filters <= max_few_filters && image.channels <= patch_block<T>),
        from_image(image.is_image()),
        tap_by_tap(image.channels % shape::max_columns == 0),
        rows(image.rows()),
        columns(image.columns()),
        strips(ceil_div(columns, shape::max_columns)),
        filter_parts(ceil_div(filters, max_filters)),
        // Where patches are copied before they are packed, there is room for fewer.
        column_parts(ceil_div(strips, (from_image || tap_by_tap ? 3 * max_copied : max_copied) / shape::max_columns)),
        blocks(ceil_div(rows, from_image || tap_by_tap ? patch_block<T> : patch_block<T> / 2)),
        block_rows(blocks > 0 ? ceil_div(rows, blocks) : 0),
        parts(plan_parts()),
        partial(parts * filters * columns) {}

  /// Will tasks make many pixels several times?
  bool makes_often() const {
    const index_t middle = blocks / 2 * block_rows, end = smaller(middle + block_rows, rows);
    return middle < end && a.is_made_often(a.pixels_met(middle, end), blocks * filter_parts * column_parts);
  }

  /// Adds the sums of dy's columns to `sums` too unless it is null.
  void compute(T* dw, const conv_weight_strides& strides, T* sums, bool add, thread_pool& pool) {
    const temporary_array<T> partial_sums(sums != nullptr ? parts * filters : 0);
    T* const sums_of = sums != nullptr ? partial_sums.data() : nullptr;
    const index_t tiles = filter_parts * column_parts;
    pool.parallel_for(parts * tiles, [&](index_t task) {
      compute_tile(task / tiles, task % tiles / column_parts, task % column_parts, sums_of);
    });
    if (sums != nullptr && tiles == 0) std::fill_n(sums_of, parts * filters, T(0));
    pool.parallel_for(filters, [&](index_t f) { add_parts(f, dw + f * strides.filter, strides, add); });
    if (sums != nullptr) add_partials(sums, sums_of, filters, parts, add);
  }

 private:
  index_t plan_parts() const {
    const index_t size = filters * columns;
    if (size == 0 || blocks == 0) return 1;
    const index_t enough = ceil_div(64, filter_parts * column_parts);
    const index_t most = smaller(smaller(max_partial / size, blocks), smaller(max_parts, enough));
    return most < 1 ? 1 : most;
  }

  void add_parts(index_t f, T* dw, const conv_weight_strides& strides, bool add) const {
    index_t j = 0;
    for (index_t t0 = 0; t0 < a.axes[0].taps; ++t0)
      for (index_t t1 = 0; t1 < a.axes[1].taps; ++t1)
        for (index_t t2 = 0; t2 < a.axes[2].taps; ++t2) {
          T* to = dw + (t0 * strides.tap[0] + t1 * strides.tap[1] + t2 * strides.tap[2]);
          for (index_t c = 0; c < a.channels; ++c, ++j, to += strides.channel) {
            T sum = rows > 0 ? partial[f * columns + j] : T(0);
            for (index_t s = 1; s < parts; ++s) sum += partial[(s * filters + f) * columns + j];
            *to = add ? *to + sum : sum;
          }
        }
  }

  /// What a task works on, and its memory.
  struct tile {
    index_t f0, f1, c0, c1, panel_size;
    T *packed, *strips;  ///< panels of filters, strips of patches
    T* copied;           ///< patches of all columns, copied_stride apart, where they have to be copied
    index_t copied_stride, pieces;
    patch_piece* piece;
    T* c;
  };

  bool copies() const { return !from_image && !tap_by_tap; }

  void compute_tile(index_t part, index_t filter_part, index_t column_part, T* sums) const {
    constexpr index_t lanes = shape::lanes, words = static_cast<index_t>(sizeof(patch_piece) / sizeof(T));
    static_assert(sizeof(patch_piece) % sizeof(T) == 0);
    const index_t all_panels = ceil_div(filters, shape::max_rows);
    tile t{};
    t.f0 = share_begin(all_panels, filter_parts, filter_part) * shape::max_rows;
    t.f1 = smaller(share_begin(all_panels, filter_parts, filter_part + 1) * shape::max_rows, filters);
    t.c0 = share_begin(strips, column_parts, column_part) * shape::max_columns;
    t.c1 = smaller(share_begin(strips, column_parts, column_part + 1) * shape::max_columns, columns);
    t.panel_size = (ceil_div(block_rows * shape::max_rows, lanes) + 1) * lanes;
    t.copied_stride = copies() ? ceil_div(t.c1 - t.c0, shape::max_columns) * shape::max_columns : 0;
    const index_t packed_size = ceil_div(t.f1 - t.f0, shape::max_rows) * t.panel_size;
    const index_t strips_size = strips_at_once * block_rows * shape::max_columns;
    const index_t copied_size = (block_rows > 0 ? block_rows + 1 : 0) * t.copied_stride;  // copy_planes writes beyond
    const index_t most = copies() ? a.most_pieces(t.c1 - t.c0) : 0;
    t.packed = scratch<T>(1, static_cast<std::size_t>(packed_size + strips_size + copied_size + most * words));
    t.strips = t.packed + packed_size;
    t.copied = t.strips + strips_size;
    t.piece = reinterpret_cast<patch_piece*>(t.copied + copied_size);
    t.pieces = copies() && !a.are_planes() ? a.cut(t.c0, t.c1, t.piece) : 0;
    t.c = partial.data() + part * filters * columns;
    T* const own_sums = sums != nullptr && column_part == 0 ? sums + part * filters : nullptr;
    if (own_sums != nullptr) std::fill(own_sums + t.f0, own_sums + t.f1, T(0));
    const index_t begin = share_begin(blocks, parts, part), end = share_begin(blocks, parts, part + 1);
    for (index_t block = begin; block < end; ++block) {
      const index_t r0 = block * block_rows, count = smaller(r0 + block_rows, rows) - r0;
      if (count > 0) compute_block(t, r0, count, own_sums, block > begin);
    }
  }

  void compute_block(const tile& t, index_t r0, index_t count, T* own_sums, bool adds) const {
    const patches<T> here = a.holding(a.pixels_met(r0, r0 + count));
    pack_filters(t, r0, count);
    if (own_sums != nullptr)
      for (index_t f = t.f0, p = 0; f < t.f1; f += shape::max_rows, ++p)
        add_sums(t.packed + p * t.panel_size, smaller(t.f1 - f, shape::max_rows), count, own_sums + f);
    if (copies() && a.are_planes()) copy_planes(a, r0, count, t.c0, t.c1, t.piece, t.copied_stride, t.copied);
    else if (copies()) copy_patches(here, r0, count, t.piece, t.pieces, t.copied_stride, t.copied);
    if (from_image)
      return multiply_lines(t, here.data + r0 * a.pixel_stride + t.c0, a.pixel_stride, columns - t.c0, count, adds);
    if (copies()) return multiply_lines(t, t.copied, t.copied_stride, t.copied_stride, count, adds);
    const T* pixels[std::size_t{patch_block<T>}];
    index_t pixels_of = -1;  // the number of their tap
    for (index_t column = t.c0, end = column; column < t.c1; column = end) {
      const index_t tap = column / a.channels, channel = column % a.channels;
      if (tap != pixels_of) find_pixels(here, r0, count, tap, pixels);
      pixels_of = tap;
      constexpr index_t width = shape::max_columns;  // channels are a multiple of it
      const index_t left_of_tap = smaller(a.channels - channel, t.c1 - column) / width;
      const index_t together = few_filters ? 1 : smaller(left_of_tap, strips_at_once);
      end = column + together * width;
      if (few_filters) {
        multiply_pixels(t, pixels, count, column, adds);
        continue;
      }
      pack_pixels(pixels, channel, count, together, t.strips);
      for (index_t s = 0; s < together; ++s)
        multiply_strip(t, count, column + s * width, adds, t.strips + s * width * count);
    }
  }

  /// All columns, of patches that lie side by side, `step` apart; `readable` elements of each may be read.
  void multiply_lines(const tile& t, const T* patches, index_t step, index_t readable, index_t count, bool adds) const {
    constexpr index_t width = shape::max_columns;
    const index_t end = smaller(t.c1, columns);
    for (index_t begin = t.c0; begin < end; begin += strips_at_once * width) {
      const T* const from = patches + (begin - t.c0);
      // Strips of full width; the last one may be narrow, or end where nothing more may be read.
      const index_t full = smaller((readable - (begin - t.c0)) / width, ceil_div(end - begin - shape::lanes, width));
      const index_t together = smaller(full, strips_at_once);
      pack_strips(t.strips, together, from, step, count);
      for (index_t s = 0, column = begin; s < strips_at_once && column < end; ++s, column += width) {
        T* const strip = t.strips + s * width * count;
        if (s >= together) {
          const index_t left = end - column, needed = strip_width<T>(left);
          pack_strip(strip, needed, strip_source<T>{from + s * width, 1, step, smaller(left, needed), left}, count);
        }
        multiply_strip(t, count, column, adds, strip);
      }
    }
  }

  static index_t even(index_t n) { return (n + 1) / 2 * 2; }

  /// Filters of dy that lie side by side share cache lines and pages between panels, hence a few pixels at a time.
  void pack_filters(const tile& t, index_t row, index_t count) const {
    constexpr index_t together = 32;
    for (index_t k = 0; k < count; k += together)
      for (index_t f = t.f0, p = 0; f < t.f1; f += shape::max_rows, ++p) {
        const index_t valid = smaller(t.f1 - f, shape::max_rows), width = even(valid);
        pack_strip(t.packed + p * t.panel_size + k * width, width,
                   strip_source<T>{dy + (row + k) * dy_stride + f, 1, dy_stride, valid, filters - f},
                   smaller(together, count - k));
      }
  }

  static void add_sums(const T* panel, index_t valid, index_t count, T* sums) {
    const index_t width = even(valid);
    T sum[std::size_t{shape::max_rows}] = {};
    for (index_t k = 0; k < count; ++k)
      for (index_t i = 0; i < valid; ++i) sum[i] += panel[k * width + i];
    for (index_t i = 0; i < valid; ++i) sums[i] += sum[i];
  }

  /// The strip from `column` on, unpacked, by all panels.
  void multiply_pixels(const tile& t, const T* const* pixels, index_t count, index_t column, bool adds) const {
    for (index_t f = t.f0, p = 0; f < t.f1; f += shape::max_rows, ++p) {
      const index_t valid = smaller(t.f1 - f, shape::max_rows);
      const auto kernel = pixel_kernel<T>(even(valid));
      store(t, f, column, valid, shape::max_columns, adds, [&](T* to, index_t ldc, bool add) {
        kernel(count, t.packed + p * t.panel_size, pixels, column % a.channels, to, ldc, add);
      });
    }
  }

  /// The packed strip from `column` on, by all panels.
  void multiply_strip(const tile& t, index_t count, index_t column, bool adds, const T* strip) const {
    const index_t width = strip_width<T>(columns - column);
    for (index_t f = t.f0, p = 0; f < t.f1; f += shape::max_rows, ++p) {
      const index_t valid = smaller(t.f1 - f, shape::max_rows);
      const tile_functions<T>& kernels = kernels_for<T>(even(valid));
      const tile_function<T> kernel = width == shape::lanes ? kernels.narrow : kernels.wide;
      const T* const panel = t.packed + p * t.panel_size;
      store(t, f, column, valid, width, adds, [&](T* to, index_t ldc, bool add) {
        kernel(count, panel, strip, to, ldc, add, panel + t.panel_size, count);
      });
    }
  }

  /// Has compute(to, ldc, add) make a panel times a strip, by way of memory beside where not all of that is wanted.
  template <class F>
  SINTER_INLINE void store(const tile& t, index_t f, index_t column, index_t valid_rows, index_t width, bool adds,
                           const F& compute) const {
    const index_t valid_columns = smaller(width, columns - column);
    T* const to = t.c + f * columns + column;
    if (even(valid_rows) == valid_rows && width == valid_columns) return compute(to, columns, adds);
    alignas(64) T whole[std::size_t{shape::max_rows * shape::max_columns}];
    compute(whole, width, false);
    for (index_t i = 0; i < valid_rows; ++i) {
      if (adds) add_elements(to + i * columns, whole + i * width, valid_columns);
      else copy_elements(to + i * columns, whole + i * width, valid_columns);
    }
  }
};

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
