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
  static constexpr index_t max_parts = 16, max_filters = 20 * shape::max_rows;
  static constexpr index_t max_partial = (index_t{4} << 20) / static_cast<index_t>(sizeof(T));

  const patches<T>& a;
  const T* dy;
  index_t filters, dy_stride;
  index_t rows, columns, strips, filter_parts, column_parts, blocks, block_rows, parts;
  temporary_array<T> partial;

  weight_product(const patches<T>& image, const T* gradient, index_t filter_count, index_t gradient_stride)
      : a(image),
        dy(gradient),
        filters(filter_count),
        dy_stride(gradient_stride),
        rows(image.rows()),
        columns(image.columns()),
        strips(ceil_div(columns, shape::max_columns)),
        filter_parts(ceil_div(filters, max_filters)),
        column_parts(plan_column_parts()),
        blocks(ceil_div(rows, patch_block<T>)),
        block_rows(blocks > 0 ? ceil_div(rows, blocks) : 0),
        parts(plan_parts()),
        partial(parts * filters * columns) {}

  index_t plan_column_parts() const {
    constexpr index_t strips_per_part = 256 / shape::max_columns;
    return ceil_div(strips, strips_per_part);
  }

  index_t plan_parts() const {
    const index_t size = filters * columns;
    if (size == 0 || blocks == 0) return 1;
    index_t most = smaller(max_partial / size, smaller(max_parts, blocks));
    most = smaller(most, ceil_div(64, filter_parts * column_parts));  // tasks enough
    return most < 1 ? 1 : most;
  }

  /// With dw_of(filter, column) the place of a weight; `sums`, if not null, gets those of dy's columns.
  template <class Place>
  void compute(T* dw, const Place& dw_of, T* sums, bool add, thread_pool& pool) {
    const temporary_array<T> partial_sums(sums != nullptr ? parts * filters : 0);
    T* const sums_of = sums != nullptr ? partial_sums.data() : nullptr;
    const index_t tiles = filter_parts * column_parts;
    pool.parallel_for(parts * tiles, [&](index_t task) {
      compute_tile(task / tiles, task % tiles / column_parts, task % column_parts, sums_of);
    });
    if (sums != nullptr && tiles == 0) std::fill_n(sums_of, parts * filters, T(0));
    pool.parallel_for(filters, [&](index_t f) {
      for (index_t j = 0; j < columns; ++j) {
        T sum = rows > 0 ? partial[f * columns + j] : T(0);
        for (index_t s = 1; s < parts; ++s) sum += partial[(s * filters + f) * columns + j];
        T& to = dw[dw_of(f, j)];
        to = add ? to + sum : sum;
      }
      if (sums == nullptr) return;
      T sum = sums_of[f];
      for (index_t s = 1; s < parts; ++s) sum += sums_of[s * filters + f];
      sums[f] = add ? sums[f] + sum : sum;
    });
  }

  void compute_tile(index_t part, index_t filter_part, index_t column_part, T* sums) const {
    const index_t f0 = filter_part * max_filters, f1 = smaller(f0 + max_filters, filters);
    const index_t panels = ceil_div(f1 - f0, shape::max_rows);
    const index_t s0 = share_begin(strips, column_parts, column_part);
    const index_t s1 = share_begin(strips, column_parts, column_part + 1);
    const index_t panel_size = block_rows * shape::max_rows + shape::lanes;
    T* const packed =
        scratch<T>(1, static_cast<std::size_t>(panels * panel_size + shape::lanes + block_rows * shape::max_columns));
    T* const strip = packed + ceil_div(panels * panel_size, shape::lanes) * shape::lanes;
    T* const c = partial.data() + part * filters * columns;
    T* const own_sums = sums != nullptr && column_part == 0 ? sums + part * filters : nullptr;
    if (own_sums != nullptr) std::fill(own_sums + f0, own_sums + f1, T(0));
    index_t pixels[std::size_t{patch_block<T>}], pixels_of = -1;  // where they lie for the tap of that number
    const index_t begin = share_begin(blocks, parts, part), end = share_begin(blocks, parts, part + 1);
    for (index_t block = begin; block < end; ++block) {
      const index_t r0 = block * block_rows, r1 = smaller(r0 + block_rows, rows);
      const index_t count = r1 > r0 ? r1 - r0 : 0;
      pixels_of = -1;
      for (index_t p = 0; p < panels; ++p) {
        const index_t f = f0 + p * shape::max_rows, valid = smaller(f1 - f, shape::max_rows);
        const index_t width = (valid + 1) / 2 * 2;
        pack_strip(packed + p * panel_size, width,
                   strip_source<T>{dy + r0 * dy_stride + f, 1, dy_stride, valid, filters - f}, count);
        if (own_sums != nullptr) add_sums(packed + p * panel_size, width, valid, count, own_sums + f);
      }
      for (index_t s = s0; s < s1; ++s) {
        const index_t column = s * shape::max_columns, width = strip_width<T>(columns - column);
        const index_t column_end = smaller(column + width, columns);
        const index_t tap = column / a.channels, channel = column % a.channels;
        if (channel + width <= a.channels) {
          const index_t taps[] = {tap / a.axes[2].taps / a.axes[1].taps, tap / a.axes[2].taps % a.axes[1].taps,
                                  tap % a.axes[2].taps};
          if (tap != pixels_of) find_pixels(a, r0, count, taps, pixels);
          pixels_of = tap;
          pack_pixels(a.data + channel, pixels, count, width, strip);
        } else {
          pack_patch_strip(a, r0, count, column, column_end, width, strip);
        }
        for (index_t p = 0; p < panels; ++p) {
          const index_t f = f0 + p * shape::max_rows;
          multiply(packed + p * panel_size, strip, count, width, smaller(f1 - f, shape::max_rows), column_end - column,
                   c + f * columns + column, block > begin);
        }
      }
    }
  }

  static void add_sums(const T* panel, index_t width, index_t valid, index_t count, T* sums) {
    T sum[std::size_t{shape::max_rows}] = {};
    for (index_t k = 0; k < count; ++k)
      for (index_t i = 0; i < valid; ++i) sum[i] += panel[k * width + i];
    for (index_t i = 0; i < valid; ++i) sums[i] += sum[i];
  }

  void multiply(const T* panel, const T* strip, index_t k_count, index_t width, index_t valid_rows,
                index_t valid_columns, T* c, bool adds) const {
    const index_t panel_rows = (valid_rows + 1) / 2 * 2;
    const tile_functions<T>& kernels = kernels_for<T>(panel_rows);
    const tile_function<T> tile = width == shape::lanes ? kernels.narrow : kernels.wide;
    if (panel_rows == valid_rows && width == valid_columns)
      return tile(k_count, panel, strip, c, columns, adds, panel, 0, nullptr);
    alignas(64) T whole[std::size_t{shape::max_rows * shape::max_columns}];
    tile(k_count, panel, strip, whole, width, false, panel, 0, nullptr);
    for (index_t i = 0; i < valid_rows; ++i)
      for (index_t j = 0; j < valid_columns; ++j) {
        T& to = c[i * columns + j];
        to = adds ? to + whole[i * width + j] : whole[i * width + j];
      }
  }
};

}  // namespace sinter::cpu_impl::detail
