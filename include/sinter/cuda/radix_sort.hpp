// sinter/cuda/radix_sort.hpp: pairs sorted by the digits of their keys, from the lowest up; stable, and the same in
// every run. (Not CUB's sort, unless cub.hpp is in the program: its headers bring a namespace ::cuda, which makes
// cuda<0> ambiguous after `using namespace sinter`.)
//
// A pass moves the pairs to the order of one digit of 8 bits: count the digits of each tile of pairs, add up where each
// tile's share of each digit begins, and move. Satish, Harris, Garland, "Designing efficient sorting algorithms for
// manycore GPUs", 2009.
#pragma once

#include <vector>

#include "sinter/cuda/pairs.hpp"
#include "sinter/cuda/scan.hpp"
#include "sinter/cuda/spill.hpp"

namespace sinter::cuda_impl {

inline constexpr int radix_bits = 8, radix = 1 << radix_bits;
static_assert(radix == block_threads, "a thread per digit");

/// Pairs that a block moves together.
inline constexpr int radix_tile = 8 * block_threads;

/// The sum of `mine` over the threads of a block up to this one, also in sums[thread]; the others see it after the next
/// sync().
template <class G>
SINTER_WORD std::uint32_t sum_up_to(const G& g, std::uint32_t* sums, std::uint32_t mine) {
  const int t = g.thread();
  std::uint32_t sum = mine;
  sums[t] = sum;
  for (int step = 1; step < block_threads; step *= 2) {
    g.sync();
    if (t >= step) sum += sums[t - step];
    g.sync();
    sums[t] = sum;
  }
  return sum;
}

struct radix_digit {
  int shift = 0;
  std::uint64_t mask = 0;
  SINTER_WORD int operator()(std::uint64_t key) const { return static_cast<int>(key >> shift & mask); }
};

/// counts[digit][tile] of the keys.
struct radix_count_body {
  const std::uint64_t* keys;
  index_t n, tiles;
  radix_digit digit;
  std::uint32_t* counts;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    unsigned* const found = g.template shared<unsigned>();
    for (index_t tile = g.block(); tile < tiles; tile += g.blocks()) {
      found[g.thread()] = 0;
      g.sync();
      const index_t end = n < (tile + 1) * radix_tile ? n : (tile + 1) * radix_tile;
      for (index_t i = tile * radix_tile + g.thread(); i < end; i += g.threads()) g.add(found + digit(keys[i]), 1u);
      g.sync();
      counts[g.thread() * tiles + tile] = found[g.thread()];
    }
  }
};

/// Where each share begins, from the sums of all shares up to it.
struct radix_begins {
  std::uint32_t* begins;
  SINTER_WORD void put(index_t i, std::int64_t sum) const {
    if (i == 0) begins[0] = 0;
    begins[i + 1] = static_cast<std::uint32_t>(sum);
  }
};

/// A tile is put in order in shared memory, half a digit at a time, and goes to its places in runs.
struct radix_move_body {
  static constexpr int each = radix_tile / block_threads, halves = 16;
  struct room {
    std::uint64_t keys[radix_tile];
    std::uint32_t values[radix_tile];
    std::uint16_t counts[halves * block_threads];  // [half digit][thread], then where each begins
    std::uint32_t sums[block_threads];
    std::uint32_t begins[radix];
  };

