// sinter/cpu/moments.hpp: mean and variance of the columns of a matrix on the host.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/rows.hpp"
#include "sinter/ops/batch_moments.hpp"

namespace sinter::cpu_impl {

/// Mean and mean squared distance from it of every column of a row-major matrix.
template <class T>
struct column_moments {
  using C = compute_type<T>;
  static constexpr index_t task_elements = 65536;  ///< of a task, about
  static constexpr index_t block_bytes = 16384;    ///< of the rows that are read twice, the second time from L1

  const T* x;
  index_t rows, columns;
  index_t task_rows = 0, parts = 0;

  column_moments(const T* data, index_t row_count, index_t column_count)
      : x(data), rows(row_count), columns(column_count) {
    if (rows == 0 || columns == 0) return;
    const index_t most = task_elements / columns;
    task_rows = most > 16 ? most : 16;
    parts = (rows + task_rows - 1) / task_rows;
  }

  void compute(C* mean, C* variance, thread_pool& pool) const {
    const auto n = static_cast<C>(rows);
    if (parts == 0) {
      for (index_t c = 0; c < columns; ++c) mean[c] = variance[c] = std::numeric_limits<C>::quiet_NaN();
      return;
    }
    const detail::temporary_array<C> partial(2 * parts * columns);
    pool.parallel_for(parts, [&](index_t part) {
      C* const to = partial.data() + 2 * part * columns;
      add_up(part * task_rows, end_of(part), to, to + columns);
    });
    for (index_t c = 0; c < columns; ++c) {
      mean[c] = partial.data()[c];
      variance[c] = partial.data()[columns + c];
    }
    for (index_t part = 1; part < parts; ++part) {
      const C* const from = partial.data() + 2 * part * columns;
      const C before = static_cast<C>(part * task_rows), more = static_cast<C>(end_of(part) - part * task_rows);
      for (index_t c = 0; c < columns; ++c) merge(mean[c], variance[c], before, from[c], from[columns + c], more);
    }
    for (index_t c = 0; c < columns; ++c) variance[c] /= n;
  }

 private:
  index_t end_of(index_t part) const {
    const index_t end = (part + 1) * task_rows;
    return end < rows ? end : rows;
  }

  /// Joins two sets of n and m numbers, of which there are the mean and the sum of squared distances from it.
  template <class V, class N>
  SINTER_INLINE static void merge(V& mean, V& squares, N n, V other_mean, V other_squares, N m) {
    const V distance = other_mean - mean;
    mean = mean + distance * V(m / (n + m));
    squares = squares + other_squares + distance * distance * V(n / (n + m) * m);
  }

  /// Sum over rows of f of the columns at a place.
  template <class Place, class F>
  SINTER_INLINE vector<T> sum_rows(index_t r0, index_t r1, Place c, const F& f) const {
    vector<T> s0(C(0)), s1 = s0, s2 = s0, s3 = s0;
    const T* row = x + r0 * columns;
    index_t r = r0;
    for (; r + 4 <= r1; r += 4, row += 4 * columns) {
      s0 = s0 + f(load_row(row, c, columns));
      s1 = s1 + f(load_row(row + columns, c, columns));
      s2 = s2 + f(load_row(row + 2 * columns, c, columns));
      s3 = s3 + f(load_row(row + 3 * columns, c, columns));
    }
    for (; r < r1; ++r, row += columns) s0 = s0 + f(load_row(row, c, columns));
    return (s0 + s1) + (s2 + s3);
  }

  /// Mean and squares of rows [begin, end), block by block.
  void add_up(index_t begin, index_t end, C* mean, C* squares) const {
    const index_t in_block = block_bytes / (columns * static_cast<index_t>(sizeof(T)));
    const index_t block = in_block > 4 ? in_block : 4;
    for (index_t r = begin; r < end; r += block) {
      const index_t stop = r + block < end ? r + block : end;
      const auto columns_at = [&](auto c) SINTER_INLINE_LAMBDA {
        const vector<T> m = sum_rows(r, stop, c, [](vector<T> v) SINTER_INLINE_LAMBDA { return v; }) *
                            vector<T>(C(1) / static_cast<C>(stop - r));
        const vector<T> s = sum_rows(r, stop, c, [m](vector<T> v) SINTER_INLINE_LAMBDA { return (v - m) * (v - m); });
        vector<T> all_m = m, all_s = s;
        if (r > begin) {
          all_m = load_row<C>(mean, c, columns);
          all_s = load_row<C>(squares, c, columns);
          merge(all_m, all_s, static_cast<C>(r - begin), m, s, static_cast<C>(stop - r));
        }
        store_row<C>(mean, c, columns, all_m);
        store_row<C>(squares, c, columns, all_s);
      };
      index_t c = 0;
      for (; c + lanes <= columns; c += lanes) columns_at(inside{c});
      if (c < columns) columns_at(at_end{c});
    }
  }
};

/// Mean and variance of the columns of x (rows, columns).
template <class T>
void moments_of_columns(const T* x, index_t rows, index_t columns, compute_type<T>* mean, compute_type<T>* variance,
                        thread_pool& pool) {
  column_moments<T>(x, rows, columns).compute(mean, variance, pool);
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::batch_moments_op, D> {
  template <class T, int R, class Epilogue>
  static void forward(const ops::batch_moments_op&, const tensor<compute_type<T>, 2, D>& y, const Epilogue*,
                      const tensor<T, R, D>& x) {
    const auto pixels = pixel_by_pixel(x);
    const index_t channels = x.shape()[1];
    cpu_impl::moments_of_columns<T>(pixels.data(), channels > 0 ? x.numel() / channels : 0, channels, y.data(),
                                    y.data() + channels, backend<D>::pool());
  }
  template <class Backward>
  static void reverse(const ops::batch_moments_op&, const Backward& b) {
    reverse_batch_moments(b);
  }
};

}  // namespace sinter::detail
