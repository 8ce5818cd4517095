// sinter/cpu/detail/conv_weights.hpp: the gradient of a convolution's weights, a product over pixels.
#pragma once

#include "sinter/cpu/detail/conv_patches.hpp"
#include "sinter/cpu/detail/gemm_packed.hpp"
#include "sinter/cpu/loop.hpp"

namespace sinter::cpu_impl::detail {

/// partial(s, filter, column) = sum over the pixels of part s of dy(pixel, filter) patch(pixel, column), of one group,
/// and then the sum over s, in order. How the pixels are cut into parts, and parts into blocks, follows from the shape.
///
/// A task takes a part, some filters and some columns. Block by block of pixels it packs the filters of dy into memory
/// that its L2 cache holds, then strip by strip the patches into L1, and multiplies the strip by all of them.
template <class T>
struct weight_product {
  using shape = tile_shape<T>;
  static constexpr index_t max_parts = 16, max_filters = 20 * shape::max_rows, max_copied = 256;
  static constexpr index_t max_partial = (index_t{4} << 20) / static_cast<index_t>(sizeof(T));

  const patches<T>& a;
  const T* dy;
  index_t filters, dy_stride;
  bool plain;       ///< strips are packed from the image itself
  bool tap_by_tap;  ///< no strip crosses taps
  index_t rows, columns, strips, filter_parts, column_parts, blocks, block_rows, parts;
  temporary_array<T> partial;

  weight_product(const patches<T>& image, const T* gradient, index_t filter_count, index_t gradient_stride)
      : a(image),
        dy(gradient),
        filters(filter_count),
        dy_stride(gradient_stride),
        plain(image.plain()),
        tap_by_tap(image.channels % shape::max_columns == 0),
        rows(image.rows()),
        columns(image.columns()),
        strips(ceil_div(columns, shape::max_columns)),
        filter_parts(ceil_div(filters, max_filters)),
        // Where patches are copied before they are packed, there is room for fewer.
        column_parts(ceil_div(strips, (plain || tap_by_tap ? 3 * max_copied : max_copied) / shape::max_columns)),
        blocks(ceil_div(rows, plain || tap_by_tap ? patch_block<T> : patch_block<T> / 2)),
        block_rows(blocks > 0 ? ceil_div(rows, blocks) : 0),
        parts(plan_parts()),
        partial(parts * filters * columns) {}

