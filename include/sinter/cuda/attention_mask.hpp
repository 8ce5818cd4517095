// sinter/cuda/attention_mask.hpp: the gradient of a mask that is added to the scores of attention, on GPUs.
//
// It is that of the scores, summed over what the mask is broadcast along. A mask of queries and keys: a block owns a
// tile of it, and adds up what the heads of all batches give in their order. A mask that is broadcast along queries or
// keys: a block owns the rows of one head, whose sums over the others lie in memory until they are added up.
#pragma once

#include "sinter/cuda/attention_backward.hpp"

namespace sinter::cuda_impl {

template <class T>
struct attention_mask_gradient : ops::mask_gradient_of<T> {
  using base = ops::mask_gradient_of<T>;
  using base::batch, base::heads, base::queries, base::keys, base::add;

  SINTER_WORD bool of_scores() const { return queries > 1 && keys > 1; }
  /// Otherwise, of whose rows there are sums.
  SINTER_WORD bool of_keys() const { return keys > 1 || queries == 1; }
  SINTER_WORD index_t rows(const ops::attention_extents& e) const { return of_keys() ? e.keys : e.queries; }
  /// Batches, or heads, that share a plane of the mask.
  SINTER_WORD index_t batches_of_plane(const ops::attention_extents& e) const { return batch > 1 ? 1 : e.batch; }
  SINTER_WORD index_t heads_of_plane(const ops::attention_extents& e) const { return heads > 1 ? 1 : e.heads; }

  template <class C>
  SINTER_WORD void put(T& element, C sum) const {
    element = static_cast<T>(add ? static_cast<C>(element) + sum : sum);
  }
};

template <class T, class Rule>
struct attention_mask_gradient_body : attention_reverse<T, Rule> {
  using base = attention_reverse<T, Rule>;
  using base::rule, base::side, base::tiles_of;
  using typename base::C;
  using typename base::tiles;
  attention_mask_gradient<T> mask;
  C* sums;  ///< (batch, heads, rows), where the mask is not of queries and keys

  static constexpr std::size_t shared_bytes() {
    return sizeof(C) * std::size_t{3 * tiles::area + base::room_for_visit};
  }
  SINTER_WORD index_t tasks() const {
    if (mask.of_scores()) return mask.batch * mask.heads * tiles_of(mask.queries) * tiles_of(mask.keys);
    return rule.e.batch * rule.e.heads * tiles_of(mask.rows(rule.e));
  }

  template <class G>
  SINTER_WORD void operator()(const G& grid) const {
    for (index_t task = grid.block(); task < tasks(); task += grid.blocks()) {
      if (mask.of_scores()) run_plane(grid, task);
      else run_rows(grid, task);
    }
  }

 private:
  /// add(other, gradient of the score), of this thread's part.
  template <class G, class F>
  SINTER_WORD void add_scores(const G& grid, const typename base::place& at, bool owns_keys, const F& add) const {
    if (!this->sees(at)) return;
    C* const staging = grid.template shared<C>();
    C* const tile = staging + tiles::area;
    this->weigh(grid, at, owns_keys, true, staging, tile,
                [](C gradient, const scored<C>&, const auto&, index_t) { return gradient; });
    const int own = grid.thread() % side, first = grid.thread() / side * tiles::share;
    for (int other = first; other < first + tiles::share; ++other) add(other, tile[other * tiles::step + own]);
    grid.sync();
  }

  template <class G>
  SINTER_WORD void run_plane(const G& grid, index_t task) const {
    const index_t key = task % tiles_of(mask.keys) * side;
    task /= tiles_of(mask.keys);
    const index_t query = task % tiles_of(mask.queries) * side;
    task /= tiles_of(mask.queries);
    const index_t head = task % mask.heads, batch = task / mask.heads;
    const int own = grid.thread() % side, first = grid.thread() / side * tiles::share;
    C* const mine = grid.template shared<C>() + 2 * tiles::area + base::room_for_visit + own;  // no other thread's
    for (int other = first; other < first + tiles::share; ++other) mine[other * tiles::step] = C(0);
    for (index_t b = batch; b < batch + mask.batches_of_plane(rule.e); ++b)
      for (index_t h = head; h < head + mask.heads_of_plane(rule.e); ++h)
        add_scores(grid, this->meeting(b, h, query, key), true,
                   [&](int other, C x) { mine[other * tiles::step] += x; });
    const auto to = mask.to.of(batch, head).from(query, key);
    for (int other = first; other < first + tiles::share; ++other)
      if (query + other < mask.queries && key + own < mask.keys)
        mask.put(to.data[other * to.row + own * to.column], mine[other * tiles::step]);
  }

  template <class G>
  SINTER_WORD void run_rows(const G& grid, index_t task) const {
    const ops::attention_extents& e = rule.e;
    const bool owns_keys = mask.of_keys();
    const index_t rows = mask.rows(e), others = owns_keys ? e.queries : e.keys;
    const index_t first = task % tiles_of(rows) * side;
    task /= tiles_of(rows);
    const index_t head = task % e.heads, batch = task / e.heads;
    C* const of_parts = grid.template shared<C>() + 2 * tiles::area + base::room_for_visit;
    C sum = 0;
    for (index_t other = 0; other < others; other += side)
      add_scores(grid, this->meeting(batch, head, owns_keys ? other : first, owns_keys ? first : other), owns_keys,
                 [&](int, C x) { sum += x; });
    of_parts[grid.thread()] = sum;
    grid.sync();
    const int own = grid.thread();
    if (own < side && first + own < rows) {
      for (int p = 1; p < tiles::parts; ++p) sum += of_parts[p * side + own];
      sums[(batch * e.heads + head) * rows + first + own] = sum;
    }
    grid.sync();
  }
};

/// Adds up the sums of the rows for each element of a mask that is not of queries and keys.
template <class T>
struct attention_mask_sums_body {
  using C = compute_type<T>;
  attention_mask_gradient<T> mask;
  ops::attention_extents e;
  const C* sums;

  SINTER_WORD index_t numel() const { return mask.batch * mask.heads * mask.queries * mask.keys; }
  template <class G>
  SINTER_WORD void operator()(const G& grid) const {
    const index_t in_plane = mask.queries * mask.keys, rows = mask.rows(e);
    for (index_t i = grid.block() * grid.threads() + grid.thread(); i < numel(); i += grid.blocks() * grid.threads()) {
      const index_t plane = i / in_plane, row = i - plane * in_plane, head = plane % mask.heads,
                    batch = plane / mask.heads;
      const index_t last = in_plane == 1 ? rows : row + 1;  // a mask of one element has the sum of all
      C sum = 0;
      for (index_t b = batch; b < batch + mask.batches_of_plane(e); ++b)
        for (index_t h = head; h < head + mask.heads_of_plane(e); ++h)
          for (index_t r = row; r < last; ++r) sum += sums[(b * e.heads + h) * rows + r];
      const auto to = mask.to.of(batch, head);
      mask.put(to.data[mask.of_keys() ? row * to.column : row * to.row], sum);
    }
  }
};

}  // namespace sinter::cuda_impl
