// sinter/cpu/detail/attention_backward.hpp: the gradients of attention, block by block.
//
// With the greatest score m and the sum l of a row, p = exp(s - m) / l. The division goes to the gradient g of the
// result, which is packed as g / l, so that weights are exp(s - m) here, as in forward:
//   dv = exp(s - m)^T (g / l), ds = exp(s - m) ((g / l) v^T - D / l) with D = sum(g y), dq = scale ds k,
//   dk = ds^T (scale q).
// A task owns some blocks of keys of a head, and goes over all queries that see them: it adds up dk and dv of its keys,
// and its part of dq. Parts are added in the order of the keys. How many there are follows from the shape alone, and so
// do all bits of the results.
#pragma once

#include "sinter/cpu/detail/attention_blocks.hpp"

namespace sinter::cpu_impl::detail {

template <class T, class Rule, bool OfMask = false>
struct attention_backward {
  using C = compute_type<T>;
  static constexpr index_t w = strip<C>, block = key_block<C>, rows_of_block = reverse_query_block<C>;

  const Rule& rule;
  heads_of<const T> q, k, v, y, g;
  const C* saved;
  ops::gradient_of<T> dq, dk, dv;
  C scale;
  thread_pool& pool;

  const ops::attention_extents& e = rule.e;
  index_t group = e.key_heads > 0 ? e.heads / e.key_heads : 0;
  index_t key_blocks = ceil_div(e.keys, block), key_rows = round_up(e.keys, w);
  index_t query_blocks = ceil_div(e.queries, rows_of_block), query_rows = round_up(e.queries, 2);
  index_t key_size = strips_size<C>(key_rows, e.size), key_size_across = key_rows * e.size;
  index_t value_size_across = key_rows * e.value_size;
  index_t query_size = strips_size<C>(query_rows, e.size), result_size = strips_size<C>(query_rows, e.value_size);
  index_t of_keys = key_size + key_size_across + value_size_across;  ///< packed, of a head
  index_t of_queries = query_size + result_size + round_up(query_rows, w);
  index_t parts = parts_of(e.batch * e.key_heads, e.keys);
  C *packed = nullptr, *query_parts = nullptr;
  bool *finite_keys = nullptr, *finite_queries = nullptr;

  bool needs_scores_gradient() const { return OfMask || dq || dk; }

  /// Parts of a head's keys: few, since each has room for the gradient of all queries.
  static index_t parts_of(index_t heads, index_t keys) {
    constexpr index_t tasks = 32, most = 8, least_keys = 256;
    const index_t wanted = ceil_div(tasks, heads > 0 ? heads : 1);
    return smaller(smaller(wanted, most), ceil_div(keys > 0 ? keys : 1, least_keys));
  }

  C* packed_keys(index_t place) const { return packed + place * (of_keys + group * of_queries); }
  C* packed_queries(index_t place, index_t in_group) const {
    return packed_keys(place) + of_keys + in_group * of_queries;
  }

  void compute() {
    const index_t heads = e.batch * e.key_heads, of_parts = dq && parts > 1 ? group * parts * query_size : 0;
    const index_t size = of_keys + group * of_queries;
    const index_t at_once = heads_at_once(heads, size * static_cast<index_t>(sizeof(C)), pool.size());
    const temporary_array<C> memory(at_once * (size + of_parts));
    const temporary_array<bool> are_finite(at_once * (key_blocks + group * query_blocks));
    packed = memory.data();
    query_parts = packed + at_once * size;
    finite_keys = are_finite.data();
    finite_queries = finite_keys + at_once * key_blocks;
    for (index_t first = 0; first < heads; first += at_once) {
      const index_t count = smaller(at_once, heads - first);
      pack_heads(first, count);
      pool.parallel_for(count * parts,
                        [&](index_t task) { run_part(first + task / parts, task / parts, task % parts); });
      if (of_parts > 0)
        pool.parallel_for(count * group * query_blocks, [&](index_t task) {
          add_parts(first + task / query_blocks / group, task / query_blocks / group, task / query_blocks % group,
                    task % query_blocks);
        });
    }
  }