  /// Adds the sums of dy's columns to `sums` too unless it is null.
  void compute(T* dw, const conv_weight_strides& strides, T* sums, bool add, thread_pool& pool) {
    const temporary_array<T> partial_sums(sums != nullptr ? parts * filters : 0);
    T* const sums_of = sums != nullptr ? partial_sums.data() : nullptr;
    const index_t tiles = filter_parts * column_parts;
    pool.parallel_for(parts * tiles, [&](index_t task) {
      compute_tile(task / tiles, task % tiles / column_parts, task % column_parts, sums_of);
    });
    if (sums != nullptr && tiles == 0) std::fill_n(sums_of, parts * filters, T(0));
    pool.parallel_for(filters, [&](index_t f) {
      add_parts(f, dw + f * strides.filter, strides, add);
      if (sums == nullptr) return;
      T sum = sums_of[f];
      for (index_t s = 1; s < parts; ++s) sum += sums_of[s * filters + f];
      sums[f] = add ? sums[f] + sum : sum;
    });
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

  void compute_tile(index_t part, index_t filter_part, index_t column_part, T* sums) const {
    const index_t all_panels = ceil_div(filters, shape::max_rows);
    const index_t f0 = share_begin(all_panels, filter_parts, filter_part) * shape::max_rows;
    const index_t f1 = smaller(share_begin(all_panels, filter_parts, filter_part + 1) * shape::max_rows, filters);
    const index_t panels = ceil_div(f1 - f0, shape::max_rows);
    const index_t c0 = share_begin(strips, column_parts, column_part) * shape::max_columns;
    const index_t c1 = smaller(share_begin(strips, column_parts, column_part + 1) * shape::max_columns, columns);
    const index_t c_stride = ceil_div(c1 - c0, shape::max_columns) * shape::max_columns;
    const index_t panel_size = ceil_div(block_rows * shape::max_rows, shape::lanes) * shape::lanes + shape::lanes;
    const index_t strip_size = block_rows * shape::max_columns;
    const bool copies = !plain && !tap_by_tap;
    const index_t most = copies ? a.most_pieces(c1 - c0) : 0;
    static_assert(sizeof(patch_piece) % sizeof(T) == 0);
    T* const packed =
        scratch<T>(1, static_cast<std::size_t>(panels * panel_size + strip_size + (copies ? block_rows * c_stride : 0) +
                                               most * static_cast<index_t>(sizeof(patch_piece) / sizeof(T))));
    T* const strip = packed + panels * panel_size;
    T* const copied = strip + strip_size;
    auto* const pieces = reinterpret_cast<patch_piece*>(copied + (copies ? block_rows * c_stride : 0));
    const index_t piece_count = copies ? a.cut(c0, c1, pieces) : 0;
    T* const c = partial.data() + part * filters * columns;
    T* const own_sums = sums != nullptr && column_part == 0 ? sums + part * filters : nullptr;
    if (own_sums != nullptr) std::fill(own_sums + f0, own_sums + f1, T(0));
    index_t pixels[std::size_t{patch_block<T>}], pixels_of = -1;  // where they lie for the tap of that number
    const index_t begin = share_begin(blocks, parts, part), end = share_begin(blocks, parts, part + 1);
    for (index_t block = begin; block < end; ++block) {
      const index_t r0 = block * block_rows, count = smaller(r0 + block_rows, rows) - r0;
      if (count <= 0) break;
      pack_filters(r0, count, f0, f1, panel_size, packed);
      if (own_sums != nullptr)
        for (index_t f = f0, p = 0; f < f1; f += shape::max_rows, ++p)
          add_sums(packed + p * panel_size, smaller(f1 - f, shape::max_rows), count, own_sums + f);
      if (copies) copy_patches(a, r0, count, pieces, piece_count, c_stride, copied);
      pixels_of = -1;
      for (index_t column = c0; column < c1; column += shape::max_columns) {
        const index_t width = strip_width<T>(columns - column), valid = smaller(width, columns - column);
        // The first panel packs a strip of full width on its way where its rows are evenly spaced.
        const bool even_rows = (plain && valid == width) || copies;
        const T* const from = copies ? copied + (column - c0) : a.data + r0 * a.pixel_stride + column;
        const index_t step = copies ? c_stride : a.pixel_stride;
        const bool on_the_way = even_rows && width == shape::max_columns;
        if (!on_the_way && !even_rows && tap_by_tap) {
          const index_t tap = column / a.channels;
          if (tap != pixels_of) find_pixels(a, r0, count, tap, pixels);
          pixels_of = tap;
          pack_pixels(a.data + column % a.channels, pixels, count, width, strip);
        } else if (!on_the_way) {
          pack_strip(strip, width, strip_source<T>{from, 1, step, valid, copies ? width : valid}, count);
        }
        for (index_t f = f0, p = 0; f < f1; f += shape::max_rows, ++p)
          multiply(packed + p * panel_size, strip, count, width, smaller(f1 - f, shape::max_rows), valid,
                   c + f * columns + column, block > begin, on_the_way && p == 0 ? from : nullptr, step);
      }
    }
  }

  static index_t even(index_t n) { return (n + 1) / 2 * 2; }

  /// Filters of dy that lie side by side share cache lines and pages between panels, hence a few pixels at a time.
  void pack_filters(index_t row, index_t count, index_t f0, index_t f1, index_t panel_size, T* packed) const {
    constexpr index_t together = 32;
    for (index_t k = 0; k < count; k += together)
      for (index_t f = f0, p = 0; f < f1; f += shape::max_rows, ++p) {
        const index_t valid = smaller(f1 - f, shape::max_rows), width = even(valid);
        pack_strip(packed + p * panel_size + k * width, width,
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

  /// c = [c +] panel * strip; where `unpacked` is given, it is the strip, and `strip` where it is packed.
  void multiply(const T* panel, T* strip, index_t k_count, index_t width, index_t valid_rows, index_t valid_columns,
                T* c, bool adds, const T* unpacked, index_t step) const {
    const tile_functions<T>& kernels = kernels_for<T>(even(valid_rows));
    const tile_function<T> tile = unpacked != nullptr     ? kernels.wide_packing
                                  : width == shape::lanes ? kernels.narrow
                                                          : kernels.wide;
    const T* const b = unpacked != nullptr ? unpacked : strip;
    if (even(valid_rows) == valid_rows && width == valid_columns)
      return tile(k_count, panel, b, c, columns, adds, panel, step, strip);
    alignas(64) T whole[std::size_t{shape::max_rows * shape::max_columns}];
    tile(k_count, panel, b, whole, width, false, panel, step, strip);
    for (index_t i = 0; i < valid_rows; ++i) {
      if (adds) add_elements(c + i * columns, whole + i * width, valid_columns);
      else copy_elements(c + i * columns, whole + i * width, valid_columns);
    }
  }
};

}  // namespace sinter::cpu_impl::detail
