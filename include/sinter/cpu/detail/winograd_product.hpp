// sinter/cpu/detail/winograd_product.hpp: patches times weights by Winograd's tiles.
#pragma once

#include <algorithm>

#include "sinter/cpu/detail/conv_product.hpp"
#include "sinter/cpu/detail/winograd_transforms.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// The tiles of all results, numbered image by image and row by row.
struct tile_grid {
  index_t rows, columns, tile, count;

  tile_grid(const conv_axis* axes, index_t images, index_t tile_extent)
      : rows(ceil_div(axes[1].out, tile_extent)),
        columns(ceil_div(axes[2].out, tile_extent)),
        tile(tile_extent),
        count(images * rows * columns) {}

  index_t image(index_t t) const { return t / (rows * columns); }
  index_t row(index_t t) const { return t / columns % rows * tile; }  ///< its first result
  index_t column(index_t t) const { return t % columns * tile; }

  /// The pixels that tiles [t0, t1) meet, in squares of `extent` pixels.
  pixel_box pixels_met(const conv_axis* axes, index_t t0, index_t t1, index_t extent) const {
    const auto begin = [](const conv_axis& a, index_t o) { return a.first + o > 0 ? a.first + o : 0; };
    const auto end = [extent](const conv_axis& a, index_t o) { return smaller(a.first + o + extent, a.in); };
    const bool one_line = t0 / columns == (t1 - 1) / columns;
    return {{image(t0) * axes[1].in + begin(axes[1], row(t0)), image(t1 - 1) * axes[1].in + end(axes[1], row(t1 - 1))},
            {one_line ? begin(axes[2], column(t0)) : 0, one_line ? end(axes[2], column(t1 - 1)) : axes[2].in}};
  }
};

/// Elements of a row of at least `n`: an odd number of cache lines, so that rows do not meet in few cache sets.
template <class T>
constexpr index_t odd_lines(index_t n) {
  constexpr index_t line = 64 / static_cast<index_t>(sizeof(T));
  return (ceil_div(n, line) | 1) * line;
}

/// Weights as points (point, channel, column), for each point in strips of columns as the kernels read them, block by
/// block of channels.
template <class T>
class packed_points : public strip_layout<T> {
 public:
  using layout = strip_layout<T>;
  using layout::columns, layout::k, layout::k_block, layout::strips;
  using layout::k_begin, layout::strip_begin, layout::strip_columns;
  using typename layout::shape;

  packed_points(const weight_source<T>& w, const winograd_cut& how, thread_pool& pool)
      : layout(w.channels, w.columns), cut(how), memory_(cut.points() * cut.points() * point_stride()) {
    constexpr index_t together = 16;
    const index_t parts = ceil_div(k, together);
    pool.parallel_for(strips * parts, [&](index_t task) {
      const index_t first = task % parts * together;
      pack(w, task / parts, first, smaller(first + together, k));
    });
  }

  const T* strip(index_t point, index_t block, index_t s) const {
    return memory_.data() + point * point_stride() + strip_begin(block, s);
  }
  index_t bytes() const { return cut.points() * cut.points() * point_stride() * static_cast<index_t>(sizeof(T)); }

  const winograd_cut cut;

 private:
  index_t point_stride() const {
    return layout::row_width * k + shape::max_columns;
  }  // or points would share cache sets

  void pack(const weight_source<T>& w, index_t s, index_t c0, index_t c1) const {
    constexpr index_t lanes = shape::lanes, most = 5 * 5;
    const index_t first = s * shape::max_columns, width = strip_columns(s), taps = cut.taps;
    const to_points_function<T> to_points = cut.points() == 4 ? &square_to_points<T, taps_to_points<4, 3>>
                                            : cut.taps == 3   ? &square_to_points<T, taps_to_points<6, 3>>
                                                              : &square_to_points<T, taps_to_points<6, 5>>;
    index_t tap[std::size_t{most}];
    for (index_t t = 0; t < taps * taps; ++t) tap[t] = t / taps * w.tap_stride[1] + t % taps * w.tap_stride[2];
    alignas(64) T square[std::size_t{most * lanes}] = {};  // lanes behind the last column may keep another's weights
    for (index_t c = c0; c < c1; ++c) {
      const index_t block = c / k_block;
      T* const row = memory_.data() + strip_begin(block, s) + (c - k_begin(block)) * width;
      for (index_t j = 0; j < width; j += lanes) {
        const T* one = w.data + c * w.channel_stride + (first + j) * w.column_stride;
        for (index_t l = 0; l < smaller(columns - first - j, lanes); ++l, one += w.column_stride)
          for (index_t t = 0; t < taps * taps; ++t) square[t * lanes + l] = one[tap[t]];
        to_points({square, taps * lanes, lanes}, lanes, row + j, point_stride());
      }
    }
  }