 protected:
  static constexpr index_t score_size = rows_of_block * block;

  void pack_heads(index_t first, index_t count) const {
    const index_t each = key_blocks + group * query_blocks;
    pool.parallel_for(count * each, [&](index_t task) { pack(first + task / each, task / each, task % each); });
  }
  void pack(index_t head, index_t place, index_t task) const {
    const index_t batch = head / e.key_heads, h = head % e.key_heads;
    if (task < key_blocks) pack_keys(k.of(batch, h), v.of(batch, h), place, task);
    else pack_queries(batch, h, place, (task - key_blocks) / query_blocks, (task - key_blocks) % query_blocks);
  }
  void pack_keys(const matrix_of<const T>& keys, const matrix_of<const T>& values, index_t place, index_t b) const {
    const index_t first = b * block, count = smaller(block, e.keys - first), padded = round_up(count, w);
    C *const rows = packed_keys(place), *const across = rows + key_size,
             *const values_across = across + key_size_across;
    const auto to = strips_of<C>{rows, key_rows * w}.from_row(first);
    finite_keys[place * key_blocks + b] = pack_rows(keys.from_row(first), count, padded, e.size, C(1), to);
    C* const some = scratch<C>(0, static_cast<std::size_t>(strips_size<C>(w, e.value_size)));
    for (index_t i = 0; i < padded; i += w) {
      const auto lines = to.from_row(i);
      transpose_lines<C>({lines.data, lines.step}, e.size, across + (first + i) * e.size);
      if (!needs_scores_gradient()) continue;
      pack_rows(values.from_row(first + i), smaller(w, count - i), w, e.value_size, C(1), strips_of<C>{some, w * w});
      transpose_lines<C>({some, w * w}, e.value_size, values_across + (first + i) * e.value_size);
    }
  }
  void pack_queries(index_t batch, index_t key_head, index_t place, index_t in_group, index_t b) const {
    const index_t head = key_head * group + in_group, first = b * rows_of_block;
    const index_t count = smaller(rows_of_block, e.queries - first), padded = round_up(count, 2);
    C *const rows = packed_queries(place, in_group), *const gradients = rows + query_size;
    C* const mean = gradients + result_size;
    bool finite = pack_rows(q.of(batch, head).from_row(first), count, padded, e.size, scale,
                            strips_of<C>{rows, query_rows * w}.from_row(first));
    const auto from = g.of(batch, head).from_row(first), results = y.of(batch, head).from_row(first);
    const strips_of<C> to{gradients, query_rows * w};
    for (index_t r = 0; r < padded; ++r) {
      const C factor = r < count ? row_saved(batch, head, first + r)[1] : C(0);
      const auto row = to.from_row(first + r);
      if (factor == C(0)) {
        for (index_t c = 0; c < e.value_size; c += w) std::memset(row.column(c), 0, sizeof(C) * std::size_t{w});
        mean[first + r] = 0;
        continue;
      }
      finite &= pack_rows(from.from_row(r), 1, 1, e.value_size, factor, row);
      strip_vector<C> sum(C(0));
      for (index_t c = 0; c < e.value_size; c += strip_lanes<C>)
        sum = math::fma(read_some(results.data + r * results.row, results.column, c, e.value_size),
                        strip_vector<C>::load(row.column(c)), sum);
      mean[first + r] = math::hsum(sum);
    }
    finite_queries[(place * group + in_group) * query_blocks + b] = finite;
  }
  const C* row_saved(index_t batch, index_t head, index_t query) const {
    return saved + 2 * ((batch * e.heads + head) * e.queries + query);
  }

  /// What a task works on.
  struct work {
    index_t batch, key_head, place;
    C *scores, *gradients;  ///< of a block: strips of rows_of_block rows
    C *keys, *values;       ///< dk and dv of a block of keys
    C* queries;             ///< dq of all queries of the group
    C* mask = nullptr;      ///< the gradient of the mask, where that is asked for
    index_t mask_query = 0, mask_key = 0;
  };

