// sinter/cpu/detail/gemm_packed.hpp: the product of large matrices, in blocks of packed A and packed B that fit caches.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>

#include "sinter/core/types.hpp"
#include "sinter/cpu/detail/gemm_args.hpp"
#include "sinter/cpu/detail/gemm_kernel.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"
#include "sinter/cpu/detail/gemm_scratch.hpp"

namespace sinter::cpu_impl::detail {

/// A quarter of a core's L2 cache in bytes, as the system tells it, else 256 KiB; 512 KiB at most.
inline index_t quarter_of_l2() {
  static constinit std::atomic<index_t> known{0};  // not a static that is locked while it begins: see make_once
  index_t bytes = known.load(std::memory_order_relaxed);
  if (bytes != 0) return bytes;
  bytes = index_t{1} << 18;
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (l2 > 0) bytes = smaller(l2 / 4, index_t{1} << 19);
#endif
  known.store(bytes, std::memory_order_relaxed);
  return bytes;
}

// All threads pack A, in panels of rows; then each takes chunks of B's columns, packs the chunk block by block of k
// into its own L2 cache, and multiplies all panels by it: a panel's block stays in L1 while it meets the strips of the
// chunk.
template <class T>
struct packed_product {
  using shape = tile_shape<T>;
  static constexpr index_t max_k_block = 1536 / static_cast<index_t>(sizeof(T)), max_k_span = 10 * max_k_block;
  static constexpr index_t max_packed_a = (index_t{16} << 20) / static_cast<index_t>(sizeof(T));
  static constexpr index_t panels_per_task = 8, steps_per_pass = 32;

  const gemm_args<T>& args;
  thread_pool& pool;
  index_t k0 = 0, k1 = 0, m0 = 0, m1 = 0;
  index_t panels = 0, row_groups = 1, chunks = 1;
  T* packed_a = nullptr;

