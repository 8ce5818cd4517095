// sinter/cuda/select.hpp: the body that finds the first elements of lines in order, without sorting the others: topk.
//
// A block narrows the keys of its line down, a digit of 8 bits at a time from the highest on, to those up to the last
// one that is asked for; equal keys by their positions. What is left is sorted in shared memory. Alabi, Blanchard,
// Gordon, Steinbach, "Fast k-selection algorithms for graphics processing units", 2012.
#pragma once

#include "sinter/cuda/element.hpp"
#include "sinter/cuda/radix_sort.hpp"
#include "sinter/expr/sort_key.hpp"

namespace sinter::cuda_impl {

/// Lines [first, first + count) of n elements along the middle axis of (outer, n, inner).
struct sort_lines {
  index_t inner = 1, n = 0, first = 0, count = 0;

  /// The element at position i of line `first + line`, in a tensor with `along` elements on the axis.
  SINTER_WORD index_t element(index_t line, index_t i, index_t along) const {
    const index_t outer = (first + line) / inner;
    return (outer * along + i) * inner + (first + line) - outer * inner;
  }
};

/// The elements that come first in a line: whose key and position, as far as their digits are known, are not above
/// these.
struct selection {
  std::uint64_t key = 0, known_key = 0;
  std::uint32_t position = 0, known_position = 0;

  /// The digits of a key of so many bytes, then those of the position.
  static SINTER_WORD int digit(std::uint64_t k, std::uint32_t p, int bytes, int number) {
    return static_cast<int>(
        (number < bytes ? k >> 8 * (bytes - 1 - number) : std::uint64_t{p} >> 8 * (bytes + 3 - number)) & 255);
  }
  SINTER_WORD void learn(int digit, int bytes, int number) {
    if (number < bytes) {
      key |= static_cast<std::uint64_t>(digit) << 8 * (bytes - 1 - number);
      known_key |= std::uint64_t{255} << 8 * (bytes - 1 - number);
    } else {
      position |= static_cast<std::uint32_t>(digit) << 8 * (bytes + 3 - number);
      known_position |= std::uint32_t{255} << 8 * (bytes + 3 - number);
    }
  }
  SINTER_WORD bool on_edge(std::uint64_t k, std::uint32_t p) const {
    return (k & known_key) == key && (p & known_position) == position;
  }
  SINTER_WORD bool has(std::uint64_t k, std::uint32_t p) const {
    return (k & known_key) < key || ((k & known_key) == key && (p & known_position) <= position);
  }
};

/// The first k of n elements of each line: (outer, k, inner). A block per line.
template <class T, class Source>
struct select_body {
  static constexpr int most = 1024;           ///< elements that are found
  static constexpr index_t most_kept = 4096;  ///< keys that are computed once
  static constexpr int bytes = sizeof(T), digits = bytes + 4;
  struct room {
    std::uint64_t keys[most];
    std::uint32_t positions[most];
    unsigned counts[radix], sums[radix];
    unsigned found, left;
    int digit;
    bool ends;
  };

  Source source;
  sort_lines lines;
  bool descending;
  int k;
  T* values;
  std::int64_t* indices;

  /// Whether it is for so many lines, of so many elements: a block has to go over each of them a few times.
  static bool fits(index_t lines, index_t n, index_t k) {
    return k > 0 && k <= most && k <= n / 4 && n <= (lines < 128 ? index_t{1} << 14 : index_t{1} << 30);
  }

