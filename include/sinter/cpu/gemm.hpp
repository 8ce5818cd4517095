// sinter/cpu/gemm.hpp: the matrix product of the host devices, with an epilogue applied to tiles still in cache.
#pragma once

#include <type_traits>

#include "sinter/core/types.hpp"
#include "sinter/cpu/detail/gemm_kernel.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"
#include "sinter/cpu/detail/gemm_scratch.hpp"
#include "sinter/cpu/pool.hpp"

namespace sinter::cpu_impl {

/// C(m,n) = A(m,k) B(k,n), or C += A B where `accumulate` is set. A and B have any strides, negative ones included; C is
/// row-major with row stride `ldc` and overlaps neither. `epilogue(ctx, r0, r1, c0, c1)`, if not null, is called once
/// for every element of C, on complete tiles [r0, r1) x [c0, c1), by the thread which finished them. It must not call
/// `gemm`.
template <class T>
struct gemm_args {
  index_t m, n, k;
  const T* a;
  index_t a_row, a_col;
  const T* b;
  index_t b_row, b_col;
  T* c;
  index_t ldc;
  bool accumulate;
  void (*epilogue)(void* ctx, index_t r0, index_t r1, index_t c0, index_t c1);
  void* ctx;
};

namespace detail {

/// `count` things in `parts` shares as equal as can be: the first of share `part`.
constexpr index_t share_begin(index_t count, index_t parts, index_t part) {
  return count / parts * part + (part < count % parts ? part : count % parts);
}

constexpr index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

// Blocks of k are a function of k alone, and within a block every element of C is one chain of fused multiply-adds over
// rising k, whatever the tile it lies in. So neither the number of threads nor the tiling changes a bit of the result.
template <class T>
struct packed_product {
  using shape = tile_shape<T>;
  static constexpr index_t max_k_block = 2048 / static_cast<index_t>(sizeof(T));
  static constexpr index_t max_k_span = 8 * max_k_block;
  static constexpr index_t max_packed_a = index_t{1} << 22;
  static constexpr index_t strips_per_chunk = 8;
  static constexpr double serial_flops = 2e6;

  const gemm_args<T>& args;
  thread_pool& pool;
  index_t k0 = 0, k1 = 0, m0 = 0, m1 = 0;
  index_t panels = 0, row_groups = 1, chunks = 1;
  T* packed_a = nullptr;

  bool serial() const {
    return pool.size() == 1 || 2.0 * static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k) < serial_flops;
  }

  template <class F>
  void share_out(index_t tasks, F&& f) {
    if (serial())
      for (index_t task = 0; task < tasks; ++task) f(task);
    else
      pool.parallel_for(tasks, f);
  }

  // The rows of a block fall into panels of an even number of rows, as equal as can be, the last one padded.
  index_t panel_begin(index_t panel) const { return 2 * share_begin(ceil_div(m1 - m0, 2), panels, panel); }

  // A packet of room behind each panel, see pack_across.
  T* panel_data(index_t panel) const { return packed_a + panel_begin(panel) * (k1 - k0) + panel * shape::lanes; }

  void compute() {
    const index_t spans = ceil_div(args.k, max_k_span);
    for (index_t span = 0; span < spans; ++span) {
      k0 = share_begin(args.k, spans, span);
      k1 = share_begin(args.k, spans, span + 1);
      const index_t row_blocks = ceil_div(args.m, max_packed_a / (k1 - k0));
      for (index_t block = 0; block < row_blocks; ++block) {
        m0 = share_begin(args.m, row_blocks, block);
        m1 = share_begin(args.m, row_blocks, block + 1);
        compute_rows();
      }
    }
  }

  void compute_rows() {
    panels = ceil_div(m1 - m0, shape::max_rows);
    const index_t strips = ceil_div(args.n, shape::max_columns), threads = pool.size();
    chunks = ceil_div(strips, strips_per_chunk);
    row_groups = chunks >= threads ? 1 : ceil_div(threads, chunks);
    if (row_groups > panels) row_groups = panels;
    const index_t rows = panel_begin(panels);
    packed_a = scratch<T>(0, static_cast<std::size_t>(rows * (k1 - k0) + panels * shape::lanes));
    share_out(ceil_div(panels, 4), [this](index_t task) {
      const index_t end = 4 * task + 4 < panels ? 4 * task + 4 : panels;
      for (index_t panel = 4 * task; panel < end; ++panel) pack_panel(panel);
    });
    share_out(row_groups * chunks, [this](index_t task) { compute_chunk(task / chunks, task % chunks); });
  }

  void pack_panel(index_t panel) {
    const index_t first = panel_begin(panel), width = panel_begin(panel + 1) - first;
    const index_t row = m0 + first, left = m1 - row;
    const strip<T> s{args.a + row * args.a_row + k0 * args.a_col, args.a_row, args.a_col,
                     static_cast<int>(left < width ? left : width)};
    pack_strip(panel_data(panel), static_cast<int>(width), s, k1 - k0, args.m - row);
  }

