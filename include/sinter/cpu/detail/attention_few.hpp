// sinter/cpu/detail/attention_few.hpp: attention of few queries: keys and values are read once, where they are.
//
// What decoding does: a product of as many multiply-adds as there are numbers to read. The queries of all heads that
// share keys go together. Long rows of keys are cut into parts, which are merged by their greatest scores and sums; how
// many there are follows from the shape alone.
#pragma once

#include "sinter/cpu/detail/attention_blocks.hpp"

namespace sinter::cpu_impl::detail {

/// A block of rows as the kernels read them: whole vectors side by side, in memory or copied.
template <class T>
struct rows_in_vectors {
  using C = compute_type<T>;
  const C* data;
  index_t step;

  rows_in_vectors(const matrix_of<const T>& from, index_t rows, index_t columns, C* room) {
    constexpr index_t lanes = strip_lanes<C>;
    if constexpr (std::is_same_v<T, C>) {
      if (from.column == 1 && columns % lanes == 0) {
        data = from.data;
        step = from.row;
        return;
      }
    }
    data = room;
    step = round_up(columns, lanes);
    for (index_t r = 0; r < rows; ++r)
      for (index_t c = 0; c < columns; c += lanes)
        read_some(from.data + r * from.row, from.column, c, columns).store(room + r * step + c);
  }
};

template <class T, class Rule>
struct attention_of_few {
  using C = compute_type<T>;
  using V = strip_vector<C>;
  static constexpr index_t lanes = strip_lanes<C>, block = key_block<C>, most_rows = 8, at_once = 4;

  const Rule& rule;
  heads_of<const T> q, k, v;
  heads_of<T> y;
  C* saved;
  C scale;
  thread_pool& pool;

  const ops::attention_extents& e = rule.e;
  index_t group = e.heads / e.key_heads, rows = group * e.queries;  ///< that share a head of keys
  index_t size = round_up(e.size, lanes), value_size = round_up(e.value_size, lanes);
  index_t parts = parts_of(e.batch * e.key_heads, e.keys);
  softmax_state<C>* states = nullptr;
  C* results = nullptr;

  static bool suits(const ops::attention_extents& e) {
    return e.key_heads > 0 && e.heads / e.key_heads * e.queries <= most_rows;
  }
  static index_t parts_of(index_t heads, index_t keys) {
    constexpr index_t tasks = 64, least_keys = 512;
    const index_t wanted = ceil_div(tasks, heads > 0 ? heads : 1);
    return smaller(wanted, ceil_div(keys > 0 ? keys : 1, least_keys));
  }

  void compute() {
    const index_t heads = e.batch * e.key_heads, of_part = rows * value_size;
    const temporary_array<softmax_state<C>> all_states(heads * parts * rows);
    const temporary_array<C> all_results(heads * parts * of_part);
    states = all_states.data();
    results = all_results.data();
    pool.parallel_for(heads * parts, [&](index_t task) {
      attend(task / parts, task % parts, states + task * rows, results + task * of_part);
    });
    pool.parallel_for(heads, [&](index_t head) { merge(head); });
  }

 private:
  index_t head_of(index_t key_head, index_t row) const { return key_head * group + row / e.queries; }

  void attend(index_t head, index_t part, softmax_state<C>* state, C* result) const {
    const index_t batch = head / e.key_heads, key_head = head % e.key_heads;
    C* const queries = scratch<C>(0, static_cast<std::size_t>(rows * (size + block + value_size) +
                                                              block * (size > value_size ? size : value_size)));
    C *const scores = queries + rows * size, *const before = scores + rows * block,
             *const room = before + rows * value_size;
    const V factor(scale);
    for (index_t r = 0; r < rows; ++r) {
      const auto from = q.of(batch, head_of(key_head, r)).from_row(r % e.queries);
      for (index_t c = 0; c < size; c += lanes)
        (read_some(from.data, from.column, c, e.size) * factor).store(queries + r * size + c);
      state[r] = {};
    }
    std::memset(result, 0, static_cast<std::size_t>(rows * value_size) * sizeof(C));

    key_range all{e.keys, 0};
    for (index_t h = 0; h < group; ++h) {
      const key_range one = rule.keys(batch, key_head * group + h, 0, e.queries);
      all = {smaller(all.begin, one.begin), one.end > all.end ? one.end : all.end};
    }
    const index_t blocks = ceil_div(e.keys, block), end = share_begin(blocks, parts, part + 1);
    for (index_t b = share_begin(blocks, parts, part); b < end; ++b) {
      const index_t first = b * block, count = smaller(block, e.keys - first);
      if (first + count <= all.begin || first >= all.end) continue;
      const rows_in_vectors<T> keys(k.of(batch, key_head).from_row(first), count, e.size, room);
      in_groups([&]<int N>(index_t r) { score<N>(queries + r * size, keys, count, scores + r * block); });
      for (index_t r = 0; r < rows; ++r) {
        const score_row<C> row{scores + r * block, strip<C>, 0, round_up(count, strip<C>), first};
        const C again = take_scores(rule, rule.at(batch, head_of(key_head, r), r % e.queries), row, state[r]);
        if (again != C(1)) multiply(result + r * value_size, again);
      }
      const rows_in_vectors<T> values(v.of(batch, key_head).from_row(first), count, e.value_size, room);
      std::memcpy(before, result, static_cast<std::size_t>(rows * value_size) * sizeof(C));
      in_groups([&]<int N>(index_t r) { add<N>(scores + r * block, values, count, result + r * value_size); });
      finite_check<C> watch;
      for (index_t i = 0; i < rows * value_size; i += lanes) watch.see(V::load(result + i));
      if (!watch.all()) add_with_care(before, scores, values, count, result);
    }
  }