  void run_part(index_t head, index_t place, index_t part) const {
    const index_t of_all_queries = group * query_size, keys_gradient = strips_size<C>(block, e.size);
    const index_t values_gradient = strips_size<C>(block, e.value_size);
    const bool has_own_queries = dq && parts == 1;
    C* const room = scratch<C>(0, static_cast<std::size_t>(2 * score_size + keys_gradient + values_gradient +
                                                           (has_own_queries ? of_all_queries : 0)));
    work t{head / e.key_heads, head % e.key_heads,    place,   room,
           room + score_size,  room + 2 * score_size, nullptr, nullptr};
    t.values = t.keys + keys_gradient;
    t.queries = has_own_queries ? t.values + values_gradient : query_parts + (place * parts + part) * of_all_queries;
    if (dq) std::memset(t.queries, 0, static_cast<std::size_t>(of_all_queries) * sizeof(C));

    const index_t end = share_begin(key_blocks, parts, part + 1);
    for (index_t b = share_begin(key_blocks, parts, part); b < end; ++b) {
      std::memset(t.keys, 0, static_cast<std::size_t>(keys_gradient + values_gradient) * sizeof(C));
      for (index_t h = 0; h < group; ++h)
        for (index_t of_rows = 0; of_rows < query_blocks; ++of_rows) run_block(t, b, h, of_rows);
      const index_t first = b * block, count = smaller(block, e.keys - first);
      if (dk)
        write_rows<T>(strips_of<const C>{t.keys, block * w}, C(1), dk.to.of(t.batch, t.key_head).from_row(first), count,
                      e.size, dk.add);
      if (dv)
        write_rows<T>(strips_of<const C>{t.values, block * w}, C(1), dv.to.of(t.batch, t.key_head).from_row(first),
                      count, e.value_size, dv.add);
    }
    if (has_own_queries)
      for (index_t h = 0; h < group; ++h)
        write_rows<T>(strips_of<const C>{t.queries + h * query_size, query_rows * w}, scale,
                      dq.to.of(t.batch, t.key_head * group + h), e.queries, e.size, dq.add);
  }

  /// Rows that have scores in a strip of keys, hulls over the panels.
  struct rows_seen {
    index_t begin = rows_of_block, end = 0;
  };

