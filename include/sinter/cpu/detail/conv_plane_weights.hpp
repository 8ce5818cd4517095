// sinter/cpu/detail/conv_plane_weights.hpp: the gradient of weights over images of few channels, without patches.
#pragma once

#include <algorithm>

#include "sinter/cpu/detail/conv_patches.hpp"
#include "sinter/cpu/detail/conv_product.hpp"
#include "sinter/cpu/detail/gemm_packed.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// partial(s, tap, filter) = sum over the pixels of part s of patch(pixel, tap) dy(pixel, filter), and then the sum
/// over s, in order. How the pixels are cut into parts, and parts into blocks, follows from the shape.
///
/// Block by block of pixels a task copies the planes' lines with zeros around; the kernel reads a few taps of all
/// pixels there, one address for each. It reads dy where it lies if the filters fill the vectors of at most two strips;
/// else a task packs it. An element of a part is a chain of multiply-adds within each block.
template <class T>
struct plane_weights {
  using shape = tile_shape<T>;
  static constexpr index_t pixels_at_once = 128, max_parts = 16;
  /// Taps that the kernel reads at once. With 7 fewer places stay empty than with 8, for 9, 25, 27, 49, 75 and 147
  /// taps.
  static constexpr index_t taps_at_once = segment_rows == 8 ? 7 : segment_rows;

  const patches<T>& a;  ///< a.are_planes()
  const T* dy;
  index_t filters, dy_stride, rows, taps, tap_groups, strips, width, block_rows, blocks, parts;
  temporary_array<T> partial;

  plane_weights(const patches<T>& image, const T* gradient, index_t filter_count, index_t gradient_stride)
      : a(image),
        dy(gradient),
        filters(filter_count),
        dy_stride(gradient_stride),
        rows(image.rows()),
        taps(image.taps()),
        tap_groups(ceil_div(taps, taps_at_once)),
        strips(ceil_div(filters, shape::max_columns)),
        width((strips - 1) * shape::max_columns + strip_width<T>(filters - (strips - 1) * shape::max_columns)),
        block_rows(image.axes[2].out <= pixels_at_once && image.axes[2].out > 0
                       ? pixels_at_once / image.axes[2].out * image.axes[2].out
                       : pixels_at_once),
        blocks(ceil_div(rows, block_rows)),
        parts(std::clamp(blocks, index_t{1}, max_parts)),
        partial(parts * part_size()) {}

  /// Adds the sums of dy's columns to `sums` too unless it is null.
  void compute(T* dw, const conv_weight_strides& strides, T* sums, bool add, thread_pool& pool) {
    const temporary_array<T> partial_sums(sums != nullptr ? parts * filters : 0);
    T* const sums_of = sums != nullptr ? partial_sums.data() : nullptr;
    pool.parallel_for(parts, [&](index_t part) {
      T* const own = sums_of != nullptr ? sums_of + part * filters : nullptr;
      if (own != nullptr) std::fill_n(own, filters, T(0));
      if (blocks == 0) std::fill_n(partial.data(), part_size(), T(0));
      const index_t begin = share_begin(blocks, parts, part), end = share_begin(blocks, parts, part + 1);
      for (index_t block = begin; block < end; ++block)
        add_block(part, block * block_rows, smaller((block + 1) * block_rows, rows), own, block > begin);
    });
    add_parts(dw, strides, add);
    if (sums != nullptr) add_partials(sums, sums_of, filters, parts, add);
  }

 private:
  index_t part_size() const { return tap_groups * taps_at_once * width; }

