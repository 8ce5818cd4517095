// sinter/cpu/detail/gemm_in_place.hpp: the product where one matrix is narrow and the other's rows are read unpacked.
#pragma once

#include <cstddef>

#include "sinter/core/types.hpp"
#include "sinter/cpu/detail/gemm_args.hpp"
#include "sinter/cpu/detail/gemm_kernel.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"
#include "sinter/cpu/detail/gemm_scratch.hpp"
#include "sinter/math/packet_eigen.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

// out(r, v) = [out +] sum over k of R(r, k) V(k, v), for few v and rows of R contiguous in k. Packing R would cost more
// than it gains when it is used so seldom; V is packed once, in blocks of k that fit the L2 cache. Either A is R (few
// columns of C), or the transpose of B is (few rows of C: a layer's weights, a small batch).
template <class T>
struct in_place_product {
  using shape = tile_shape<T>;
  static constexpr index_t few_columns = 32, min_k = 64, max_k_block = 2048;
  static constexpr index_t max_packed = (index_t{1} << 20) / static_cast<index_t>(sizeof(T));
  static constexpr index_t rows_per_task = 8 * rows_in_place;

  // The longer the rows of B, the seldomer the tiles of C are written, and the more it would cost to pack them.
  static index_t few_rows(index_t k) {
    const index_t most = smaller(k / 8, 256);
    return most > 64 ? most : 64;
  }
  static bool suits(index_t vectors, index_t k, index_t k_stride_of_rows, index_t most) {
    return k_stride_of_rows == 1 && vectors <= most && k >= min_k && vectors * k <= 8 * max_packed;
  }

  const gemm_args<T>& args;
  thread_pool& pool;
  bool swapped;
  index_t rows, vectors;
  const T *row_data, *vector_data;
  index_t row_stride, vector_stride, vector_k_stride, out_row, out_vector;
  index_t k_block = 0, width = 0;
  T* packed = nullptr;

  in_place_product(const gemm_args<T>& g, thread_pool& p, bool swap)
      : args(g),
        pool(p),
        swapped(swap),
        rows(swap ? g.n : g.m),
        vectors(swap ? g.m : g.n),
        row_data(swap ? g.b : g.a),
        vector_data(swap ? g.a : g.b),
        row_stride(swap ? g.b_col : g.a_row),
        vector_stride(swap ? g.a_row : g.b_col),
        vector_k_stride(swap ? g.a_col : g.b_row),
        out_row(swap ? 1 : g.ldc),
        out_vector(swap ? g.ldc : 1) {}

  void compute() {
    const index_t strips = ceil_div(vectors, shape::max_columns);
    width = (strips - 1) * shape::max_columns + strip_width<T>(vectors - (strips - 1) * shape::max_columns);
    const index_t blocks = ceil_div(args.k, smaller(max_packed / width, max_k_block));
    k_block = ceil_div(args.k, blocks);
    packed = scratch<T>(0, static_cast<std::size_t>(width * args.k + shape::lanes));
    run_tasks(args, pool, strips * ceil_div(args.k, k_block),
              [this, strips](index_t task) { pack(task / strips * k_block, task % strips); });
    run_tasks(args, pool, ceil_div(rows, rows_per_task), [this](index_t task) { compute_rows(task * rows_per_task); });
  }

  index_t block_end(index_t k) const { return smaller(k + k_block, args.k); }

  void pack(index_t k, index_t strip) {
    const index_t first = strip * shape::max_columns, left = vectors - first, columns = strip_width<T>(left);
    const index_t count = block_end(k) - k;
    pack_strip(packed + k * width + first * count, columns,
               strip_source<T>{vector_data + first * vector_stride + k * vector_k_stride, vector_stride,
                               vector_k_stride, smaller(left, columns), left},
               count);
  }

  void compute_rows(index_t begin) {
    const index_t end = smaller(begin + rows_per_task, rows);
    alignas(64) T tile[rows_in_place * shape::max_columns];
    for (index_t k = 0; k < args.k; k = block_end(k)) {
      const index_t count = block_end(k) - k;
      for (index_t row = begin; row < end; row += rows_in_place) {
        const T* lines[rows_in_place];
        const index_t valid = smaller(end - row, rows_in_place);
        for (index_t i = 0; i < rows_in_place; ++i)
          lines[i] = row_data + (row + smaller(i, valid - 1)) * row_stride + k;
        for (index_t first = 0; first < vectors; first += shape::max_columns) {
          const T* const right = packed + k * width + first * count;
          const index_t left = vectors - first, columns = strip_width<T>(left);
          if (columns == shape::lanes) compute_rows_in_place<T, 1>(count, lines, right, tile);
          else compute_rows_in_place<T, 2>(count, lines, right, tile);
          T* const out = args.c + row * out_row + first * out_vector;
          store_tile(tile, columns, out, valid, smaller(left, columns), args.accumulate || k > 0);
        }
      }
    }
    if (swapped) args.after(0, args.m, begin, end);
    else args.after(begin, end, 0, args.n);
  }

  void store_tile(const T* tile, index_t columns, T* out, index_t valid_rows, index_t valid_columns, bool add) {
    if (swapped && valid_rows == rows_in_place) return store_transposed(tile, columns, out, valid_columns, add);
    for (index_t j = 0; j < valid_columns; ++j)
      for (index_t i = 0; i < valid_rows; ++i) {
        T& element = out[i * out_row + j * out_vector];
        element = add ? element + tile[i * columns + j] : tile[i * columns + j];
      }
  }

  void store_transposed(const T* tile, index_t columns, T* out, index_t valid_columns, bool add) {
    namespace ei = Eigen::internal;
    using packet = typename transposing<T>::packet;
    constexpr int lanes = transposing<T>::lanes;
    static_assert(rows_in_place % lanes == 0);
    for (index_t j = 0; j < valid_columns; j += lanes)
      for (index_t i = 0; i < rows_in_place; i += lanes) {
        ei::PacketBlock<packet, lanes> block;
        for (int line = 0; line < lanes; ++line)
          block.packet[line] = ei::pload<packet>(tile + (i + line) * columns + j);
        ei::ptranspose(block);
        for (int line = 0; line < lanes && j + line < valid_columns; ++line) {
          T* const to = out + (j + line) * out_vector + i;
          ei::pstoreu(to, add ? ei::padd(ei::ploadu<packet>(to), block.packet[line]) : block.packet[line]);
        }
      }
  }
};

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
