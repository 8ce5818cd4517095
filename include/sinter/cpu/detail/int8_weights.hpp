// sinter/cpu/detail/int8_weights.hpp: weights as numbers of 8 bits, and their product with few rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "sinter/cpu/detail/conv_product.hpp"
#include "sinter/math/packet.hpp"

namespace sinter::cpu_impl::detail {

/// Are weights of this type rounded where a prepared model asks for it?
template <class T>
inline constexpr bool rounds_weights = std::is_same_v<T, float>;

/// The larger one; NaN where one of them is.
template <class T>
T larger_or_nan(T a, T b) {
  return a != a || b <= a ? a : b;
}
/// The scale of numbers of which `largest` is the largest: they become -127 to 127.
template <class T>
T int8_scale(T largest) {
  return largest / T(127);
}
/// The whole number nearest to x / scale; 0 for a scale that is not finite.
template <class T>
std::int8_t to_int8(T x, T scale) {
  if (!(scale > 0 && scale <= std::numeric_limits<T>::max())) return 0;
  return static_cast<std::int8_t>(
      std::clamp(std::nearbyint(x / scale), T(-127), T(127)));  // a denormal scale is coarse
}

/// That of a column.
template <class T>
T column_scale(const weight_source<T>& w, index_t column) {
  T largest = 0;
  w.each_row(
      [&](index_t, const T* from) { largest = larger_or_nan(largest, std::abs(from[column * w.column_stride])); });
  return int8_scale(largest);
}

/// How far the numbers of a column are from the given ones after rounding: the root of the sum of squares, relative to
/// that of the given ones.
struct rounding_error {
  double squares = 0, of_difference = 0;

  void add(double given, double rounded) {
    squares += given * given;
    of_difference += (given - rounded) * (given - rounded);
  }
  double relative() const { return squares == 0 ? 0 : std::sqrt(of_difference / squares); }
};

/// A weight_source's matrix, packed as strip_layout says, in whole numbers q from -127 to 127 and a scale for each
/// column: w = q * scale. Weights that are not finite make their column so.
template <class T>
class int8_weights : public strip_layout<T> {
 public:
  using layout = strip_layout<T>;
  using layout::columns, layout::k, layout::strips, layout::row_width;
  using layout::k_begin, layout::k_end, layout::strip_begin, layout::strip_columns;
  using typename layout::shape;

  int8_weights(const weight_source<T>& w, thread_pool& pool)
      : layout(w.rows(), w.columns), numbers_(row_width * k), scales_(row_width) {
    const temporary_array<double> errors(strips);
    pool.parallel_for(strips, [&](index_t s) { errors[s] = round_strip(w, s); });
    for (index_t s = 0; s < strips; ++s) error_ = larger_or_nan(error_, errors[s]);
  }

  const std::int8_t* strip(index_t block, index_t s) const { return numbers_.data() + strip_begin(block, s); }
  const T* scales(index_t s) const { return scales_.data() + s * shape::max_columns; }
  index_t bytes() const { return row_width * (k + static_cast<index_t>(sizeof(T))); }
  /// Of the column that is farthest off.
  double error() const { return error_; }

  /// Strips [s0, s1) of a block, as they are multiplied.
  void unpack(index_t block, index_t s0, index_t s1, T* to) const {
    using V = math::simd<T, shape::lanes>;
    const std::int8_t* from = strip(block, s0);
    for (index_t s = s0; s < s1; ++s) {
      const bool is_wide = strip_columns(s) > shape::lanes;
      const V left = V::load(scales(s)), right = is_wide ? V::load(scales(s) + shape::lanes) : left;
      for (index_t i = k_end(block) - k_begin(block); i > 0; --i) {
        (numbers_at(from) * left).store(to);
        from += shape::lanes;
        to += shape::lanes;
        if (!is_wide) continue;
        (numbers_at(from) * right).store(to);
        from += shape::lanes;
        to += shape::lanes;
      }
    }
  }
  static void unpack_strips(const void* weights, index_t block, index_t s0, index_t s1, T* to) {
    static_cast<const int8_weights*>(weights)->unpack(block, s0, s1, to);
  }

  /// A vector of numbers.
  static SINTER_INLINE auto numbers_at(const std::int8_t* from) {
    return math::cast<T>(math::simd<std::int8_t, shape::lanes>::load(from));
  }

 private:
  double round_strip(const weight_source<T>& w, index_t s) {
    const index_t first = s * shape::max_columns, width = strip_columns(s), valid = smaller(width, columns - first);
    T* const scale = scales_.data() + first;
    for (index_t j = 0; j < width; ++j) scale[j] = j < valid ? column_scale(w, first + j) : T(0);
    rounding_error errors[std::size_t{shape::max_columns}];
    w.each_row([&](index_t row, const T* from) {
      const index_t block = row / layout::k_block;
      std::int8_t* const to = numbers_.data() + strip_begin(block, s) + (row - k_begin(block)) * width;
      for (index_t j = 0; j < width; ++j) {
        const T x = j < valid ? from[(first + j) * w.column_stride] : T(0);
        to[j] = to_int8(x, scale[j]);
        errors[j].add(static_cast<double>(x), static_cast<double>(to[j]) * static_cast<double>(scale[j]));
      }
    });
    double worst = 0;
    for (index_t j = 0; j < valid; ++j) worst = larger_or_nan(worst, errors[j].relative());
    return worst;
  }
  temporary_array<std::int8_t> numbers_;
  temporary_array<T> scales_;
  double error_ = 0;
};

/// The form that is made of rounded weights, for kernels that read floats.
template <class T, class Form>
class of_rounded : public Form {
 public:
  template <class... Args>
  explicit of_rounded(const weight_source<T>& w, Args&&... args)
      : of_rounded(rounded(w), std::forward<Args>(args)...) {}
  double error() const { return error_; }

