// sinter/cuda/sort.hpp: the bodies around a sort: keys and positions before it, values and indices after it.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/radix_sort.hpp"
#include "sinter/cuda/select.hpp"
#include "sinter/ops/sort.hpp"

namespace sinter::cuda_impl {

/// Keys line by line, above them, where `line_shift` > 0, the number of the line.
template <class T, class Source>
struct sort_keys_body {
  Source source;
  sort_lines lines;
  bool descending = false;
  int line_shift = 0;
  std::uint64_t* keys = nullptr;
  std::uint32_t* positions = nullptr;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t stride = g.blocks() * g.threads();
    for (index_t p = g.block() * g.threads() + g.thread(); p < lines.count * lines.n; p += stride) {
      const index_t line = p / lines.n;
      const T x = source(lines.element(line, p - line * lines.n, lines.n));
      const std::uint64_t above = line_shift > 0 ? static_cast<std::uint64_t>(line) << line_shift : 0;
      keys[p] = above | sinter::detail::sort_key(x, descending);
      positions[p] = static_cast<std::uint32_t>(p);
    }
  }
};

/// The number of the line of each position, as the key of a second sort.
struct line_keys_body {
  index_t count, n;
  const std::uint32_t* positions;
  std::uint64_t* keys;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    for (index_t p = g.block() * g.threads() + g.thread(); p < count; p += g.blocks() * g.threads())
      keys[p] = static_cast<std::uint64_t>(static_cast<index_t>(positions[p]) / n);
  }
};

/// The first k elements of each line by their sorted positions: (outer, k, inner).
template <class T, class Source>
struct pick_sorted_body {
  Source source;
  sort_lines lines;
  index_t k = 0;
  const std::uint32_t* positions = nullptr;
  T* values = nullptr;
  std::int64_t* indices = nullptr;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    for (index_t q = g.block() * g.threads() + g.thread(); q < lines.count * k; q += g.blocks() * g.threads()) {
      const index_t line = q / k, i = q - line * k;
      const index_t from = static_cast<index_t>(positions[line * lines.n + i]) - line * lines.n;
      const index_t to = lines.element(line, i, k);
      values[to] = source(lines.element(line, from, lines.n));
      indices[to] = from;
    }
  }
};

/// Elements that are sorted at once.
inline constexpr index_t most_sorted = index_t{1} << 27;

/// The first k of n elements along the middle axis, in order: found if they are few, otherwise sorted with all others.
/// All lines are sorted together: by line and key at once where both fit in 64 bits, otherwise first by key and then,
/// stably, by line. At most `most` elements, but a whole line, at once.
template <device D, class T, class Source>
void sort_on(const Source& source, const sinter::detail::fold_shape& s, bool descending, index_t k, T* values,
             std::int64_t* indices, index_t most = most_sorted) {
  const index_t n = s.reduced, all = s.outer * s.inner;
  if (all > 0 && select_body<T, Source>::fits(all, n, k)) {
    const select_body<T, Source> body{source, {s.inner, n, 0, all}, descending, static_cast<int>(k), values, indices};
    const index_t shape[] = {s.outer, n, s.inner};
    return launch_on<D>({"topk", shape, 3}, body, body.launch());
  }
  const index_t at_once = n < most ? most / n : 1;
  radix_sorter<D> pairs(n * (all < at_once ? all : at_once));
  constexpr int key_bits = 8 * sizeof(T);
  for (index_t first = 0; first < all; first += at_once) {
    const sort_lines lines{s.inner, n, first, all - first < at_once ? all - first : at_once};
    const index_t total = lines.count * n;
    int line_bits = 0;
    while ((index_t{1} << line_bits) < lines.count) ++line_bits;
    const bool together = key_bits + line_bits <= 64;
    const auto run = [&total](const auto& body, index_t threads) {
      launch_on<D>({"a sort", &total, 1}, body, {blocks_for(threads, block_threads), 0});
    };
    run(sort_keys_body<T, Source>{source, lines, descending, together && line_bits > 0 ? key_bits : 0, pairs.keys(),
                                  pairs.values()},
        total);
    pairs.sort(total, together ? key_bits + line_bits : key_bits);
    if (!together) {
      run(line_keys_body{total, n, pairs.values(), pairs.keys()}, total);
      pairs.sort(total, line_bits);
    }
    run(pick_sorted_body<T, Source>{source, lines, k, pairs.values(), values, indices}, lines.count * k);
  }
}

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::sort_op, D> {
  template <class E, class T, int R>
  static void run(const ops::sort_op& op, const E& e, const tensor<T, R, D>& values,
                  const tensor<std::int64_t, R, D>& indices) {
    cuda_impl::sort_on<D, T>(cuda_impl::source_of(e), around_axis(e.shape().data(), R, op.axis), op.descending,
                             values.shape()[op.axis], access::data(values), access::data(indices));
  }
};

}  // namespace sinter::detail