  void compute() {
    const index_t spans = ceil_div(args.k, k_span());
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

  // Few rows are packed in spans of k that stay in an L2 cache; the same for any machine, as sums depend on it.
  index_t k_span() const {
    constexpr index_t wanted = (index_t{3} << 19) / static_cast<index_t>(sizeof(T));
    const index_t blocks = wanted / (max_k_block * (args.m > 0 ? args.m : 1));
    return blocks < 2 ? max_k_span : smaller(blocks * max_k_block, max_k_span);
  }

  // Panels have even numbers of rows, as equal as can be; the last one may be padded.
  index_t panel_begin(index_t panel) const { return 2 * share_begin(ceil_div(m1 - m0, 2), panels, panel); }

  // A packet of room behind each panel, see pack_across.
  T* panel_data(index_t panel) const { return packed_a + panel_begin(panel) * (k1 - k0) + panel * shape::lanes; }

  // Each thread has as many chunks as the others, or nearly.
  void plan_chunks() {
    const index_t strips = ceil_div(args.n, shape::max_columns), threads = pool.size();
    const index_t strip_bytes = max_k_block * shape::max_columns * static_cast<index_t>(sizeof(T));
    const index_t strips_per_chunk = ceil_div(quarter_of_l2(), strip_bytes);
    chunks = ceil_div(ceil_div(strips, strips_per_chunk), threads) * threads;
    if (chunks > strips) chunks = strips;
    row_groups = chunks >= threads ? 1 : smaller(panels, ceil_div(threads, chunks));
  }

  void compute_rows() {
    panels = ceil_div(m1 - m0, shape::max_rows);
    plan_chunks();
    packed_a = scratch<T>(0, static_cast<std::size_t>(panel_begin(panels) * (k1 - k0) + panels * shape::lanes));
    run_tasks(args, pool, ceil_div(panels, panels_per_task), [this](index_t task) {
      const index_t begin = task * panels_per_task, end = smaller(begin + panels_per_task, panels);
      // Rows that lie side by side share cache lines and pages between panels.
      const index_t k_step = args.a_row == 1 ? steps_per_pass : k1 - k0;
      for (index_t k = k0; k < k1; k += k_step)
        for (index_t panel = begin; panel < end; ++panel) pack_panel(panel, k, smaller(k + k_step, k1));
    });
    run_tasks(args, pool, row_groups * chunks, [this](index_t task) { compute_chunk(task / chunks, task % chunks); });
  }

  void pack_panel(index_t panel, index_t k, index_t k_end) {
    const index_t first = panel_begin(panel), width = panel_begin(panel + 1) - first, row = m0 + first;
    pack_strip(panel_data(panel) + (k - k0) * width, width,
               strip_source<T>{args.a + row * args.a_row + k * args.a_col, args.a_row, args.a_col,
                               smaller(m1 - row, width), args.m - row},
               k_end - k);
  }

  void compute_chunk(index_t row_group, index_t chunk) {
    const index_t strips = ceil_div(args.n, shape::max_columns), blocks = ceil_div(k1 - k0, max_k_block);
    const index_t n0 = share_begin(strips, chunks, chunk) * shape::max_columns;
    const index_t n1 = smaller(share_begin(strips, chunks, chunk + 1) * shape::max_columns, args.n);
    const index_t begin = share_begin(panels, row_groups, row_group);
    const index_t end = share_begin(panels, row_groups, row_group + 1);
    T* const packed_b = scratch<T>(1, static_cast<std::size_t>(max_k_block * (n1 - n0 + shape::max_columns)));
    for (index_t block = 0; block < blocks; ++block) {
      const index_t kb = share_begin(k1 - k0, blocks, block), ke = share_begin(k1 - k0, blocks, block + 1);
      for (index_t column = n0; column < n1; column += shape::max_columns)
        if (!packs_on_the_way(n1 - column)) pack_columns(packed_b + (column - n0) * (ke - kb), column, n1, kb, ke);
      for (index_t panel = begin; panel < end; ++panel) compute_panel(panel, packed_b, n0, n1, kb, ke, panel == begin);
    }
  }

  // Strips of full width whose rows are contiguous are packed by the tiles of the first panel.
  bool packs_on_the_way(index_t columns_left) const { return args.b_col == 1 && columns_left >= shape::max_columns; }

  void pack_columns(T* packed, index_t column, index_t n1, index_t kb, index_t ke) {
    const index_t width = strip_width<T>(n1 - column);
    pack_strip(packed, width,
               strip_source<T>{args.b + (k0 + kb) * args.b_row + column * args.b_col, args.b_col, args.b_row,
                               smaller(n1 - column, width), args.n - column},
               ke - kb);
  }

  void compute_panel(index_t panel, T* packed_b, index_t n0, index_t n1, index_t kb, index_t ke, bool first_panel) {
    const index_t first = panel_begin(panel), width = panel_begin(panel + 1) - first, row = m0 + first;
    const index_t rows = smaller(m1 - row, width), k_count = ke - kb;
    const bool add = args.accumulate || k0 + kb > 0;
    const T* const a = panel_data(panel) + kb * width;
    const T* const a_next = panel_data(panel + 1 < panels ? panel + 1 : 0) + kb * width;
    const index_t share_of_next = k_count * width / ceil_div(n1 - n0, shape::max_columns);
    const tile_functions<T>& kernels = kernels_for<T>(width);
    for (index_t column = n0; column < n1; column += shape::max_columns) {
      const index_t columns = strip_width<T>(n1 - column), valid = smaller(n1 - column, columns);
      const T* const next = a_next + (column - n0) / shape::max_columns * share_of_next;
      T* const strip = packed_b + (column - n0) * k_count;
      const bool packs = first_panel && packs_on_the_way(n1 - column);
      const T* const b = packs ? args.b + (k0 + kb) * args.b_row + column : strip;
      const tile_function<T> tile = packs                     ? kernels.wide_packing
                                    : columns == shape::lanes ? kernels.narrow
                                                              : kernels.wide;
      T* const c = args.c + row * args.ldc + column;
      if (rows == width && valid == columns) {
        tile(k_count, a, b, c, args.ldc, add, next, args.b_row, strip);
      } else {
        alignas(64) T whole[shape::max_rows * shape::max_columns];
        tile(k_count, a, b, whole, columns, false, next, args.b_row, strip);
        for (index_t i = 0; i < rows; ++i)
          for (index_t j = 0; j < valid; ++j) {
            T& element = c[i * args.ldc + j];
            element = add ? element + whole[i * columns + j] : whole[i * columns + j];
          }
      }
    }
    if (k0 + ke == args.k) args.after(row, row + rows, n0, n1);
  }
};

}  // namespace sinter::cpu_impl::detail