  SINTER_WORD bool keeps() const { return lines.n <= most_kept; }
  launch_shape launch() const {
    return {blocks_for(lines.count),
            sizeof(room) + (keeps() ? static_cast<std::size_t>(lines.n) * sizeof(std::uint64_t) : 0)};
  }

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    room& r = *g.template shared<room>();
    std::uint64_t* const kept = keeps() ? reinterpret_cast<std::uint64_t*>(&r + 1) : nullptr;
    for (index_t line = g.block(); line < lines.count; line += g.blocks()) {
      const auto key_of = [&](index_t i) -> std::uint64_t {
        return sinter::detail::sort_key(T(source(lines.element(line, i, lines.n))), descending);
      };
      if (kept != nullptr)
        for (index_t i = g.thread(); i < lines.n; i += g.threads()) kept[i] = key_of(i);
      // Each thread comes to the same elements each time.
      const auto each = [&](const auto& f) {
        for (index_t i = g.thread(); i < lines.n; i += g.threads()) {
          keep_loop(i);
          f(kept != nullptr ? kept[i] : key_of(i), static_cast<std::uint32_t>(i));
        }
      };
      selection first;
      unsigned left = static_cast<unsigned>(k);
      bool ends = false;
      for (int number = 0; number < digits && !ends; ++number) {
        keep_loop(number);
        ends = narrow(g, r, first, left, number, each);
      }
      gather(g, r, first, each);
      int size = 2;
      while (size < k) size *= 2;
      for (int p = k + g.thread(); p < size; p += g.threads()) {
        r.keys[p] = ~std::uint64_t{0};
        r.positions[p] = ~std::uint32_t{0};
      }
      put_in_order(g, r, size);
      for (int p = g.thread(); p < k; p += g.threads()) {
        const index_t from = r.positions[p], to = lines.element(line, p, k);
        values[to] = source(lines.element(line, from, lines.n));
        indices[to] = from;
      }
      g.sync();
    }
  }

 private:
  /// Finds one more digit of the last element that is asked for, the `left`-th of those on the edge; left >= 1, so
  /// exactly one thread, that of the digit, has before < left <= sum. True if all elements with that digit are asked
  /// for.
  template <class G, class Each>
  SINTER_WORD bool narrow(const G& g, room& r, selection& first, unsigned& left, int number, const Each& each) const {
    const int t = g.thread();
    r.counts[t] = 0;
    g.sync();
    each([&](std::uint64_t key, std::uint32_t position) {
      if (first.on_edge(key, position)) g.add(r.counts + selection::digit(key, position, bytes, number), 1u);
    });
    g.sync();
    const unsigned sum = sum_up_to(g, r.sums, r.counts[t]);
    const unsigned before = sum - r.counts[t];
    if (before < left && left <= sum) {
      r.digit = t;
      r.left = left - before;
      r.ends = left == sum;
    }
    g.sync();
    first.learn(r.digit, bytes, number);
    left = r.left;
    const bool ends = r.ends;
    g.sync();
    return ends;
  }

  template <class G, class Each>
  SINTER_WORD void gather(const G& g, room& r, const selection& first, const Each& each) const {
    if (g.thread() == 0) r.found = 0;
    g.sync();
    each([&](std::uint64_t key, std::uint32_t position) {
      if (!first.has(key, position)) return;
      const unsigned to = g.take(&r.found);
      r.keys[to] = key;
      r.positions[to] = position;
    });
  }

  /// Batcher's bitonic network, over a power of two.
  template <class G>
  SINTER_WORD void put_in_order(const G& g, room& r, int size) const {
    for (int run = 2; run <= size; run *= 2)
      for (int step = run / 2; step > 0; step /= 2) {
        g.sync();
        for (int i = g.thread(); i < size / 2; i += g.threads()) {
          const int a = i / step * 2 * step + i % step, b = a + step;
          const bool wrong = r.keys[b] < r.keys[a] || (r.keys[b] == r.keys[a] && r.positions[b] < r.positions[a]);
          if (wrong != ((a & run) != 0)) exchange(r, a, b);
        }
      }
    g.sync();
  }
  static SINTER_WORD void exchange(room& r, int a, int b) {
    const std::uint64_t key = r.keys[a];
    r.keys[a] = r.keys[b];
    r.keys[b] = key;
    const std::uint32_t position = r.positions[a];
    r.positions[a] = r.positions[b];
    r.positions[b] = position;
  }
};

}  // namespace sinter::cuda_impl
