// sinter/cuda/attention_backward.hpp: the gradients of attention on GPUs, tile by tile.
//
// With the greatest score m and 1 / the sum of a row, p = exp(s - m) / sum, D = sum(g y), z from dropout:
//   dv = (p z)^T g, ds = p (z g v^T - D), dq = scale ds k, dk = scale ds^T q.
// A block owns what it writes, and adds up in the order of the others: tiles of queries for dq, of keys for dk and dv.
#pragma once

#include "sinter/cuda/attention_tile.hpp"

namespace sinter::cuda_impl {

/// What the kernels of backward read. T: elements of the operands.
template <class T, class Rule>
struct attention_reverse {
  using C = compute_type<T>;
  using tiles = attention_tiles<C>;
  static constexpr int side = tiles::side;

  Rule rule;
  heads_of<const T> q, k, v, y, g;
  const C* saved;  ///< of each query its greatest score, and 1 / the sum
  const C* means;  ///< D of each query
  C scale;

  SINTER_WORD static index_t tiles_of(index_t n, int of = side) { return (n + of - 1) / of; }
  SINTER_WORD index_t row_of(index_t batch, index_t head, index_t query) const {
    return (batch * rule.e.heads + head) * rule.e.queries + query;
  }

  /// A tile of queries that meets one of keys, of a head of queries.
  struct place {
    index_t batch, head, query, key;  ///< the first of them
    int queries, keys;
  };
  SINTER_WORD place meeting(index_t batch, index_t head, index_t query, index_t key) const {
    return {batch, head, query, key, fewer(rule.e.queries - query, side), fewer(rule.e.keys - key, side)};
  }
  SINTER_WORD bool sees(const place& at) const {
    return rule.sees(at.batch, at.head, at.query, at.query + at.queries, at.key, at.key + at.keys);
  }

  /// What a block works on, in shared memory: registers are few.
  struct visit {
    place at;
    matrix_of<const T> of_queries[2], of_keys[2];  ///< for scores, and for the gradients of weights
  };
  static constexpr int room_for_visit = static_cast<int>((sizeof(visit) + sizeof(C) - 1) / sizeof(C));
  SINTER_WORD static visit& visit_at(C* tile) { return *reinterpret_cast<visit*>(tile + tiles::area); }

  /// To element (other, owned) of `tile`: the weight, with dropout, or with `of_scores` f(gradient, score, query, key),
  /// the gradient being that of the score. `staging` is for that.
  template <class G, class F>
  SINTER_WORD void weigh(const G& grid, const place& where, bool owns_keys, bool of_scores, C* staging, C* tile,
                         const F& f) const {
    visit& now = visit_at(tile);
    if (grid.thread() == 0) {
      const index_t head = where.head / (rule.e.heads / rule.e.key_heads);
      now = {where,
             {q.of(where.batch, where.head).from(where.query, 0), g.of(where.batch, where.head).from(where.query, 0)},
             {k.of(where.batch, head).from(where.key, 0), v.of(where.batch, head).from(where.key, 0)}};
    }
    grid.sync();
    const place& at = now.at;
    for (int pass = 0; pass < (of_scores ? 2 : 1); ++pass) {
      keep_loop(pass);
      const auto &queries = now.of_queries[pass], &keys = now.of_keys[pass];
      tiles::score(grid, staging, pass == 0 ? tile : staging, owns_keys ? queries : keys,
                   owns_keys ? at.queries : at.keys, owns_keys ? keys : queries, owns_keys ? at.keys : at.queries,
                   pass == 0 ? rule.e.size : rule.e.value_size);
    }
    grid.sync();

    const int own = grid.thread() % side, first = grid.thread() / side * tiles::share;
    auto row = rule.at(at.batch, at.head, at.query);
    C greatest = 0, inverse = 0, mean = 0;
    for (int other = first; other < first + tiles::share; ++other) {
      keep_loop(other);
      const int query = owns_keys ? other : own, key = owns_keys ? own : other;
      C& element = tile[other * tiles::step + own];
      const C score = element * scale, gradient = of_scores ? staging[other * tiles::step + own] : C(0);
      element = C(0);
      if (query >= at.queries || key >= at.keys) continue;
      if (owns_keys || other == first) {
        row = rule.at(at.batch, at.head, at.query + query);
        const index_t number = row_of(at.batch, at.head, at.query + query);
        greatest = saved[2 * number];
        inverse = saved[2 * number + 1];
        if (of_scores) mean = means[number];
      }
      const scored<C> s = rule.make(score, row, at.key + key);
      const C weight = weight_of(s.value - greatest) * inverse;
      if (weight == C(0)) continue;
      const C z = rule.template factor<C>(row, at.key + key);
      element = of_scores ? f(weight * (gradient * z - mean), s, row, at.key + key) : weight * z;
    }
    grid.sync();
  }
};

/// D of each query; some threads for each.
template <class T>
struct attention_means_body {
  using C = compute_type<T>;
  static constexpr int together = 16, rows_at_once = block_threads / together;
  heads_of<const T> y, g;
  ops::attention_extents e;
  C* means;