  temporary_array<T> memory_;
};

/// result(row, column) = [result +] patches(row, k) weights(k, column), for columns [first, first + columns) of it, as
/// patch_product makes it but for rounding.
///
/// A task takes a block of tiles and some columns: the tiles of the image become points, each point of all tiles is
/// multiplied by the weights' point, and the products become results, some columns at a time. A point of a tile is one
/// chain of multiply-adds within a block of channels, and blocks are added in order, whatever block the tile lies in.
template <class T>
struct winograd_product {
  using shape = tile_shape<T>;
  static constexpr index_t columns_at_once = 64, fewest_tiles = 4 * segment_rows, most_tiles = 32 * segment_rows;

  patches<T>& a;
  const packed_points<T>& b;
  const result_rows<T>& c;
  index_t first_column;
  bool add;
  const conv_finish<T>& finish;
  tile_grid grid;
  index_t points;                     ///< of a square
  index_t image_width, result_width;  ///< of a row of image or result points
  index_t blocks = 0, column_parts = 1;

  winograd_product(patches<T>& image, const packed_points<T>& weights, const result_rows<T>& result, index_t first,
                   bool accumulate, const conv_finish<T>& last)
      : a(image),
        b(weights),
        c(result),
        first_column(first),
        add(accumulate),
        finish(last),
        grid(image.axes, image.batch, weights.cut.tile),
        points(weights.cut.points() * weights.cut.points()),
        image_width(odd_lines<T>(image.channels)),
        result_width(odd_lines<T>(smaller(weights.strips * shape::max_columns, columns_at_once))) {}

  void compute(thread_pool& pool) {
    const index_t bytes_per_tile = points * (image_width + result_width) * static_cast<index_t>(sizeof(T));
    const index_t wanted = 3 * pool.size(), fitting = 2 * quarter_of_l2() / bytes_per_tile;
    index_t at_once = std::clamp(fitting / segment_rows * segment_rows, fewest_tiles, most_tiles);
    if (pool.size() > 1 && ceil_div(grid.count, at_once) < wanted)
      at_once = std::clamp(ceil_div(ceil_div(grid.count, wanted), segment_rows) * segment_rows, fewest_tiles, at_once);
    blocks = ceil_div(grid.count, at_once);
    column_parts = pool.size() == 1 || blocks >= wanted ? 1 : smaller(ceil_div(wanted, blocks), ceil_div(b.strips, 4));
    const index_t middle = share_begin(grid.count, blocks, blocks / 2);
    const index_t end = share_begin(grid.count, blocks, blocks / 2 + 1);
    const pixel_box box = grid.pixels_met(a.axes, middle, end, b.cut.points());
    const whole_image<T> whole(a, a.is_made_often(box, blocks * column_parts), pool);
    pool.parallel_for(blocks * column_parts,
                      [&](index_t task) { compute_block(task / column_parts, task % column_parts); });
  }

 private:
  struct block_of_tiles {
    index_t first, count, image_stride, result_stride;  ///< strides of points
    T *image_points, *result_points, *bias, *square;
  };

  void compute_block(index_t number, index_t part) const {
    block_of_tiles t{};
    t.first = share_begin(grid.count, blocks, number);
    t.count = share_begin(grid.count, blocks, number + 1) - t.first;
    const index_t rows = ceil_div(t.count, segment_rows) * segment_rows;
    t.image_stride = rows * image_width;
    t.result_stride = rows * result_width;
    const index_t results = points * t.result_stride, bias = columns_at_once + shape::max_columns;
    t.result_points =
        scratch<T>(1, static_cast<std::size_t>(results + points * t.image_stride + bias + points * a.channels));
    t.image_points = t.result_points + results;
    t.bias = t.image_points + points * t.image_stride;
    t.square = t.bias + bias;
    transform_image(t);
    constexpr index_t at_once = columns_at_once / shape::max_columns;
    const index_t s0 = share_begin(b.strips, column_parts, part), s1 = share_begin(b.strips, column_parts, part + 1);
    for (index_t s = s0; s < s1; s += at_once) {
      const index_t end = smaller(s + at_once, s1);
      for (index_t point = 0; point < points; ++point) multiply_point(t, point, s, end);
      transform_results(t, s * shape::max_columns, smaller(end * shape::max_columns, b.columns));
    }
  }