  /// f.operator()<N>(row) for all rows, N at once.
  template <class F>
  void in_groups(const F& f) const {
    index_t r = 0;
    for (; r + at_once <= rows; r += at_once) f.template operator()<at_once>(r);
    for (; r < rows; ++r) f.template operator()<1>(r);
  }

  template <int N>
  void score(const C* queries, const rows_in_vectors<T>& keys, index_t count, C* scores) const {
    for (index_t j = 0; j < count; ++j) {
      const C* const key = keys.data + j * keys.step;
      V sum[std::size_t{N}];
      for (int n = 0; n < N; ++n) sum[n] = V(C(0));
      for (index_t c = 0; c < size; c += lanes) {
        const V x = V::load(key + c);
        for (int n = 0; n < N; ++n) sum[n] = math::fma(x, V::load(queries + n * size + c), sum[n]);
      }
      for (int n = 0; n < N; ++n) scores[n * block + j] = math::hsum(sum[n]);
    }
    for (index_t j = count; j < round_up(count, strip<C>); ++j)
      for (int n = 0; n < N; ++n) scores[n * block + j] = C(0);
  }
  template <int N>
  void add(const C* weights, const rows_in_vectors<T>& values, index_t count, C* result) const {
    index_t c = 0;
    for (; c + 4 * lanes <= value_size; c += 4 * lanes) add_columns<N, 4>(weights, values, count, result, c);
    for (; c < value_size; c += lanes) add_columns<N, 1>(weights, values, count, result, c);
  }
  template <int N, int Columns>
  void add_columns(const C* weights, const rows_in_vectors<T>& values, index_t count, C* result, index_t c) const {
    V sum[std::size_t{N}][std::size_t{Columns}];
    for (int n = 0; n < N; ++n)
      for (int i = 0; i < Columns; ++i) sum[n][i] = V::load(result + n * value_size + c + i * lanes);
    for (index_t j = 0; j < count; ++j) {
      const C* const value = values.data + j * values.step + c;
      V x[std::size_t{Columns}];
      for (int i = 0; i < Columns; ++i) x[i] = V::load(value + i * lanes);
      for (int n = 0; n < N; ++n) {
        const V p(weights[n * block + j]);
        for (int i = 0; i < Columns; ++i) sum[n][i] = math::fma(p, x[i], sum[n][i]);
      }
    }
    for (int n = 0; n < N; ++n)
      for (int i = 0; i < Columns; ++i) sum[n][i].store(result + n * value_size + c + i * lanes);
  }
  /// A value that is not finite meets no weight of 0.
  SINTER_COLD void add_with_care(const C* before, const C* weights, const rows_in_vectors<T>& values, index_t count,
                                 C* result) const {
    std::memcpy(result, before, static_cast<std::size_t>(rows * value_size) * sizeof(C));
    for (index_t r = 0; r < rows; ++r)
      for (index_t j = 0; j < count; ++j)
        if (const C p = weights[r * block + j]; p != C(0))
          for (index_t c = 0; c < e.value_size; ++c) result[r * value_size + c] += p * values.data[j * values.step + c];
  }
  void multiply(C* row, C factor) const {
    const V by(factor);
    for (index_t c = 0; c < value_size; c += lanes) (V::load(row + c) * by).store(row + c);
  }

  void merge(index_t head) const {
    const index_t batch = head / e.key_heads, key_head = head % e.key_heads;
    for (index_t r = 0; r < rows; ++r) {
      const auto state = [&](index_t part) -> softmax_state<C>& { return states[(head * parts + part) * rows + r]; };
      const auto result = [&](index_t part) { return results + ((head * parts + part) * rows + r) * value_size; };
      C greatest = state(0).greatest, sum = 0;
      for (index_t p = 1; p < parts; ++p) greatest = math::max(greatest, state(p).greatest);
      for (index_t p = 0; p < parts; ++p) {
        const C of_part = math::hsum(state(p).sum);
        if (of_part == C(0)) continue;  // it sees nothing there
        const C factor = parts == 1 ? C(1) : math::exp(state(p).greatest - greatest);
        sum += of_part * factor;
        if (factor != C(1)) multiply(result(p), factor);
        if (p == 0) continue;
        for (index_t c = 0; c < value_size; c += lanes)
          (V::load(result(0) + c) + V::load(result(p) + c)).store(result(0) + c);
      }
      const index_t h = head_of(key_head, r), i = r % e.queries;
      const C factor = keep_row(greatest, sum, saved + 2 * ((batch * e.heads + h) * e.queries + i));
      const auto to = y.of(batch, h).from_row(i);
      write_row<T>(result(0), strip<C>, factor, to.data, to.column, e.value_size, false);
    }
  }
};

}  // namespace sinter::cpu_impl::detail
