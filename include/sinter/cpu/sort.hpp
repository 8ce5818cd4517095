// sinter/cpu/sort.hpp: the order of the elements along an axis.
#pragma once

#include <algorithm>

#include "sinter/cpu/reduce.hpp"
#include "sinter/expr/sort_key.hpp"

namespace sinter::cpu_impl {

/// An element while it is sorted. Of equal keys the smaller index comes first, so every way of sorting gives one order.
template <class Key>
struct sort_item {
  Key key;
  std::uint32_t index;
  friend bool operator<(const sort_item& a, const sort_item& b) { return a.key < b.key || (a.key == b.key && a.index < b.index); }
};

/// Sorts n items by their keys, stably, digit by digit; returns which of the two arrays then holds them.
template <class Key>
sort_item<Key>* radix_sort(sort_item<Key>* from, sort_item<Key>* to, index_t n) {
  constexpr int digits = sizeof(Key);
  const auto digit = [](Key key, int d) { return static_cast<std::size_t>(key >> (8 * d)) & 255; };
  index_t begin[digits][256] = {};
  for (index_t i = 0; i < n; ++i)
    for (int d = 0; d < digits; ++d) ++begin[d][digit(from[i].key, d)];
  for (int d = 0; d < digits; ++d) {
    if (begin[d][digit(from[0].key, d)] == n) continue;  // all alike
    index_t at = 0;
    for (index_t& b : begin[d]) at += std::exchange(b, at);
    for (index_t i = 0; i < n; ++i) to[begin[d][digit(from[i].key, d)]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

/// The first k of n items in order; `spare` is room for n.
template <class Key>
sort_item<Key>* sort_items(sort_item<Key>* items, sort_item<Key>* spare, index_t n, index_t k) {
  if (k < n / 16) std::partial_sort(items, items + k, items + n);
  else if (n < 256) std::sort(items, items + n);
  else return radix_sort(items, spare, n);
  return items;
}

/// The first k elements of what `l` produces along the middle axis of `s`, in order, with their positions: (outer, k, inner).
template <class T>
void sort(loop& l, bool is_leaf, const fold_shape& s, bool descending, index_t k, T* values, std::int64_t* indices, thread_pool& pool) {
  using item = sort_item<sinter::detail::sort_key_type<T>>;
  const producer<T> p(l, is_leaf);
  const index_t n = s.reduced;
  const index_t width = s.inner < 16 ? s.inner : 16;  // lines that lie side by side are read together
  const index_t blocks = (s.inner + width - 1) / width;
  const index_t grain = 8192 / (n * width) + 1;
  const index_t tasks = (s.outer * blocks + grain - 1) / grain;
  pool.parallel_for(tasks, [&](index_t t) {
    const detail::temporary_array<T> lines(n * width);
    const detail::temporary_array<item> items(n), spare(n);
    for (index_t b = t * grain; b < (t + 1) * grain && b < s.outer * blocks; ++b) {
      const index_t outer = b / blocks, column = b % blocks * width;
      const index_t m = s.inner - column < width ? s.inner - column : width;
      const T* x = &lines[0];
      if (s.inner == 1) {
        x = p.get(outer * n, n, &lines[0]);
      } else {
        T row[16];
        for (index_t i = 0; i < n; ++i) {
          const T* const from = p.get((outer * n + i) * s.inner + column, m, row);
          for (index_t c = 0; c < m; ++c) lines[c * n + i] = from[c];
        }
      }
      for (index_t c = 0; c < m; ++c, x += n) {
        for (index_t i = 0; i < n; ++i) items[i] = {sinter::detail::sort_key(x[i], descending), static_cast<std::uint32_t>(i)};
        const item* const sorted = sort_items(&items[0], &spare[0], n, k);
        for (index_t i = 0; i < k; ++i) {
          const index_t at = (outer * k + i) * s.inner + column + c;
          values[at] = x[sorted[i].index];
          indices[at] = sorted[i].index;
        }
      }
    }
  });
}

}  // namespace sinter::cpu_impl
