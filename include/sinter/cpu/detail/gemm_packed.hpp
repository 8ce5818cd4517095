// sinter/cpu/detail/gemm_packed.hpp: the product of large matrices, in blocks of packed A and packed B that fit caches.
#pragma once

#include <atomic>
#include <cstddef>

#include "sinter/core/platform.hpp"
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
  if (const auto l2 = static_cast<index_t>(sinter::detail::second_cache()); l2 > 0)
    bytes = smaller(l2 / 4, index_t{1} << 19);
  known.store(bytes, std::memory_order_relaxed);
  return bytes;
}

// B is packed in strips of columns and A in panels of rows, block by block of k: a panel's block stays in L1 while it
// meets the strips of a chunk of columns, which stay in L2. It is slow to fetch what another thread has packed, so
// threads share that of the smaller matrix, and each packs the other for itself. With many columns all pack A, and each
// takes chunks of columns; with many rows each takes groups of rows.
template <class T>
struct packed_product {
  using shape = tile_shape<T>;
  static constexpr index_t max_k_block = 1536 / static_cast<index_t>(sizeof(T)), max_k_span = 10 * max_k_block;
  static constexpr index_t max_packed = (index_t{16} << 20) / static_cast<index_t>(sizeof(T));
  static constexpr index_t most_shared_columns = (index_t{5} << 18) / (max_k_block * static_cast<index_t>(sizeof(T)));
  static constexpr index_t panels_per_task = 8, strips_per_task = 4, steps_per_pass = 32;

  const gemm_args<T>& args;
  thread_pool& pool;
  index_t k0 = 0, k1 = 0, m0 = 0, m1 = 0;
  index_t panels = 0, row_groups = 1, chunks = 1;
  T* shared = nullptr;  ///< packed for all threads: A, or B unless each thread packs its chunks as it needs them

  void compute() {
    if (shares_b()) return compute_groups();
    for_spans([this](index_t begin, index_t end) {
      k0 = begin;
      k1 = end;
      const index_t row_blocks = ceil_div(args.m, max_packed / (k1 - k0));
      for (index_t block = 0; block < row_blocks; ++block) {
        m0 = share_begin(args.m, row_blocks, block);
        m1 = share_begin(args.m, row_blocks, block + 1);
        compute_rows();
      }
    });
  }

  // Few rows are packed in spans of k that stay in an L2 cache; the same for any machine, as sums depend on it.
  index_t k_span() const {
    constexpr index_t wanted = (index_t{3} << 19) / static_cast<index_t>(sizeof(T));
    const index_t blocks = wanted / (max_k_block * (args.m > 0 ? args.m : 1));
    return blocks < 2 ? max_k_span : smaller(blocks * max_k_block, max_k_span);
  }
  // f(begin, end) for parts of [begin, end) as equal as can be, of `most` at most.
  template <class F>
  static void for_parts(index_t begin, index_t end, index_t most, F&& f) {
    const index_t count = end - begin, parts = ceil_div(count, most);
    for (index_t part = 0; part < parts; ++part)
      f(begin + share_begin(count, parts, part), begin + share_begin(count, parts, part + 1));
  }
  template <class F>
  void for_spans(F&& f) const {
    for_parts(0, args.k, k_span(), f);
  }
  // The blocks of a span.
  template <class F>
  static void for_blocks(index_t begin, index_t end, F&& f) {
    for_parts(begin, end, max_k_block, f);
  }

  // Panels have even numbers of rows, as equal as can be; the last one may be padded.
  index_t panel_begin(index_t panel) const { return 2 * share_begin(ceil_div(m1 - m0, 2), panels, panel); }
  index_t width_of(index_t panel) const { return panel_begin(panel + 1) - panel_begin(panel); }

  index_t strips() const { return ceil_div(args.n, shape::max_columns); }
  static index_t strips_per_chunk() {
    return ceil_div(quarter_of_l2(), max_k_block * shape::max_columns * static_cast<index_t>(sizeof(T)));
  }
  // The first column of a chunk.
  index_t chunk_begin(index_t chunk) const {
    return smaller(share_begin(strips(), chunks, chunk) * shape::max_columns, args.n);
  }

  bool fits_packed_b() const { return padded_columns() * args.k <= max_packed; }
  bool shares_b() const {
    return (args.b_col == 1 || fits_packed_b()) && args.n <= 2 * args.m && args.n <= most_shared_columns &&
           ceil_div(args.m, shape::max_rows) >= pool.size();
  }