  void compute_chunk(index_t row_group, index_t chunk) {
    const index_t strips = ceil_div(args.n, shape::max_columns);
    const index_t n0 = share_begin(strips, chunks, chunk) * shape::max_columns;
    index_t n1 = share_begin(strips, chunks, chunk + 1) * shape::max_columns;
    if (n1 > args.n) n1 = args.n;
    const index_t blocks = ceil_div(k1 - k0, max_k_block);
    T* const packed_b = scratch<T>(1, static_cast<std::size_t>((max_k_block + 1) * (n1 - n0 + shape::max_columns)));
    for (index_t block = 0; block < blocks; ++block) {
      const index_t kb = share_begin(k1 - k0, blocks, block), ke = share_begin(k1 - k0, blocks, block + 1);
      pack_chunk(packed_b, n0, n1, k0 + kb, k0 + ke);
      const bool add = args.accumulate || k0 + kb > 0, complete = k0 + ke == args.k;
      const index_t last = share_begin(panels, row_groups, row_group + 1);
      for (index_t panel = share_begin(panels, row_groups, row_group); panel < last; ++panel)
        compute_panel(panel, packed_b, n0, n1, kb, ke, add, complete);
    }
  }

  static int strip_width(index_t columns) {
    return columns > shape::lanes ? shape::max_columns : shape::lanes;
  }

  void pack_chunk(T* packed_b, index_t n0, index_t n1, index_t kb, index_t ke) {
    for (index_t column = n0; column < n1; column += shape::max_columns) {
      const int width = strip_width(n1 - column);
      const index_t left = n1 - column;
      const strip<T> s{args.b + kb * args.b_row + column * args.b_col, args.b_col, args.b_row,
                       static_cast<int>(left < width ? left : width)};
      pack_strip(packed_b + (column - n0) * (ke - kb), width, s, ke - kb, args.n - column);
    }
  }

  void compute_panel(index_t panel, const T* packed_b, index_t n0, index_t n1, index_t kb, index_t ke, bool add,
                     bool complete) {
    const index_t first = panel_begin(panel), width = panel_begin(panel + 1) - first, row = m0 + first;
    const index_t rows = m1 - row < width ? m1 - row : width;
    const T* const a = panel_data(panel) + kb * width;
    const tile_function<T> narrow = kernel_for<T>(static_cast<int>(width), 1);
    const tile_function<T> wide = kernel_for<T>(static_cast<int>(width), 2);
    // The panels of this block fetch the rows of B which the next block packs.
    const T* const next_b = args.b + (k0 + ke + panel * ((ke - kb) / 4 - shape::max_rows)) * args.b_row;
    for (index_t column = n0; column < n1; column += shape::max_columns) {
      const tile_function<T> tile = n1 - column > shape::lanes ? wide : narrow;
      const int columns = strip_width(n1 - column);
      const T* const b = packed_b + (column - n0) * (ke - kb);
      T* const c = args.c + row * args.ldc + column;
      const bool row_ends = column + columns >= n1;
      const upcoming<T> next{row_ends ? args.c + (row + width) * args.ldc + n0 : c + columns,
                             next_b + column * args.b_col, args.b_row};
      if (rows == width && n1 - column >= columns)
        tile(ke - kb, a, b, c, args.ldc, add, next);
      else
        compute_edge(tile, ke - kb, a, b, c, rows, n1 - column < columns ? n1 - column : columns, columns, add, next);
    }
    if (complete && args.epilogue != nullptr) args.epilogue(args.ctx, row, row + rows, n0, n1);
  }

  void compute_edge(tile_function<T> tile, index_t k_count, const T* a, const T* b, T* c, index_t rows, index_t columns,
                    index_t stride, bool add, upcoming<T> next) {
    alignas(64) T whole[shape::max_rows * shape::max_columns];
    tile(k_count, a, b, whole, stride, false, next);
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        c[i * args.ldc + j] = add ? c[i * args.ldc + j] + whole[i * stride + j] : whole[i * stride + j];
  }
};

}  // namespace detail

/// Computes the product on the threads of `pool`; the bits of the result do not depend on how many there are.
template <class T>
void gemm(const gemm_args<T>& args, thread_pool& pool) {
  if (args.m <= 0 || args.n <= 0) return;
  if constexpr (std::is_floating_point_v<T>) {
    if (args.k > 0) return detail::packed_product<T>{args, pool}.compute();
  }
  using word = std::conditional_t<std::is_floating_point_v<T>, T,
                                  std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>>;
  // Integers wrap: their products are taken modulo 2^32 or 2^64.
  pool.parallel_for(args.m, [&args](index_t i) {
    T* const row = args.c + i * args.ldc;
    for (index_t j = 0; j < args.n; ++j) {
      word sum = args.accumulate ? static_cast<word>(row[j]) : word(0);
      for (index_t p = 0; p < args.k; ++p)
        sum += static_cast<word>(args.a[i * args.a_row + p * args.a_col]) *
               static_cast<word>(args.b[p * args.b_row + j * args.b_col]);
      row[j] = static_cast<T>(sum);
    }
    if (args.epilogue != nullptr) args.epilogue(args.ctx, i, i + 1, 0, args.n);
  });
}

}  // namespace sinter::cpu_impl
