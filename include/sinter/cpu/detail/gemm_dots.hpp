// sinter/cpu/detail/gemm_dots.hpp: the product of a matrix and very few vectors, which reads the matrix once.
#pragma once

#include <cstring>
#include <utility>

#include "sinter/cpu/detail/gemm_args.hpp"
#include "sinter/cpu/detail/gemm_scratch.hpp"
#include "sinter/math/packet.hpp"

namespace sinter::cpu_impl::detail {

/// out(r, v) = [out +] sum over k of R(r, k) V(k, v), for at most 8 vectors v and rows of R contiguous in k: a layer's
/// weights and a token, or a small batch. A tile as wide as a packet would multiply zeros; here lanes go along k, and
/// memory is what limits. Either A is R, or the transpose of B is.
template <class T>
struct dot_product {
  static constexpr int lanes = math::native_lanes, at_once = 4;  ///< rows, and vectors, that share what they load
  static constexpr index_t most_vectors = 8, min_k = 64, rows_per_task = 32;
  static constexpr index_t least_shared = 131072;  ///< elements of R, which take some 40 us to read
  static constexpr index_t most_packed = (index_t{1} << 19) / static_cast<index_t>(sizeof(T));

  static bool suits(index_t vectors, index_t k, index_t k_stride_of_rows) {
    return k_stride_of_rows == 1 && vectors <= most_vectors && k >= min_k && vectors * k <= most_packed;
  }

  const gemm_args<T>& args;
  thread_pool& pool;
  bool swapped;  ///< the rows are those of the transpose of B
  index_t rows = swapped ? args.n : args.m, vectors = swapped ? args.m : args.n;
  const T* row_data = swapped ? args.b : args.a;
  index_t row_stride = swapped ? args.b_col : args.a_row;
  index_t out_row = swapped ? 1 : args.ldc, out_vector = swapped ? args.ldc : 1;
  index_t length = ceil_div(args.k, lanes) * lanes;
  T* packed = nullptr;

  void compute() {
    packed = scratch<T>(0, static_cast<std::size_t>(length * vectors));
    const T* const from = swapped ? args.a : args.b;
    const index_t step = swapped ? args.a_row : args.b_col, k_step = swapped ? args.a_col : args.b_row;
    for (index_t v = 0; v < vectors; ++v) {
      T* const to = packed + v * length;
      for (index_t k = 0; k < args.k; ++k) to[k] = from[v * step + k * k_step];
      for (index_t k = args.k; k < length; ++k) to[k] = T(0);
    }
    const auto work = [this](index_t task) {
      const index_t begin = task * rows_per_task, end = smaller(begin + rows_per_task, rows);
      index_t row = begin;
      for (; row + at_once <= end; row += at_once) compute_rows<at_once>(row);
      for (; row < end; ++row) compute_rows<1>(row);
      if (swapped) args.after(0, args.m, begin, end);
      else args.after(begin, end, 0, args.n);
    };
    const index_t tasks = ceil_div(rows, rows_per_task);
    if (rows * args.k < least_shared)
      for (index_t task = 0; task < tasks; ++task) work(task);
    else pool.parallel_for(tasks, work);
  }

 private:
  template <int Rows>
  void compute_rows(index_t row) const {
    index_t v = 0;
    for (; v + at_once <= vectors; v += at_once) compute_dots<Rows, at_once>(row, v);
    for (; v + 2 <= vectors; v += 2) compute_dots<Rows, 2>(row, v);
    for (; v < vectors; ++v) compute_dots<Rows, 1>(row, v);
  }
  template <int Rows, int Vectors>
  void compute_dots(index_t row, index_t v) const {
    T sums[std::size_t{Rows * Vectors}];
    add_up<Rows, Vectors>(row_data + row * row_stride, packed + v * length, sums,
                          std::make_integer_sequence<int, Rows * Vectors>{});
    for (int r = 0; r < Rows; ++r)
      for (int i = 0; i < Vectors; ++i) {
        T& to = args.c[(row + r) * out_row + (v + i) * out_vector];
        to = args.accumulate ? to + sums[r * Vectors + i] : sums[r * Vectors + i];
      }
  }
  template <int Rows, int Vectors, int... I>
  void add_up(const T* from, const T* with, T* sums, std::integer_sequence<int, I...>) const {
    using V = math::simd<T, lanes>;
    V sum[std::size_t{Rows * Vectors}];
    ((sum[I] = V(T(0))), ...);
    const auto add = [&](const T* lines, index_t step, const T* other) SINTER_INLINE_LAMBDA {
      V left[std::size_t{Rows}], right[std::size_t{Vectors}];
      SINTER_UNROLL
      for (int r = 0; r < Rows; ++r) left[r] = V::load(lines + r * step);
      SINTER_UNROLL
      for (int i = 0; i < Vectors; ++i) right[i] = V::load(other + i * length);
      ((sum[I] = math::fma(left[I / Vectors], right[I % Vectors], sum[I])), ...);
    };
    index_t k = 0;
    for (; k + lanes <= args.k; k += lanes) {
      // The rows that come next: the processor does not foresee that a row ends.
      SINTER_UNROLL
      for (int r = 0; r < Rows; ++r) __builtin_prefetch(from + (Rows + r) * row_stride + k);
      add(from + k, row_stride, with + k);
    }
    if (k < args.k) {
      T ends[std::size_t{Rows * lanes}] = {};
      for (int r = 0; r < Rows; ++r)
        std::memcpy(ends + r * lanes, from + r * row_stride + k, static_cast<std::size_t>(args.k - k) * sizeof(T));
      add(ends, lanes, with + k);
    }
    ((sums[I] = math::hsum(sum[I])), ...);
  }
};

}  // namespace sinter::cpu_impl::detail
