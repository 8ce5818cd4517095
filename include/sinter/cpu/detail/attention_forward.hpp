// sinter/cpu/detail/attention_forward.hpp: attention block by block, with a running maximum and sum for each query.
//
// Keys and values of a head are packed once, into strips. A task owns a block of queries of one head. For each block of
// keys and each panel of its queries: scores, a tile high; their softmax so far, in the L1 cache; and their product
// with the values, added to what earlier blocks gave, which is scaled down where a greater score came.
#pragma once

#include "sinter/cpu/detail/attention_blocks.hpp"

namespace sinter::cpu_impl::detail {

/// T: elements of the operands; C: those that are computed in.
template <class T, class Rule>
struct attention_forward {
  using C = compute_type<T>;
  static constexpr index_t w = strip<C>, block = 2 * key_block<C>, rows_of_task = query_block<C>;

  const Rule& rule;
  heads_of<const T> q, k, v;
  heads_of<T> y;
  C* saved;  ///< of each query its greatest score, and 1 / the sum
  C scale;
  thread_pool& pool;

  const ops::attention_extents& e = rule.e;
  index_t key_blocks = ceil_div(e.keys, block), key_rows = round_up(e.keys, w);
  index_t keys_size = key_rows * e.size, values_size = strips_size<C>(key_rows, e.value_size);
  C *keys = nullptr, *values = nullptr;
  bool* finite = nullptr;  ///< of each block of values

  void compute() {
    const index_t heads = e.batch * e.key_heads;
    const index_t at_once =
        heads_at_once(heads, (keys_size + values_size) * static_cast<index_t>(sizeof(C)), pool.size());
    const temporary_array<C> packed(at_once * (keys_size + values_size));
    const temporary_array<bool> are_finite(at_once * key_blocks);
    keys = packed.data();
    values = keys + at_once * keys_size;
    finite = are_finite.data();
    const index_t group = e.key_heads > 0 ? e.heads / e.key_heads : 0, blocks = ceil_div(e.queries, rows_of_task);
    for (index_t first = 0; first < heads; first += at_once) {
      const index_t count = smaller(at_once, heads - first);
      pool.parallel_for(count * key_blocks,
                        [&](index_t task) { pack(first + task / key_blocks, task / key_blocks, task % key_blocks); });
      // The last queries see most keys where not all are seen: they come first.
      pool.parallel_for(count * group * blocks, [&](index_t task) {
        const index_t head = task / blocks, place = head / group;
        const index_t of_keys = first + place, batch = of_keys / e.key_heads;
        const index_t of_queries = of_keys % e.key_heads * group + head % group;
        attend(batch, of_queries, place, blocks - 1 - task % blocks);
      });
    }
  }

  void pack(index_t head, index_t place, index_t b) {
    const index_t first = b * block, count = smaller(block, e.keys - first), batch = head / e.key_heads;
    const auto from_keys = k.of(batch, head % e.key_heads), from_values = v.of(batch, head % e.key_heads);
    C* const rows = scratch<C>(0, static_cast<std::size_t>(strips_size<C>(w, e.size)));
    for (index_t i = 0; i < count; i += w) {
      pack_rows(from_keys.from_row(first + i), smaller(w, count - i), w, e.size, C(1), strips_of<C>{rows, w * w});
      transpose_lines<C>({rows, w * w}, e.size, keys + place * keys_size + (first + i) * e.size);
    }
    finite[place * key_blocks + b] =
        pack_rows(from_values.from_row(first), count, round_up(count, w), e.value_size, C(1),
                  strips_of<C>{values + place * values_size, key_rows * w}.from_row(first));
  }

  void attend(index_t batch, index_t head, index_t place, index_t task) const {
    const index_t first = task * rows_of_task, rows = smaller(rows_of_task, e.queries - first);
    const auto panels = row_panels::of<C>(rows);
    const index_t padded = panels.end(panels.count - 1);
    const index_t of_queries = strips_size<C>(padded, e.size), of_results = strips_size<C>(padded, e.value_size);
    C* const queries =
        scratch<C>(0, static_cast<std::size_t>(of_queries + of_results + tile_shape<C>::max_rows * block));
    C* const results = queries + of_queries;
    C* const scores = results + of_results;
    pack_rows(q.of(batch, head).from_row(first), rows, padded, e.size, scale, strips_of<C>{queries, padded * w});
    std::memset(results, 0, static_cast<std::size_t>(of_results) * sizeof(C));
    softmax_state<C> state[std::size_t{rows_of_task}];

    const key_range all = rule.keys(batch, head, first, first + rows);
    for (index_t b = all.begin / block; b * block < all.end; ++b)
      for (index_t p = 0; p < panels.count; ++p) {
        const index_t begin = panels.begin(p), height = panels.end(p) - begin, there = panels.last_row(p) - begin;
        const key_range seen = rule.keys(batch, head, first + begin, first + begin + there);
        const index_t low = seen.begin > b * block ? (seen.begin - b * block) / w * w : 0;
        const index_t high = smaller(seen.end - b * block, block);
        if (low >= high) continue;
        for (index_t s = low; s < high; s += w)
          row_tile<C>(height, false)(e.size, queries + begin * w, padded * w,
                                     keys + place * keys_size + (b * block + s) * e.size, scores + s * height, false);
        const strips_of<C> to{results + begin * w, padded * w};
        for (index_t r = 0; r < there; ++r)
          add_row(batch, head, first + begin + r, {scores + r * w, height * w, low, round_up(high, w), b * block},
                  state[begin + r], to.from_row(r));
        const strips_of<const C> weights{scores + low * height, height * w};
        const strips_of<const C> right =
            strips_of<const C>{values + place * values_size, key_rows * w}.from_row(b * block + low);
        if (finite[place * key_blocks + b])
          multiply_rows<C>(height, high - low, e.value_size, weights, right, to, true);
        else multiply_rows_with_care<C>(there, high - low, e.value_size, weights, right, to);
      }

    const auto to = y.of(batch, head);
    for (index_t r = 0; r < rows; ++r) {
      const C factor = keep_row(state[r].greatest, math::hsum(state[r].sum),
                                saved + 2 * ((batch * e.heads + head) * e.queries + first + r));
      write_row<T>(results + r * w, padded * w, factor, to.data + (first + r) * to.row, to.column, e.value_size, false);
    }
  }

  void add_row(index_t batch, index_t head, index_t query, const score_row<C>& row, softmax_state<C>& state,
               strips_of<C> result) const {
    const C again = take_scores(rule, rule.at(batch, head, query), row, state);
    if (again == C(1)) return;
    const strip_vector<C> factor(again);
    for (index_t c = 0; c < e.value_size; c += w)
      for (index_t i = 0; i < w; i += strip_lanes<C>) {
        C* const some = result.column(c) + i;
        (strip_vector<C>::load(some) * factor).store(some);
      }
  }
};

}  // namespace sinter::cpu_impl::detail