  void transform_image(const block_of_tiles& t) const {
    const int extent = b.cut.points();
    const to_points_function<T> to_points =
        extent == 6 ? &square_to_points<T, image_to_points<6>> : &square_to_points<T, image_to_points<4>>;
    const patches<T> here = a.holding(grid.pixels_met(a.axes, t.first, t.first + t.count, extent));
    for (index_t i = 0; i < t.count; ++i) {
      const index_t tile = t.first + i;
      const pixel_square<const T> image{here.data + grid.image(tile) * a.image_stride, a.axis_stride[1],
                                        a.pixel_stride};
      const auto square = square_of(image, a.axes[1].in, a.axes[2].in, a.axes[1].first + grid.row(tile),
                                    a.axes[2].first + grid.column(tile), extent, a.channels, t.square);
      to_points(square, a.channels, t.image_points + i * image_width, t.image_stride);
    }
  }

  /// The products of strips [s0, s1) of one point.
  void multiply_point(const block_of_tiles& t, index_t point, index_t s0, index_t s1) const {
    const T* const from = t.image_points + point * t.image_stride;
    T* const to = t.result_points + point * t.result_stride;
    for (index_t block = 0; block < b.blocks; ++block) {
      const patch_piece piece{{}, 0, b.k_end(block) - b.k_begin(block), b.k_begin(block)};
      for (index_t s = s0; s < s1; ++s) {
        const auto kernel = b.strip_columns(s) == shape::lanes ? &multiply_pieces<T, 1> : &multiply_pieces<T, 2>;
        for (index_t i = 0; i < t.count; i += segment_rows) {
          const T* row[std::size_t{segment_rows}];
          for (index_t r = 0; r < segment_rows; ++r)  // the rows behind the last tile are not used
            row[r] = from + smaller(i + r, t.count - 1) * image_width;
          kernel(row, &piece, 1, b.strip(point, block, s), to + i * result_width + (s - s0) * shape::max_columns,
                 result_width, block > 0, static_cast<const T*>(nullptr), b.strip_columns(s));
        }
      }
    }
  }

  /// Results of columns [c0, c1), bias and epilogue included.
  void transform_results(const block_of_tiles& t, index_t c0, index_t c1) const {
    const to_results_function<T> to_results = b.cut.points() == 4 ? &points_to_square<T, points_to_results<4, 2>>
                                              : b.cut.tile == 4   ? &points_to_square<T, points_to_results<6, 4>>
                                                                  : &points_to_square<T, points_to_results<6, 2>>;
    std::fill_n(t.bias, columns_at_once + shape::max_columns, T(0));
    if (finish.bias != nullptr) copy_elements(t.bias, finish.bias + first_column + c0, c1 - c0);
    const conv_axis &down = a.axes[1], &across = a.axes[2];
    for (index_t i = 0; i < t.count;) {
      // The tiles of one line of tiles together: their rows of results are complete at once.
      const index_t row = grid.row(t.first + i), begin = grid.column(t.first + i);
      const index_t height = smaller(grid.tile, down.out - row);
      T* const line = c.data + grid.image(t.first + i) * c.image + row * c.step[1];
      index_t column = begin;
      for (; i < t.count && column < across.out; ++i, column += grid.tile)
        to_results(t.result_points + i * result_width, t.result_stride, c1 - c0, t.bias,
                   {line + column * c.step[2] + first_column + c0, c.step[1], c.step[2]}, height,
                   smaller(grid.tile, across.out - column), add);
      if (!finish.after) continue;
      const index_t end = smaller(column, across.out), run = c.step[2] == c.row_length ? end - begin : 1;
      for (index_t y = 0; y < height; ++y)
        for (index_t x = begin; x < end; x += run) {
          const index_t first = (c.offset + (line - c.data) + y * c.step[1] + x * c.step[2]) / c.row_length;
          finish.after(first, first + run, first_column + c0, first_column + c1);
        }
    }
  }
};

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