  void run_block(const work& t, index_t b, index_t in_group, index_t of_rows) const {
    const index_t head = t.key_head * group + in_group, first = of_rows * rows_of_block;
    const index_t rows = smaller(rows_of_block, e.queries - first), key = b * block;
    const key_range all = rule.keys(t.batch, head, first, first + rows);
    const index_t low = all.begin > key ? (all.begin - key) / w * w : 0, high = smaller(all.end - key, block);
    if (low >= high) return;
    const auto panels = row_panels::of<C>(rows);
    const bool finite = finite_queries[(t.place * group + in_group) * query_blocks + of_rows];
    const C *const q_rows = packed_queries(t.place, in_group), *const g_rows = q_rows + query_size;
    const C *const k_rows = packed_keys(t.place), *const k_across = k_rows + key_size;
    const C* const v_across = k_across + key_size_across;
    rows_seen seen_rows[std::size_t{block / w}];

    for (index_t p = 0; p < panels.count; ++p) {
      const index_t begin = panels.begin(p), height = panels.end(p) - begin, last = panels.last_row(p);
      const key_range seen = rule.keys(t.batch, head, first + begin, first + last);
      const index_t from = seen.begin > key ? (seen.begin - key) / w * w : 0, to = smaller(seen.end - key, block);
      for (index_t s = low; s < high; s += w) {
        C *const x = t.scores + s * rows_of_block + begin * w, *const dx = t.gradients + s * rows_of_block + begin * w;
        if (s < from || s >= to) {
          std::memset(x, 0, static_cast<std::size_t>(height * w) * sizeof(C));
          std::memset(dx, 0, static_cast<std::size_t>(height * w) * sizeof(C));
          continue;
        }
        rows_seen& r = seen_rows[s / w];
        if (begin < r.begin) r.begin = begin;
        r.end = panels.end(p);
        row_tile<C>(height, false)(e.size, q_rows + (first + begin) * w, query_rows * w, k_across + (key + s) * e.size,
                                   x, false);
        if (needs_scores_gradient())
          row_tile<C>(height, false)(e.value_size, g_rows + (first + begin) * w, query_rows * w,
                                     v_across + (key + s) * e.value_size, dx, false);
      }
      if (from >= to) continue;
      for (index_t r = begin; r < panels.end(p); ++r) {
        const score_row<C> row{t.scores + r * w, rows_of_block * w, from, round_up(to, w), key};
        const score_row<C> gradients{t.gradients + r * w, rows_of_block * w, from, round_up(to, w), key};
        if (r < rows) {
          reverse_scores<OfMask>(rule, rule.at(t.batch, head, first + r), row, gradients.data,
                                 row_saved(t.batch, head, first + r), g_rows[result_size + first + r], key_blocks == 1);
          if constexpr (OfMask) add_to_mask(gradients, t.mask + (first + r) * t.mask_query, t.mask_key);
        } else {
          row.clear();
          gradients.clear();
        }
      }
      if (dq) {
        const strips_of<const C> left{t.gradients + from * rows_of_block + begin * w, rows_of_block * w};
        const auto right = strips_of<const C>{k_rows, key_rows * w}.from_row(key + from);
        const auto sum = strips_of<C>{t.queries + in_group * query_size, query_rows * w}.from_row(first + begin);
        if (finite_keys[t.place * key_blocks + b]) multiply_rows<C>(height, to - from, e.size, left, right, sum, true);
        else multiply_rows_with_care<C>(height, to - from, e.size, left, right, sum);
      }
    }

    for (index_t s = low; s < high; s += w) {
      const index_t begin = seen_rows[s / w].begin, end = seen_rows[s / w].end;
      if (begin >= end) continue;
      const auto add = [&](const C* left, const C* right, index_t size, C* to) {
        const C* const a = left + s * rows_of_block + begin * w;
        const auto b_rows = strips_of<const C>{right, query_rows * w}.from_row(first + begin);
        const auto sum = strips_of<C>{to, block * w}.from_row(s);
        if (finite) multiply_columns<C>(end - begin, size, a, b_rows, sum);
        else multiply_columns_with_care<C>(end - begin, size, a, b_rows, sum);
      };
      if (dv) add(t.scores, g_rows, e.value_size, t.values);
      if (dk) add(t.gradients, q_rows, e.size, t.keys);
    }
  }

  void add_to_mask(const score_row<C>& row, C* to, index_t step) const {
    constexpr index_t lanes = strip_lanes<C>;
    const index_t end = smaller(row.end, e.keys - row.first);
    for (index_t c = row.begin; c < end; c += lanes) {
      const C* const from = row.data + c / w * row.step + c % w;
      C* const place = to + (row.first + c) * step;
      if (step == 1 && c + lanes <= end) (strip_vector<C>::load(place) + strip_vector<C>::load(from)).store(place);
      else
        for (index_t i = 0; i < lanes && c + i < end; ++i) place[i * step] += from[i];
    }
  }

  void add_parts(index_t head, index_t place, index_t in_group, index_t b) const {
    const index_t first = b * rows_of_block, rows = smaller(rows_of_block, e.queries - first);
    const auto to = dq.to.of(head / e.key_heads, head % e.key_heads * group + in_group).from_row(first);
    for (index_t part = 0; part < parts; ++part) {
      const C* const from = query_parts + (place * parts + part) * group * query_size + in_group * query_size;
      write_rows<T>(strips_of<const C>{from, query_rows * w}.from_row(first), scale, to, rows, e.size,
                    dq.add || part > 0);
    }
  }
};

}  // namespace sinter::cpu_impl::detail