  const std::uint64_t* keys;
  const std::uint32_t* values;
  index_t n, tiles;
  radix_digit digit;
  const std::uint32_t* begins;
  std::uint64_t* to_keys;
  std::uint32_t* to_values;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    room& r = *g.template shared<room>();
    for (index_t tile = g.block(); tile < tiles; tile += g.blocks()) {
      const index_t first = tile * radix_tile;
      const int count = n - first < radix_tile ? static_cast<int>(n - first) : radix_tile;
      for (int i = g.thread(); i < count; i += g.threads()) {
        r.keys[i] = keys[first + i];
        r.values[i] = values[first + i];
      }
      g.sync();
      order_by_half(g, r, count, 0);
      order_by_half(g, r, count, radix_bits / 2);
      for (int i = g.thread(); i < count; i += g.threads())
        if (i == 0 || digit(r.keys[i - 1]) != digit(r.keys[i]))
          r.begins[digit(r.keys[i])] = static_cast<std::uint32_t>(i);
      g.sync();
      for (int i = g.thread(); i < count; i += g.threads()) {
        const int d = digit(r.keys[i]);
        const index_t to = static_cast<index_t>(begins[d * tiles + tile]) + i - static_cast<index_t>(r.begins[d]);
        to_keys[to] = r.keys[i];
        to_values[to] = r.values[i];
      }
      g.sync();
    }
  }

 private:
  /// Each thread counts the half digits of its neighbouring pairs; the sum over those before, half digit by half digit,
  /// is where its pairs go.
  template <class G>
  SINTER_WORD void order_by_half(const G& g, room& r, int count, int shift) const {
    const int t = g.thread();
    std::uint64_t key[each];
    std::uint32_t value[each];
    int rank[each];
    for (int h = 0; h < halves; ++h) r.counts[h * block_threads + t] = 0;
    SINTER_UNROLL
    for (int k = 0; k < each; ++k)
      if (t * each + k < count) {
        key[k] = r.keys[t * each + k];
        value[k] = r.values[t * each + k];
        rank[k] = r.counts[(digit(key[k]) >> shift) % halves * block_threads + t]++;
      }
    g.sync();
    std::uint32_t mine = 0;
    for (int j = 0; j < halves; ++j) mine += r.counts[t * halves + j];
    std::uint32_t before = sum_up_to(g, r.sums, mine) - mine;
    for (int j = 0; j < halves; ++j) {
      const std::uint32_t n_of = r.counts[t * halves + j];
      r.counts[t * halves + j] = static_cast<std::uint16_t>(before);
      before += n_of;
    }
    g.sync();
    SINTER_UNROLL
    for (int k = 0; k < each; ++k)
      if (t * each + k < count) {
        const int to = r.counts[(digit(key[k]) >> shift) % halves * block_threads + t] + rank[k];
        r.keys[to] = key[k];
        r.values[to] = value[k];
      }
    g.sync();
  }
};

/// Pairs to sort, and room for as many.
template <device D>
class radix_sorter {
 public:
  explicit radix_sorter(index_t most)
      : memory_(static_cast<std::size_t>(most) * 2 * (sizeof(std::uint64_t) + sizeof(std::uint32_t))) {
    auto* const keys = static_cast<std::uint64_t*>(memory_.data());
    auto* const values = reinterpret_cast<std::uint32_t*>(keys + 2 * most);
    pairs_ = {keys, keys + most, values, values + most};
  }

  std::uint64_t* keys() const { return pairs_.keys; }
  std::uint32_t* values() const { return pairs_.values; }

  /// Sorts the first n pairs by the lowest `bits` bits of their keys.
  void sort(index_t n, int bits) {
    if (gpu<D>::sort(pairs_, n, bits)) return;
    const index_t tiles = (n + radix_tile - 1) / radix_tile, shares = tiles * radix;
    const sinter::detail::temporary<D> count_memory(static_cast<std::size_t>(shares) * sizeof(std::uint32_t));
    const sinter::detail::temporary<D> begin_memory(static_cast<std::size_t>(shares + 1) * sizeof(std::uint32_t));
    auto* const counts = static_cast<std::uint32_t*>(count_memory.data());
    auto* const begins = static_cast<std::uint32_t*>(begin_memory.data());
    pass_axes axes(&shares, 1, 1);
    axes.bind_dense(0, counts);
    const auto source = make_source<1>(sinter::detail::kernel::leaf<std::int32_t, false>{}, axes);
    const auto run = [&n](const auto& body, const launch_shape& s) { launch_on<D>({"a sort", &n, 1}, body, s); };
    for (int shift = 0; shift < bits; shift += radix_bits) {
      const int width = bits - shift < radix_bits ? bits - shift : radix_bits;
      const radix_digit digit{shift, (std::uint64_t{1} << width) - 1};
      run(radix_count_body{pairs_.keys, n, tiles, digit, counts},
          launch_shape{blocks_for(tiles), radix * sizeof(unsigned)});
      std::vector<sinter::detail::temporary<D>> folds;
      plan_scan<sinter::detail::sum_reducer<std::int32_t>>(
          source, {1, shares, 1}, radix_begins{begins}, run,
          [&folds](std::size_t bytes) { return folds.emplace_back(bytes).data(); },
          [](const auto&, index_t, index_t) { return false; });
      run(radix_move_body{pairs_.keys, pairs_.values, n, tiles, digit, begins, pairs_.spare_keys, pairs_.spare_values},
          launch_shape{blocks_for(tiles), sizeof(radix_move_body::room)});
      pairs_.turn();
    }
  }

 private:
  sinter::detail::temporary<D> memory_;
  pair_buffers pairs_;
};

}  // namespace sinter::cuda_impl
