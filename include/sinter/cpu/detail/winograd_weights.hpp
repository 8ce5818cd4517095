// sinter/cpu/detail/winograd_weights.hpp: the gradient of a convolution's weights by Winograd's tiles.
#pragma once

#include <algorithm>
#include <utility>

#include "sinter/cpu/detail/winograd_product.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// C(Rows, Packets * lanes) = [C +] A'(Rows, k) B(k, Packets * lanes), A' and B with rows of k where they are.
template <class T, int Rows, int Packets, int... I>
void accumulate_outer(index_t k_count, const T* a, index_t lda, const T* b, index_t ldb, T* c, index_t ldc, bool add,
                      std::integer_sequence<int, I...> all) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr int lanes = tile_shape<T>::lanes;
  packet sum[sizeof...(I)];
  ((sum[I] = ei::pset1<packet>(T(0))), ...);
  for (index_t k = 0; k < k_count; ++k, a += lda, b += ldb) {
    packet right[std::size_t{Packets}];
    for (int p = 0; p < Packets; ++p) {
      right[p] = ei::ploadu<packet>(b + p * lanes);
      read_once(right[p]);
    }
    ((sum[I] = ei::pmadd(ei::pset1<packet>(a[I / Packets]), right[I % Packets], sum[I])), ...);
  }
  store_tile<Packets>(sum, c, ldc, add, all);
}

template <class T>
using outer_function = void (*)(index_t k_count, const T* a, index_t lda, const T* b, index_t ldb, T* c, index_t ldc,
                                bool add);

/// That kernel for an even number of rows, and for one packet or two.
template <class T>
outer_function<T> outer_kernel(index_t rows, bool wide) {
  return [&]<int... R>(std::integer_sequence<int, R...>) {
    static constexpr outer_function<T> table[][2] = {
        {[](index_t k, const T* a, index_t lda, const T* b, index_t ldb, T* c, index_t ldc, bool add) {
           accumulate_outer<T, 2 * R + 2, 1>(k, a, lda, b, ldb, c, ldc, add,
                                             std::make_integer_sequence<int, 2 * R + 2>{});
         },
         [](index_t k, const T* a, index_t lda, const T* b, index_t ldb, T* c, index_t ldc, bool add) {
           accumulate_outer<T, 2 * R + 2, 2>(k, a, lda, b, ldb, c, ldc, add,
                                             std::make_integer_sequence<int, 2 * (2 * R + 2)>{});
         }}...};
    return table[rows / 2 - 1][wide];
  }(std::make_integer_sequence<int, tile_shape<T>::max_rows / 2>{});
}

/// The gradient of the weights as weight_product makes it, but for rounding.
///
/// A task takes a part of the tiles, some channels and some filters. Some tiles at a time it turns the image and dy
/// into points, and adds the products (channels x tiles) (tiles x filters) of every point; at the end of its part, the
/// points become weights. The parts are added in order. How tiles are cut into parts, and parts into blocks, follows
/// from the shape.
template <class T>
struct winograd_weight_product {
  using shape = tile_shape<T>;
  static constexpr index_t tiles_at_once = 48, most_channels = 128, max_parts = 16, few_tasks = 8, together = 16;
  static constexpr index_t max_partial = (index_t{4} << 20) / static_cast<index_t>(sizeof(T));

  const patches<T>& a;
  const T* dy;
  index_t filters, dy_stride;
  winograd_cut cut;
  tile_grid grid;
  index_t points, taps;  ///< of a square
  index_t blocks, channel_parts = 1, filter_parts = 1, parts = 1;
  temporary_array<T> partial;  ///< (part, tap, channel, filter)

  winograd_weight_product(const patches<T>& image, const T* gradient, index_t filter_count, index_t gradient_stride,
                          const winograd_cut& how)
      : a(image),
        dy(gradient),
        filters(filter_count),
        dy_stride(gradient_stride),
        cut(how),
        grid(image.axes, image.batch, how.tile),
        points(how.points() * how.points()),
        taps(how.taps * how.taps),
        blocks(ceil_div(grid.count, tiles_at_once)),
        partial(plan() * size()) {}

  /// Will tasks make many pixels several times?
  bool makes_often() const {
    const index_t middle = share_begin(grid.count, blocks, blocks / 2);
    const index_t end = share_begin(grid.count, blocks, blocks / 2 + 1);
    return a.is_made_often(grid.pixels_met(a.axes, middle, end, cut.points()), blocks * channel_parts * filter_parts);
  }

