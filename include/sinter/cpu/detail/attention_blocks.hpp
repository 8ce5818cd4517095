// sinter/cpu/detail/attention_blocks.hpp: what forward and backward of attention share: blocks, panels and operands.
#pragma once

#include <cstring>

#include "sinter/cpu/detail/attention_rows.hpp"
#include "sinter/cpu/detail/gemm_scratch.hpp"
#include "sinter/cpu/loop.hpp"

namespace sinter::cpu_impl::detail {

/// Keys of a block: its part of keys and values and a panel's scores stay in the L1 and L2 caches.
template <class C>
inline constexpr index_t key_block = 512 / static_cast<index_t>(sizeof(C));
/// Queries of a block: whole tiles.
template <class C>
inline constexpr index_t query_block = 112 / tile_shape<C>::max_rows * tile_shape<C>::max_rows;
template <class C>
inline constexpr index_t reverse_query_block = 56 / tile_shape<C>::max_rows * tile_shape<C>::max_rows;

constexpr index_t round_up(index_t n, index_t to) { return ceil_div(n, to) * to; }

/// The rows of a block in panels, each at most as high as a tile, of an even height, all as equal as can be.
struct row_panels {
  index_t rows, count;

  template <class C>
  static row_panels of(index_t n) {
    return {n, ceil_div(n, tile_shape<C>::max_rows)};
  }
  index_t begin(index_t panel) const { return 2 * share_begin(ceil_div(rows, 2), count, panel); }
  index_t end(index_t panel) const { return begin(panel + 1); }
  index_t last_row(index_t panel) const { return smaller(end(panel), rows); }
};

/// Heads that are packed at the same time: one for each thread, or as many as stay in its L2 cache until they are read.
inline index_t heads_at_once(index_t heads, index_t bytes_of_one, int threads) {
  constexpr index_t in_cache = index_t{1} << 20;
  const index_t of_thread = bytes_of_one > 0 ? in_cache / bytes_of_one : 1;
  return smaller(heads, threads * (of_thread > 1 ? of_thread : 1));
}

/// c(rows, columns) += a(rows, k) b(k, columns), where b may hold numbers that are not finite: they meet no zero of a.
template <class T>
SINTER_COLD void multiply_rows_with_care(index_t rows, index_t k, index_t columns, strips_of<const T> a,
                                         strips_of<const T> b, strips_of<T> c) {
  for (index_t r = 0; r < rows; ++r)
    for (index_t i = 0; i < k; ++i) {
      const T x = a.column(i)[r * strip<T>];
      if (x == T(0)) continue;
      for (index_t j = 0; j < columns; ++j) c.column(j)[r * strip<T>] += x * b.column(j)[i * strip<T>];
    }
}
/// The same of c(lines, columns) += a(k, lines)^T b(k, columns).
template <class T>
SINTER_COLD void multiply_columns_with_care(index_t k, index_t columns, const T* a, strips_of<const T> b,
                                            strips_of<T> c) {
  for (index_t i = 0; i < k; ++i)
    for (index_t line = 0; line < strip<T>; ++line) {
      const T x = a[i * strip<T> + line];
      if (x == T(0)) continue;
      for (index_t j = 0; j < columns; ++j) c.column(j)[line * strip<T>] += x * b.column(j)[i * strip<T>];
    }
}

}  // namespace sinter::cpu_impl::detail