  SINTER_WORD index_t rows() const { return e.batch * e.heads * e.queries; }
  template <class G>
  SINTER_WORD void operator()(const G& grid) const {
    C* const sums = grid.template shared<C>();
    const int first = grid.thread() / together * together;
    for (index_t at = grid.block() * rows_at_once; at < rows(); at += grid.blocks() * rows_at_once) {
      const index_t row = at + grid.thread() / together;
      C sum = 0;
      if (row < rows()) {
        const index_t head = row / e.queries, batch = head / e.heads;
        const auto results = y.of(batch, head % e.heads).from(row % e.queries, 0);
        const auto gradients = g.of(batch, head % e.heads).from(row % e.queries, 0);
        for (index_t c = grid.thread() - first; c < e.value_size; c += together)
          sum +=
              static_cast<C>(results.data[c * results.column]) * static_cast<C>(gradients.data[c * gradients.column]);
      }
      sums[grid.thread()] = sum;
      grid.sync();
      if (row < rows() && grid.thread() == first) {
        for (int i = 1; i < together; ++i) sum += sums[first + i];
        means[row] = sum;
      }
      grid.sync();
    }
  }
};

/// dq, dk and dv, as far as they are asked for, in this order: a block makes some columns of a tile of one of them.
template <class T, class Rule>
struct attention_gradients_body : attention_reverse<T, Rule> {
  using base = attention_reverse<T, Rule>;
  using base::rule, base::side, base::tiles_of;
  using typename base::C;
  using typename base::tiles;
  ops::gradient_of<T> dq, dk, dv;

  static constexpr std::size_t shared_bytes() {
    return sizeof(C) * std::size_t{2 * tiles::area + base::room_for_visit};
  }
  SINTER_WORD index_t tasks_of(const ops::gradient_of<T>& d, index_t heads, index_t rows, index_t columns) const {
    return !d ? 0 : rule.e.batch * heads * tiles_of(rows) * tiles_of(columns, tiles::columns);
  }
  SINTER_WORD index_t tasks_of_queries() const { return tasks_of(dq, rule.e.heads, rule.e.queries, rule.e.size); }
  SINTER_WORD index_t tasks_of_keys() const { return tasks_of(dk, rule.e.key_heads, rule.e.keys, rule.e.size); }
  SINTER_WORD index_t tasks() const {
    return tasks_of_queries() + tasks_of_keys() + tasks_of(dv, rule.e.key_heads, rule.e.keys, rule.e.value_size);
  }

  template <class G>
  SINTER_WORD void operator()(const G& grid) const {
    for (index_t task = grid.block(); task < tasks(); task += grid.blocks()) run(grid, task);
  }

  template <class G>
  SINTER_WORD void run(const G& grid, index_t task) const {
    const ops::attention_extents& e = rule.e;
    const bool owns_keys = task >= tasks_of_queries();
    if (owns_keys) task -= tasks_of_queries();
    const bool of_values = owns_keys && task >= tasks_of_keys();
    if (of_values) task -= tasks_of_keys();
    const ops::gradient_of<T>& to = of_values ? dv : owns_keys ? dk : dq;
    const index_t size = of_values ? e.value_size : e.size, heads = owns_keys ? e.key_heads : e.heads;
    const index_t owned = owns_keys ? e.keys : e.queries, others = owns_keys ? e.queries : e.keys;
    const index_t group = owns_keys ? e.heads / e.key_heads : 1;

    const index_t column = task % tiles_of(size, tiles::columns) * tiles::columns;
    task /= tiles_of(size, tiles::columns);
    // The first keys are seen by most queries, and the last queries see most keys.
    const index_t tile_of_rows = task % tiles_of(owned);
    const index_t first = (owns_keys ? tile_of_rows : tiles_of(owned) - 1 - tile_of_rows) * side;
    task /= tiles_of(owned);
    const index_t head = task % heads, batch = task / heads;
    C* const staging = grid.template shared<C>();
    C* const tile = staging + tiles::area;
    typename tiles::sums results[2];
    tiles::clear(results[0]);
    tiles::clear(results[1]);

    for (index_t h = 0; h < group; ++h) {
      const index_t of_queries = head * group + h;
      for (index_t other = 0; other < others; other += side) {
        const auto at = this->meeting(batch, of_queries, owns_keys ? other : first, owns_keys ? first : other);
        if (!this->sees(at)) continue;
        this->weigh(grid, at, owns_keys, !of_values, staging, tile,
                    [&](C gradient, const scored<C>& s, const auto& row, index_t key) {
                      return rule.score.grad(gradient, s.score, s.formula, rule.template place<C>(row, key));
                    });
        const auto& now = base::visit_at(tile);
        const auto& rows = owns_keys ? now.of_queries[of_values ? 1 : 0] : now.of_keys[0];
        tiles::add(grid, staging, tile, rows.from(0, column), owns_keys ? at.queries : at.keys, size - column, results);
      }
    }
    const C factor = of_values ? C(1) : this->scale;
    tiles::write(grid, results, to.to.of(batch, head).from(first, column), fewer(owned - first, side), size - column,
                 to.add, [=](int) { return factor; });
  }
};

}  // namespace sinter::cuda_impl