 private:
  /// The weights (tap, channel, column) after rounding.
  struct rounded {
    temporary_array<T> memory;
    weight_source<T> source;
    double error = 0;

    explicit rounded(const weight_source<T>& w) : memory(w.rows() * w.columns), source(w) {
      source.data = memory.data();
      source.column_stride = 1;
      source.channel_stride = w.columns;
      source.tap_stride[2] = w.columns * w.channels;
      source.tap_stride[1] = source.tap_stride[2] * w.taps[2];
      source.tap_stride[0] = source.tap_stride[1] * w.taps[1];
      for (index_t column = 0; column < w.columns; ++column) round_column(w, column);
    }

   private:
    void round_column(const weight_source<T>& w, index_t column) {
      const T scale = column_scale(w, column);
      rounding_error of_column;
      w.each_row([&](index_t row, const T* from) {
        const T x = from[column * w.column_stride];
        T& to = memory[row * w.columns + column];
        to = static_cast<T>(to_int8(x, scale)) * scale;
        of_column.add(static_cast<double>(x), static_cast<double>(to));
      });
      error = larger_or_nan(error, of_column.relative());
    }
  };
  template <class... Args>
  explicit of_rounded(const rounded& r, Args&&... args)
      : Form(r.source, std::forward<Args>(args)...), error_(r.error) {}

  double error_;
};

/// y(r, column) = [y +] sum over k of x(r, k) w(k, column), for at most 4 rows: a layer and a token. Weights are read
/// once, a byte each.
template <class T>
struct int8_few_rows {
  static constexpr index_t most_rows = 4, least_read = 32768;  ///< bytes of a task
  using shape = tile_shape<T>;

  const T* x;
  index_t rows, x_stride;
  const int8_weights<T>& w;
  T* y;
  index_t y_stride;
  bool add;
  const conv_finish<T>& finish;  ///< over columns from `first_column` on
  index_t first_column = 0;

  void compute(thread_pool& pool) const {
    const index_t strip_bytes = w.k * shape::max_columns,
                  at_once = ceil_div(least_read, strip_bytes > 0 ? strip_bytes : 1);
    const index_t tasks = ceil_div(w.strips, at_once);
    pool.parallel_for(tasks, [&](index_t task) {
      const index_t s0 = share_begin(w.strips, tasks, task), s1 = share_begin(w.strips, tasks, task + 1);
      for (index_t s = s0; s < s1; ++s) {
        if (w.strip_columns(s) > shape::lanes) compute_strip<2>(s);
        else compute_strip<1>(s);
      }
      const index_t c0 = first_column + s0 * shape::max_columns;
      finish.after(0, rows, c0, first_column + smaller(s1 * shape::max_columns, w.columns));
    });
  }

 private:
  template <int Packets>
  void compute_strip(index_t s) const {
    switch (rows) {
      case 1:
        return compute_rows<1, Packets, 4>(s);
      case 2:
        return compute_rows<2, Packets, 2>(s);
      case 3:
        return compute_rows<3, Packets, 1>(s);
      default:
        return compute_rows<4, Packets, 1>(s);
    }
  }
  /// Every Steps-th k has sums of its own: a chain of multiply-adds for each would be slower than memory.
  template <int Rows, int Packets, int Steps>
  void compute_rows(index_t s) const {
    using V = math::simd<T, shape::lanes>;
    V sum[std::size_t{Steps * Rows * Packets}];
    SINTER_UNROLL
    for (int i = 0; i < Steps * Rows * Packets; ++i) sum[i] = V(T(0));
    for (index_t block = 0; block < w.blocks; ++block) {
      const std::int8_t* q = w.strip(block, s);
      const T* from = x + w.k_begin(block);
      const auto add_step = [&](int step) SINTER_INLINE_LAMBDA {
        V right[std::size_t{Packets}];
        SINTER_UNROLL
        for (int p = 0; p < Packets; ++p)
          right[p] = int8_weights<T>::numbers_at(q + (step * Packets + p) * shape::lanes);
        SINTER_UNROLL
        for (int i = 0; i < Rows * Packets; ++i) {
          V& to = sum[step * Rows * Packets + i];
          to = math::fma(V(from[i / Packets * x_stride + step]), right[i % Packets], to);
        }
      };
      index_t left = w.k_end(block) - w.k_begin(block);
      for (; left >= Steps; left -= Steps, from += Steps, q += Steps * Packets * shape::lanes) {
        SINTER_UNROLL
        for (int step = 0; step < Steps; ++step) add_step(step);
      }
      for (; left > 0; --left, ++from, q += Packets * shape::lanes) add_step(0);
    }
    SINTER_UNROLL
    for (int i = 0; i < Rows * Packets; ++i) {
      for (int step = 1; step < Steps; ++step) sum[i] = sum[i] + sum[step * Rows * Packets + i];
      sum[i] = sum[i] * V::load(w.scales(s) + i % Packets * shape::lanes);
    }
    alignas(64) T values[std::size_t{Rows * Packets * shape::lanes}];
    SINTER_UNROLL
    for (int i = 0; i < Rows * Packets; ++i) sum[i].store(values + i * shape::lanes);
    const index_t column = s * shape::max_columns, valid = smaller(w.columns - column, Packets * shape::lanes);
    for (int r = 0; r < Rows; ++r) {
      T* const to = y + r * y_stride + column;
      if (add) add_elements(to, values + r * Packets * shape::lanes, valid);
      else copy_elements(to, values + r * Packets * shape::lanes, valid);
      if (finish.bias != nullptr) add_elements(to, finish.bias + first_column + column, valid);
    }
  }
};

}  // namespace sinter::cpu_impl::detail
