// sinter/cpu/detail/conv_few_channels.hpp: gradients of images of few channels, tap by tap.
#pragma once

#include <algorithm>

#include "sinter/cpu/detail/conv_product.hpp"
#include "sinter/cpu/detail/conv_shape.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// dx(pixel, c) = sum over taps and filters of dy(pixel', f) w(f, c, tap), with the pixels of dy as the vector's lanes:
/// a row of the product is a tap of a channel, over a strip of neighbouring pixels of dy, and is added to the pixels of
/// dx that it meets. With the channels as lanes, most of them would be empty.
///
/// A task makes some lines of one image, in planes of its own whose columns are sorted by their remainder by the
/// stride, so that what a tap adds to lies side by side. Lines of dy are added in order, whatever the tasks.
template <class T>
struct few_channel_gradient {
  using shape = tile_shape<T>;
  static constexpr index_t most_channels = 4, lines_at_once = 32;

  const conv_shape& s;  ///< of two axes and one group
  const T* dy;
  const weight_rows<T>& weights;  ///< (tap, channel, filter)
  const result_rows<T>& c;
  bool add;
  const conv_finish<T>& finish;
  index_t phase_width, line_size;

  static bool takes(const conv_shape& s) {
    return s.channels > 0 && s.channels <= most_channels && s.groups == 1 && s.in[0] == 1 && s.out[0] == 1 &&
           s.kernel[0] == 1 && s.padding[0] == 0 && s.filters >= 8 && s.kernel[1] * s.kernel[2] > 1 &&
           s.out[2] * s.stride[2] >= shape::lanes;
  }

  few_channel_gradient(const conv_shape& of, const T* gradient, const weight_rows<T>& w, const result_rows<T>& result,
                       bool adds, const conv_finish<T>& last)
      : s(of),
        dy(gradient),
        weights(w),
        c(result),
        add(adds),
        finish(last),
        phase_width(s.out[2] + (s.kernel[2] - 1) * s.dilation[2] / s.stride[2] + shape::max_columns),
        line_size(phase_width * s.stride[2]) {}

  void compute(thread_pool& pool) const {
    const index_t blocks = ceil_div(s.in[1], lines_at_once);
    pool.parallel_for(s.batch * blocks, [&](index_t task) {
      const index_t y0 = task % blocks * lines_at_once;
      compute_lines(task / blocks, y0, smaller(y0 + lines_at_once, s.in[1]));
    });
  }

 private:
  /// A row of the product: where its weights are, and what it adds to, for pixel 0 of a line.
  struct tap_row {
    const T* weights;
    index_t to;
  };

  void compute_lines(index_t image, index_t y0, index_t y1) const {
    const index_t plane = (y1 - y0) * line_size, most_rows = s.kernel[1] * s.kernel[2] * s.channels;
    const index_t row_words =
        ceil_div(most_rows * static_cast<index_t>(sizeof(tap_row)), 64) * 64 / static_cast<index_t>(sizeof(T));
    T* const planes = scratch<T>(1, static_cast<std::size_t>(s.channels * plane));
    T* const strip = scratch<T>(2, static_cast<std::size_t>(row_words + s.filters * shape::max_columns)) + row_words;
    auto* const rows = reinterpret_cast<tap_row*>(strip - row_words);
    std::fill_n(planes, s.channels * plane, T(0));
    // The lines of dy of which a tap may meet lines [y0, y1).
    const index_t reach = (s.kernel[1] - 1) * s.dilation[1], from = y0 + s.padding[1] - reach;
    const index_t first = from > 0 ? ceil_div(from, s.stride[1]) : 0;
    const index_t behind = smaller(s.out[1], ceil_div(std::max(y1 + s.padding[1], index_t{0}), s.stride[1]));
    for (index_t line = first; line < behind; ++line) {
      const index_t count = find_rows(line * s.stride[1] - s.padding[1], y0, y1, rows);
      const T* const pixels = dy + (image * s.out[1] + line) * s.out[2] * s.filters;
      for (index_t o = 0; count > 0 && o < s.out[2]; o += shape::max_columns) {
        const index_t left = s.out[2] - o, width = strip_width<T>(left);
        pack_strip(strip, width, strip_source<T>{pixels + o * s.filters, s.filters, 1, smaller(left, width), left},
                   s.filters);
        add_strip(rows, count, strip, width, planes + o);
      }
    }
    for (index_t y = y0; y < y1; ++y) write_line(image, y, planes + (y - y0) * line_size, plane);
    if (finish.after) {
      const index_t row = (c.offset + image * c.image + y0 * c.step[1]) / c.row_length;
      finish.after(row, row + (y1 - y0) * s.in[2], 0, s.channels);
    }
  }

  /// The rows of taps that meet lines [y0, y1), for a line of dy whose tap 0 meets line y.
  index_t find_rows(index_t y, index_t y0, index_t y1, tap_row* rows) const {
    tap_row* to = rows;
    for (index_t t2 = 0; t2 < s.kernel[2]; ++t2) {
      const index_t x = t2 * s.dilation[2], at = x % s.stride[2] * phase_width + x / s.stride[2];
      for (index_t t1 = 0; t1 < s.kernel[1]; ++t1) {
        const index_t line = y + t1 * s.dilation[1];
        if (line < y0 || line >= y1) continue;
        for (index_t channel = 0; channel < s.channels; ++channel)
          *to++ = {weights.data() + ((t1 * s.kernel[2] + t2) * s.channels + channel) * s.filters,
                   (channel * (y1 - y0) + line - y0) * line_size + at};
      }
    }
    return to - rows;
  }

  void add_strip(const tap_row* rows, index_t count, const T* strip, index_t width, T* planes) const {
    const patch_piece all{{}, 0, s.filters, 0};
    const auto kernel = width == shape::lanes ? &multiply_pieces<T, 1> : &multiply_pieces<T, 2>;
    alignas(64) T tile[std::size_t{segment_rows * shape::max_columns}];
    for (index_t r = 0; r < count; r += segment_rows) {
      const T* from[std::size_t{segment_rows}];
      const index_t here = smaller(count - r, segment_rows);
      for (index_t i = 0; i < segment_rows; ++i) from[i] = rows[r + (i < here ? i : 0)].weights;
      kernel(from, &all, 1, strip, tile, width, false, nullptr, width);
      for (index_t i = 0; i < here; ++i) add_elements(planes + rows[r + i].to, tile + i * width, width);
    }
  }

  /// Line y of all planes, its columns in order again.
  void write_line(index_t image, index_t y, const T* line, index_t plane) const {
    T* to = c.data + image * c.image + y * c.step[1];
    for (index_t x = 0; x < s.in[2]; ++x, to += c.step[2]) {
      const index_t padded = x + s.padding[2], at = padded % s.stride[2] * phase_width + padded / s.stride[2];
      const bool met = padded < s.stride[2] * phase_width;
      for (index_t channel = 0; channel < s.channels; ++channel) {
        T sum = met ? line[channel * plane + at] : T(0);
        if (add) sum = to[channel] + sum;
        to[channel] = finish.bias != nullptr ? sum + finish.bias[channel] : sum;
      }
    }
  }
};

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