  /// Adds the sums of dy's columns to `sums` too unless it is null.
  void compute(T* dw, const conv_weight_strides& strides, T* sums, bool add, thread_pool& pool) {
    const temporary_array<T> partial_sums(sums != nullptr ? parts * filters : 0);
    T* const sums_of = sums != nullptr ? partial_sums.data() : nullptr;
    const index_t squares = channel_parts * filter_parts;
    pool.parallel_for(parts * squares, [&](index_t task) {
      compute_part(task / squares, task % squares / filter_parts, task % filter_parts, sums_of);
    });
    const index_t across = ceil_div(filters, together);
    pool.parallel_for(ceil_div(a.channels, together) * across, [&](index_t task) {
      const index_t c = task / across * together, f = task % across * together;
      add_parts(c, smaller(c + together, a.channels), f, smaller(f + together, filters), dw, strides, add);
    });
    if (sums != nullptr) add_partials(sums, sums_of, filters, parts, add);
  }

 private:
  index_t size() const { return taps * a.channels * filters; }

  /// Large squares of channels and filters need fewer transforms; many tasks keep many threads busy.
  index_t plan() {
    constexpr index_t all = most_channels, half = all / 2;
    for (const auto& [channels_at_once, filters_at_once] : {std::pair{all, all}, {half, all}, {half, half}}) {
      channel_parts = ceil_div(a.channels, channels_at_once);
      filter_parts = ceil_div(filters, filters_at_once);
      const index_t squares = channel_parts * filter_parts;
      parts = std::max(index_t{1}, std::min({max_partial / size(), blocks, max_parts, ceil_div(64, squares)}));
      if (parts * squares >= few_tasks) break;
    }
    return parts;
  }

  void add_parts(index_t c0, index_t c1, index_t f0, index_t f1, T* dw, const conv_weight_strides& strides,
                 bool add) const {
    alignas(64) T sum[std::size_t{5 * 5 * together * together}];  // of all parts (tap, channel, filter)
    const index_t width = f1 - f0;
    for (index_t t = 0; t < taps; ++t)
      for (index_t c = c0; c < c1; ++c) {
        T* const to = sum + (t * together + c - c0) * together;
        const T* from = partial.data() + (t * a.channels + c) * filters + f0;
        copy_elements(to, from, width);
        for (index_t s = 1; s < parts; ++s) add_elements(to, from += size(), width);
      }
    index_t tap[std::size_t{5 * 5}];
    for (index_t t = 0; t < taps; ++t) tap[t] = t / cut.taps * strides.tap[1] + t % cut.taps * strides.tap[2];
    for (index_t f = f0; f < f1; ++f)
      for (index_t c = c0; c < c1; ++c) {
        T* const to = dw + f * strides.filter + c * strides.channel;
        for (index_t t = 0; t < taps; ++t) {
          T& element = to[tap[t]];
          const T value = sum[(t * together + c - c0) * together + f - f0];
          element = add ? element + value : value;
        }
      }
  }

  /// What a task works on, and its memory.
  struct part_of_weights {
    index_t c0, channels, f0, filters, image_width, dy_width;       ///< widths of rows of points, in whole packets
    T *image_points, *dy_points, *sums, *image_square, *dy_square;  ///< points as (point, tile, channel or filter)
    T* own_sums;
  };

  static index_t whole_rows(index_t n) { return ceil_div(n, shape::max_rows) * shape::max_rows; }
  static index_t whole_packets(index_t n) { return ceil_div(n, index_t{shape::lanes}) * shape::lanes; }

  void compute_part(index_t part, index_t channel_part, index_t filter_part, T* sums) const {
    part_of_weights w{};
    w.c0 = share_begin(a.channels, channel_parts, channel_part);
    w.channels = share_begin(a.channels, channel_parts, channel_part + 1) - w.c0;
    w.f0 = share_begin(filters, filter_parts, filter_part);
    w.filters = share_begin(filters, filter_parts, filter_part + 1) - w.f0;
    w.image_width = odd_lines<T>(whole_rows(w.channels));
    w.dy_width = odd_lines<T>(w.filters);
    const index_t image_size = points * tiles_at_once * w.image_width, dy_size = points * tiles_at_once * w.dy_width;
    const index_t sums_size = points * w.channels * w.dy_width, image_square = points * w.channels;
    const index_t dy_square = cut.tile * cut.tile * w.filters;
    w.image_points =
        scratch<T>(1, static_cast<std::size_t>(image_size + dy_size + sums_size + image_square + dy_square));
    w.dy_points = w.image_points + image_size;
    w.sums = w.dy_points + dy_size;
    w.image_square = w.sums + sums_size;
    w.dy_square = w.image_square + image_square;
    w.own_sums = sums != nullptr && channel_part == 0 ? sums + part * filters + w.f0 : nullptr;
    if (w.own_sums != nullptr) std::fill_n(w.own_sums, w.filters, T(0));
    const index_t begin = share_begin(blocks, parts, part), end = share_begin(blocks, parts, part + 1);
    for (index_t block = begin; block < end; ++block) {
      const index_t first = share_begin(grid.count, blocks, block);
      const index_t count = share_begin(grid.count, blocks, block + 1) - first;
      transform_tiles(w, first, count);
      for (index_t point = 0; point < points; ++point) multiply_point(w, point, count, block > begin);
    }
    store_taps(w, partial.data() + part * size());
  }