  // Each thread has as many groups as the others, or nearly.
  void compute_groups() {
    const index_t threads = pool.size();
    const index_t most = ceil_div(quarter_of_l2(), max_k_block * shape::max_rows * static_cast<index_t>(sizeof(T)));
    m1 = args.m;
    panels = ceil_div(args.m, shape::max_rows);
    row_groups = smaller(ceil_div(ceil_div(panels, most), threads) * threads, panels);
    chunks = ceil_div(strips(), strips_per_chunk());
    // Where each thread has one group or two, it packs B itself: what another thread has packed is slow to fetch.
    if (args.b_col != 1 || (row_groups > 2 * threads && fits_packed_b())) pack_b();
    run_tasks(args, pool, row_groups, [this](index_t group) { compute_group(group); });
  }

  index_t padded_columns() const { return strips() * shape::max_columns; }

  // A strip after the other, each block by block.
  T* strip_data(index_t column, index_t kb, index_t ke) const {
    return shared + kb * padded_columns() + column * (ke - kb);
  }

  void pack_b() {
    shared = scratch<T>(2, static_cast<std::size_t>(padded_columns() * args.k + shape::lanes));
    for_spans([this](index_t begin, index_t end) {
      const index_t blocks = ceil_div(end - begin, max_k_block);
      const index_t width = strips_per_task * shape::max_columns, pieces = ceil_div(args.n, width);
      run_tasks(args, pool, blocks * pieces, [&](index_t task) {
        const index_t block = task / pieces, n0 = task % pieces * width, n1 = smaller(n0 + width, args.n);
        const index_t kb = begin + share_begin(end - begin, blocks, block);
        const index_t ke = begin + share_begin(end - begin, blocks, block + 1);
        pack_chunk(strip_data(n0, kb, ke), n0, n1, kb, ke);
      });
    });
  }

  void compute_group(index_t group) {
    const index_t begin = share_begin(panels, row_groups, group), end = share_begin(panels, row_groups, group + 1);
    const index_t rows = panel_begin(end) - panel_begin(begin);
    T* const packed_a = scratch<T>(0, static_cast<std::size_t>(rows * max_k_block + (end - begin) * shape::lanes));
    for_spans([&](index_t k_begin, index_t k_end) {
      for_blocks(k_begin, k_end, [&](index_t kb, index_t ke) { compute_block(begin, end, packed_a, kb, ke); });
    });
  }

  // Panels [begin, end) times all columns, of a block of k.
  void compute_block(index_t begin, index_t end, T* packed_a, index_t kb, index_t ke) {
    const auto data = [&](index_t panel) {
      return packed_a + (panel_begin(panel) - panel_begin(begin)) * (ke - kb) + (panel - begin) * shape::lanes;
    };
    // Rows of which each lies by itself are packed as they are needed, and fetched before that.
    const bool one_by_one = args.a_col == 1;
    if (!one_by_one) pack_panels(begin, end, kb, ke, data);
    for (index_t chunk = 0; chunk < chunks; ++chunk) {
      const index_t n0 = chunk_begin(chunk), n1 = chunk_begin(chunk + 1);
      const T* const packed_b =
          shared != nullptr ? strip_data(n0, kb, ke) : pack_chunk(room_of_chunk(n0, n1), n0, n1, kb, ke);
      for (index_t panel = begin; panel < end; ++panel) {
        const bool is_last = panel + 1 == end;
        const index_t following = is_last ? begin : panel + 1;
        upcoming next = packed_rows(data(following), following, ke - kb);
        if (one_by_one && chunk == 0) {
          pack_panels(panel, panel + 1, kb, ke, data);
          const index_t k = is_last ? smaller(ke, args.k - 1) : kb;
          next = {args.a + panel_begin(following) * args.a_row + k, width_of(following), args.a_row, args.a_row};
        }
        compute_panel(panel, data(panel), next, packed_b, n0, n1, kb, ke);
      }
    }
  }

  void compute_rows() {
    panels = ceil_div(m1 - m0, shape::max_rows);
    const index_t threads = pool.size();
    // Each thread has as many chunks as the others, or nearly.
    chunks = smaller(ceil_div(ceil_div(strips(), strips_per_chunk()), threads) * threads, strips());
    row_groups = chunks >= threads ? 1 : smaller(panels, ceil_div(threads, chunks));
    shared = scratch<T>(0, static_cast<std::size_t>(panel_begin(panels) * (k1 - k0) + panels * shape::lanes));
    run_tasks(args, pool, ceil_div(panels, panels_per_task), [this](index_t task) {
      const index_t begin = task * panels_per_task, end = smaller(begin + panels_per_task, panels);
      pack_panels(begin, end, k0, k1, [this](index_t panel) { return panel_data(panel); });
    });
    run_tasks(args, pool, row_groups * chunks, [this](index_t task) { compute_chunk(task / chunks, task % chunks); });
  }

  // A packet of room behind each panel, see pack_across.
  T* panel_data(index_t panel) const { return shared + panel_begin(panel) * (k1 - k0) + panel * shape::lanes; }

