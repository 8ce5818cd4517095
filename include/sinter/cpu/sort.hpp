// sinter/cpu/sort.hpp: the order of the elements along an axis.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/reduce.hpp"
#include "sinter/expr/sort_key.hpp"
#include "sinter/ops/sort.hpp"

namespace sinter::cpu_impl {

/// An element while it is sorted. Of equal keys the smaller index comes first, so every way of sorting gives one order.
template <class Key>
struct sort_item {
  Key key;
  std::uint32_t index;
  friend bool operator<(const sort_item& a, const sort_item& b) {
    return a.key < b.key || (a.key == b.key && a.index < b.index);
  }
};

/// f(number, begin, end) for the parts of n items: one, or where there is a pool, many at a time.
inline constexpr index_t sort_part = 65536;
template <class F>
void in_parts(index_t n, thread_pool* pool, const F& f) {
  if (pool == nullptr) return f(index_t{0}, index_t{0}, n);
  pool->parallel_for((n + sort_part - 1) / sort_part,
                     [&](index_t t) { f(t, t * sort_part, (t + 1) * sort_part < n ? (t + 1) * sort_part : n); });
}

/// Sorts n items by their keys, stably, digit by digit; returns which of the two arrays then holds them.
template <class Key>
sort_item<Key>* radix_sort(sort_item<Key>* from, sort_item<Key>* to, index_t n, thread_pool* pool) {
  using places = std::array<index_t, 256>;
  std::vector<places> begin(static_cast<std::size_t>(pool != nullptr ? (n + sort_part - 1) / sort_part : 1));
  for (int shift = 0; shift < 8 * static_cast<int>(sizeof(Key)); shift += 8) {
    const auto digit = [shift](const sort_item<Key>& i) { return static_cast<std::size_t>(i.key >> shift) & 255; };
    in_parts(n, pool, [&](index_t part, index_t first, index_t last) {
      places count{};
      for (index_t i = first; i < last; ++i) ++count[digit(from[i])];
      begin[static_cast<std::size_t>(part)] = count;
    });
    index_t like_first = 0;
    for (const places& count : begin) like_first += count[digit(from[0])];
    if (like_first == n) continue;
    index_t at = 0;
    for (std::size_t d = 0; d < 256; ++d)
      for (places& part : begin) at += std::exchange(part[d], at);
    in_parts(n, pool, [&](index_t part, index_t first, index_t last) {
      places place = begin[static_cast<std::size_t>(part)];
      for (index_t i = first; i < last; ++i) to[place[digit(from[i])]++] = from[i];
    });
    std::swap(from, to);
  }
  return from;
}

/// The first k of n items in order; `spare` is room for n.
template <class Key>
sort_item<Key>* sort_items(sort_item<Key>* items, sort_item<Key>* spare, index_t n, index_t k, thread_pool* pool) {
  if (k < n / 16) std::partial_sort(items, items + k, items + n);
  else if (n < 256) std::sort(items, items + n);
  else return radix_sort(items, spare, n, pool);
  return items;
}

/// The first k elements of what `l` produces along the middle axis of `s`, in order, with their positions: (outer, k,
/// inner). Lines are shared among the threads, or where they are few and long, the parts of each.
template <class T>
void sort(loop& l, bool is_leaf, const fold_shape& s, bool descending, index_t k, T* values, std::int64_t* indices,
          thread_pool& pool) {
  using item = sort_item<sinter::detail::bits_of<T>>;
  const producer<T> p(l, is_leaf);
  const index_t n = s.reduced;
  constexpr index_t most_width = 16;
  const index_t width = s.inner < most_width ? s.inner : most_width;  // lines that lie side by side are read together
  const index_t blocks = (s.inner + width - 1) / width, all = s.outer * blocks;
  const auto sort_blocks = [&](index_t begin, index_t end, thread_pool* parts) {
    const detail::temporary_array<T> lines(n * width);
    const detail::temporary_array<item> items(n), spare(n);
    for (index_t b = begin; b < end; ++b) {
      const index_t outer = b / blocks, column = b % blocks * width;
      const index_t m = s.inner - column < width ? s.inner - column : width;
      if (s.inner > 1)
        in_parts(n, parts, [&](index_t, index_t first, index_t last) {
          T row[most_width];
          for (index_t i = first; i < last; ++i) {
            const T* const from = p.get((outer * n + i) * s.inner + column, m, row);
            for (index_t c = 0; c < m; ++c) lines[c * n + i] = from[c];
          }
        });
      for (index_t c = 0; c < m; ++c) {
        in_parts(n, parts, [&](index_t, index_t first, index_t last) {
          T* const line = &lines[c * n];
          const T* const x = s.inner > 1 ? line + first : p.get(outer * n + first, last - first, line + first);
          for (index_t i = first; i < last; ++i) {
            line[i] = x[i - first];
            items[i] = {sinter::detail::sort_key(line[i], descending), static_cast<std::uint32_t>(i)};
          }
        });
        const item* const sorted = sort_items(&items[0], &spare[0], n, k, parts);
        in_parts(k, parts, [&](index_t, index_t first, index_t last) {
          for (index_t i = first; i < last; ++i) {
            const index_t at = (outer * k + i) * s.inner + column + c;
            values[at] = lines[c * n + sorted[i].index];
            indices[at] = sorted[i].index;
          }
        });
      }
    }
  };
  if (all < 4 && n >= 2 * sort_part) return sort_blocks(0, all, &pool);
  const index_t grain = 8192 / (n * width) + 1;
  pool.parallel_for((all + grain - 1) / grain,
                    [&](index_t t) { sort_blocks(t * grain, (t + 1) * grain < all ? (t + 1) * grain : all, nullptr); });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::sort_op, D> {
  template <class E, class T, int R>
  static void run(const ops::sort_op& op, const E& e, const tensor<T, R, D>& values,
                  const tensor<std::int64_t, R, D>& indices) {
    cpu_impl::with_producer(e, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::sort(l, is_leaf, around_axis(e.shape().data(), R, op.axis), op.descending, values.shape()[op.axis],
                     values.data(), indices.data(), cpu_impl::pool_of<D>());
    });
  }
};

}  // namespace sinter::detail