  void transform_tiles(const part_of_weights& w, index_t first, index_t count) const {
    const to_points_function<T> of_image = &square_to_points<T, image_to_points<6>>;
    const to_points_function<T> of_dy =
        cut.tile == 4 ? &square_to_points<T, results_to_points<6, 4>> : &square_to_points<T, results_to_points<6, 2>>;
    const conv_axis &down = a.axes[1], &across = a.axes[2];
    const index_t dy_line = across.out * dy_stride, dy_image = down.out * dy_line;
    const patches<T> here = a.holding(grid.pixels_met(a.axes, first, first + count, cut.points()));
    for (index_t i = 0; i < count; ++i) {
      const index_t tile = first + i, image = grid.image(tile), row = grid.row(tile), column = grid.column(tile);
      const pixel_square<const T> x{here.data + image * a.image_stride + w.c0, a.axis_stride[1], a.pixel_stride};
      of_image(square_of(x, down.in, across.in, down.first + row, across.first + column, cut.points(), w.channels,
                         w.image_square),
               w.channels, w.image_points + i * w.image_width, tiles_at_once * w.image_width);
      const pixel_square<const T> g{dy + image * dy_image + w.f0, dy_line, dy_stride};
      const auto of_results = square_of(g, down.out, across.out, row, column, cut.tile, w.filters, w.dy_square);
      of_dy(of_results, w.filters, w.dy_points + i * w.dy_width, tiles_at_once * w.dy_width);
      if (w.own_sums != nullptr) add_pixels(of_results, cut.tile, w.filters, w.own_sums);
    }
  }

  void multiply_point(const part_of_weights& w, index_t point, index_t count, bool add) const {
    const T* const x = w.image_points + point * tiles_at_once * w.image_width;
    const T* const g = w.dy_points + point * tiles_at_once * w.dy_width;
    T* const to = w.sums + point * w.channels * w.dy_width;
    for (index_t f = 0; f < w.filters; f += shape::max_columns) {
      const bool wide = strip_width<T>(w.filters - f) == shape::max_columns;
      for (index_t c = 0; c < w.channels; c += shape::max_rows) {
        const index_t rows = smaller(shape::max_rows, w.channels - c), even = rows / 2 * 2;
        if (even > 0)
          outer_kernel<T>(even, wide)(count, x + c, w.image_width, g + f, w.dy_width, to + c * w.dy_width + f,
                                      w.dy_width, add);
        if (even == rows) continue;
        alignas(64) T two[std::size_t{2 * shape::max_columns}];  // the last row alone
        outer_kernel<T>(2, wide)(count, x + c + even, w.image_width, g + f, w.dy_width, two, shape::max_columns, false);
        T* const last = to + (c + even) * w.dy_width + f;
        if (add) add_elements(last, two, smaller(shape::max_columns, w.filters - f));
        else copy_elements(last, two, smaller(shape::max_columns, w.filters - f));
      }
    }
  }

  void store_taps(const part_of_weights& w, T* to) const {
    const to_results_function<T> to_taps =
        cut.taps == 3 ? &points_to_square<T, points_to_taps<6, 3>> : &points_to_square<T, points_to_taps<6, 5>>;
    T no_bias[std::size_t{most_channels + shape::max_columns}] = {};
    const index_t step = a.channels * filters;
    for (index_t c = 0; c < w.channels; ++c)
      to_taps(w.sums + c * w.dy_width, w.channels * w.dy_width, w.filters, no_bias,
              {to + (w.c0 + c) * filters + w.f0, cut.taps * step, step}, cut.taps, cut.taps, false);
  }
};

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