  void add_block(index_t part, index_t r0, index_t r1, T* sums, bool adds) const {
    const bool in_place = filters == width && strips <= 2;  // more strips would each read a small part of a pixel
    T* const packed = in_place ? nullptr : scratch<T>(1, static_cast<std::size_t>(block_rows * width));
    const T* const from = dy + r0 * dy_stride;
    for (index_t s = 0; s < strips; ++s) {
      const index_t f = s * shape::max_columns, left = filters - f, columns = strip_width<T>(left);
      if (!in_place)
        pack_strip(packed + f * block_rows, columns,
                   strip_source<T>{from + f, 1, dy_stride, smaller(left, columns), left}, r1 - r0);
      if (sums == nullptr) continue;
      alignas(64) T of_block[std::size_t{shape::max_columns}] = {};
      for (index_t i = 0; i < r1 - r0; ++i)
        add_elements(of_block, in_place ? from + f + i * dy_stride : packed + f * block_rows + i * columns, columns);
      add_elements(sums + f, of_block, smaller(left, columns));
    }
    for (index_t r = r0, end = r0; r < r1; r = end, adds = true) {
      end = smaller(r1, (r / a.pixels() + 1) * a.pixels());
      add_rows(part, r, end, from, packed, r - r0, adds);
    }
  }

  /// Rows [r0, r1) of one image, from row `first` of a block on.
  void add_rows(index_t part, index_t r0, index_t r1, const T* from, const T* packed, index_t first, bool adds) const {
    const patches<T> here = a.with_zeros_around(r0, r1);
    patch_piece runs[std::size_t{pixels_at_once}];  // of pixels that lie in one line
    index_t count = 0;
    patch_walk<T> walk(here, r0);
    for (index_t left = r1 - r0; left > 0;) {
      const index_t run = smaller(left, walk.left_in_line());
      runs[count++] = {{}, 0, run, walk.base_at(walk.at(2))};
      left -= run;
      walk.skip(run);
    }
    for (index_t group = 0; group < tap_groups; ++group) {
      const T* tap[std::size_t{taps_at_once}];
      for (index_t i = 0; i < taps_at_once; ++i) {
        const index_t number = group * taps_at_once + i;  // those behind the last tap stand for it, and are not read
        tap[i] = here.data +
                 place_of(smaller(number, taps - 1), [&](int axis, index_t t) { return here.tap_offset(axis, t); });
      }
      T* const to = partial.data() + part * part_size() + group * taps_at_once * width;
      for (index_t s = 0; s < strips; ++s) {
        const index_t f = s * shape::max_columns, columns = strip_width<T>(filters - f);
        const auto multiply_from = [&](auto packets, const T* b, auto ldb) {
          multiply_spaced_pieces<T, packets(), taps_at_once>(tap, runs, count, here.along(), b, ldb, to + f, width,
                                                             adds);
        };
        const auto multiply = [&]<int Packets>(std::integral_constant<int, Packets> packets) {
          if (packed == nullptr) return multiply_from(packets, from + f + first * dy_stride, dy_stride);
          multiply_from(packets, packed + f * block_rows + first * columns,
                        std::integral_constant<index_t, Packets * shape::lanes>{});
        };
        if (columns == shape::lanes) multiply(std::integral_constant<int, 1>{});
        else multiply(std::integral_constant<int, 2>{});
      }
    }
  }
  /// From the first of the values of each tap to that of tap number `tap`; by(axis, its tap) is what an axis adds.
  template <class F>
  index_t place_of(index_t tap, const F& by) const {
    const index_t across = a.axes[2].taps, down = a.axes[1].taps;
    return by(0, tap / across / down) + by(1, tap / across % down) + by(2, tap % across);
  }

  void add_parts(T* dw, const conv_weight_strides& strides, bool add) const {
    for (index_t tap = 0; tap < taps; ++tap) {
      T* const to = dw + place_of(tap, [&](int axis, index_t t) { return t * strides.tap[axis]; });
      for (index_t f = 0; f < filters; ++f) {
        T sum = partial[tap * width + f];
        for (index_t s = 1; s < parts; ++s) sum += partial[s * part_size() + tap * width + f];
        T& element = to[f * strides.filter];
        element = add ? element + sum : sum;
      }
    }
  }
};

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
