// sinter/cuda/attention_forward.hpp: attention on GPUs, tile by tile, with a running maximum and sum for each query.
#pragma once

#include "sinter/cuda/attention_tile.hpp"

namespace sinter::cuda_impl {

/// A block makes some columns of a tile of queries. T: elements of the operands.
template <class T, class Rule>
struct attention_body {
  using C = compute_type<T>;
  using tiles = attention_tiles<C>;
  static constexpr int side = tiles::side;

  Rule rule;
  heads_of<const T> q, k, v;
  heads_of<T> y;
  C* saved;  ///< of each query its greatest score, and 1 / the sum
  C scale;

  SINTER_WORD index_t query_tiles() const { return (rule.e.queries + side - 1) / side; }
  /// At least one: it saves what backward needs.
  SINTER_WORD index_t column_tiles() const {
    return rule.e.value_size > tiles::columns ? (rule.e.value_size + tiles::columns - 1) / tiles::columns : 1;
  }
  SINTER_WORD index_t tasks() const { return rule.e.batch * rule.e.heads * query_tiles() * column_tiles(); }
  static constexpr std::size_t shared_bytes() {
    return sizeof(C) * static_cast<std::size_t>(2 * tiles::area + (tiles::parts + 1) * side);
  }

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    for (index_t task = g.block(); task < tasks(); task += g.blocks()) run(g, task);
  }

  template <class G>
  SINTER_WORD void run(const G& g, index_t task) const {
    const ops::attention_extents& e = rule.e;
    C* const staging = g.template shared<C>();
    C* const tile = staging + tiles::area;
    C* const of_parts = tile + tiles::area;  // of each owned row, part by part
    C* const factors = of_parts + tiles::parts * side;
    const index_t column = task % column_tiles() * tiles::columns;
    task /= column_tiles();
    // The last queries see most keys where not all are seen: they come first.
    const index_t first = (query_tiles() - 1 - task % query_tiles()) * side;
    task /= query_tiles();
    const index_t head = task % e.heads, batch = task / e.heads;
    const int rows = fewer(e.queries - first, side);
    const index_t of_keys = head / (e.heads / e.key_heads);
    const auto queries = q.of(batch, head).from(first, 0);
    const auto keys = k.of(batch, of_keys);
    const auto values = v.of(batch, of_keys).from(0, column);

    // This thread's row in the softmax, and its part of the keys.
    const int own = g.thread() % side, part = g.thread() / side;
    auto place = rule.at(batch, head, first + (own < rows ? own : 0));
    if (own >= rows) place.keys = {0, 0};
    const C none = -std::numeric_limits<C>::infinity();
    C greatest = none, sum = 0;
    typename tiles::sums results[2];
    tiles::clear(results[0]);
    tiles::clear(results[1]);

    for (index_t key = 0; key < e.keys; key += side) {
      const int others = fewer(e.keys - key, side);
      if (!rule.sees(batch, head, first, first + rows, key, key + others)) continue;
      tiles::score(g, staging, tile, keys.from(key, 0), others, queries, rows, e.size);
      g.sync();
      C* const mine = tile + part * tiles::share * tiles::step + own;
      C most = none;
      for (int m = 0; m < tiles::share; ++m) {
        keep_loop(m);
        C& s = mine[m * tiles::step];
        s = rule.make(s * scale, place, key + part * tiles::share + m).value;
        most = math::max(most, s);
      }
      of_parts[part * side + own] = most;
      g.sync();
      most = greatest;
      SINTER_UNROLL
      for (int p = 0; p < tiles::parts; ++p) most = math::max(most, of_parts[p * side + own]);
      const C again = most == greatest ? C(1) : math::exp(greatest - most);
      greatest = most;
      if (part == 0) factors[own] = again;
      C here = 0;
      for (int m = 0; m < tiles::share; ++m) {
        keep_loop(m);
        C& s = mine[m * tiles::step];
        const C p = greatest == none ? C(0) : weight_of(s - greatest);
        here += p;
        s = p;
        if constexpr (Rule::draws)
          if (p != C(0)) s = p * rule.template factor<C>(place, key + part * tiles::share + m);
      }
      sum = sum * again + here;
      g.sync();
      SINTER_UNROLL
      for (int i = 0; i < tiles::each; ++i) {
        const C f = factors[g.thread() / tiles::across * tiles::each + i];
        for (int j = 0; j < tiles::each; ++j) {
          results[0].at[i][j] *= f;
          results[1].at[i][j] *= f;
        }
      }
      tiles::add(g, staging, tile, values.from(key, 0), others, e.value_size - column, results);
    }

    of_parts[part * side + own] = sum;
    g.sync();
    sum = 0;
    SINTER_UNROLL
    for (int p = 0; p < tiles::parts; ++p) sum += of_parts[p * side + own];
    const bool sees = sum != C(0);
    const C inverse = sees ? C(1) / sum : C(0);
    if (part == 0) {
      factors[own] = inverse;
      if (own < rows && column == 0) {
        C* const to = saved + 2 * ((batch * e.heads + head) * e.queries + first + own);
        to[0] = sees ? greatest : -none;
        to[1] = inverse;
      }
    }
    g.sync();
    tiles::write(g, results, y.of(batch, head).from(first, column), rows, e.value_size - column, false,
                 [&](int row) { return factors[row]; });
    g.sync();
  }
};

}  // namespace sinter::cuda_impl