  void compute_chunk(index_t row_group, index_t chunk) {
    const index_t n0 = chunk_begin(chunk), n1 = chunk_begin(chunk + 1);
    const index_t begin = share_begin(panels, row_groups, row_group);
    const index_t end = share_begin(panels, row_groups, row_group + 1);
    for_blocks(k0, k1, [&](index_t kb, index_t ke) {
      const T* const packed_b = pack_chunk(room_of_chunk(n0, n1), n0, n1, kb, ke);
      const auto data = [&](index_t panel) { return panel_data(panel) + (kb - k0) * width_of(panel); };
      for (index_t panel = begin; panel < end; ++panel) {
        const index_t following = panel + 1 < panels ? panel + 1 : 0;
        compute_panel(panel, data(panel), packed_rows(data(following), following, ke - kb), packed_b, n0, n1, kb, ke);
      }
    });
  }

  // `to(panel)` is where a panel goes. Rows that lie side by side share cache lines and pages between panels.
  template <class F>
  void pack_panels(index_t begin, index_t end, index_t kb, index_t ke, F&& to) {
    const index_t k_step = args.a_row == 1 ? steps_per_pass : ke - kb;
    for (index_t k = kb; k < ke; k += k_step)
      for (index_t panel = begin; panel < end; ++panel) {
        const index_t width = width_of(panel), row = m0 + panel_begin(panel);
        pack_strip(to(panel) + (k - kb) * width, width,
                   strip_source<T>{args.a + row * args.a_row + k * args.a_col, args.a_row, args.a_col,
                                   smaller(m1 - row, width), args.m - row},
                   smaller(k_step, ke - k));
      }
  }

  // Room of this thread for the strips of a chunk.
  T* room_of_chunk(index_t n0, index_t n1) const {
    return scratch<T>(1, static_cast<std::size_t>(max_k_block * (n1 - n0 + shape::max_columns)));
  }
  T* pack_chunk(T* packed, index_t n0, index_t n1, index_t kb, index_t ke) {
    const index_t together = args.b_col == 1 ? (n1 - n0) / shape::max_columns : 0;
    pack_strips(packed, together, args.b + kb * args.b_row + n0, args.b_row, ke - kb);
    for (index_t column = n0 + together * shape::max_columns; column < n1; column += shape::max_columns)
      pack_columns(packed + (column - n0) * (ke - kb), column, n1, kb, ke);
    return packed;
  }

  void pack_columns(T* packed, index_t column, index_t n1, index_t kb, index_t ke) {
    const index_t width = strip_width<T>(n1 - column);
    pack_strip(packed, width,
               strip_source<T>{args.b + kb * args.b_row + column * args.b_col, args.b_col, args.b_row,
                               smaller(n1 - column, width), args.n - column},
               ke - kb);
  }

  // What is read after a panel: `count` things `step` apart, of which its tiles fetch equal shares. A tile fetches k
  // elements from its place on, and k from a place `second` behind it.
  struct upcoming {
    const T* data;
    index_t count, step, second;
  };
  upcoming packed_rows(const T* data, index_t panel, index_t k_count) const {
    return {data, k_count * width_of(panel), 1, k_count};
  }

  // The strips of [n0, n1) times the panel packed at `a`.
  void compute_panel(index_t panel, const T* a, const upcoming& next, const T* packed_b, index_t n0, index_t n1,
                     index_t kb, index_t ke) {
    const index_t width = width_of(panel), row = m0 + panel_begin(panel), k_count = ke - kb;
    const index_t rows = smaller(m1 - row, width);
    const bool add = args.accumulate || kb > 0;
    const index_t tiles = ceil_div(n1 - n0, shape::max_columns);
    const tile_functions<T>& kernels = kernels_for<T>(width);
    for (index_t column = n0; column < n1; column += shape::max_columns) {
      const index_t columns = strip_width<T>(n1 - column), valid = smaller(n1 - column, columns);
      const T* const next_of_tile = next.data + (column - n0) / shape::max_columns * next.count / tiles * next.step;
      const T* const strip = packed_b + (column - n0) * k_count;
      const tile_function<T> tile = columns == shape::lanes ? kernels.narrow : kernels.wide;
      T* const c = args.c + row * args.ldc + column;
      if (rows == width && valid == columns) {
        tile(k_count, a, strip, c, args.ldc, add, next_of_tile, next.second);
      } else {
        alignas(64) T whole[shape::max_rows * shape::max_columns];
        tile(k_count, a, strip, whole, columns, false, next_of_tile, next.second);
        for (index_t i = 0; i < rows; ++i)
          for (index_t j = 0; j < valid; ++j) {
            T& element = c[i * args.ldc + j];
            element = add ? element + whole[i * columns + j] : whole[i * columns + j];
          }
      }
    }
    if (ke == args.k) args.after(row, row + rows, n0, n1);
  }
};

}  // namespace sinter::cpu_impl::detail
