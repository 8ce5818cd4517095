// sinter/cuda/embedding.hpp: rows of a table on GPUs: looked up, and in backward summed id by id, without atomics.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/pixels.hpp"
#include "sinter/cuda/radix_sort.hpp"
#include "sinter/ops/embedding.hpp"

namespace sinter::cuda_impl {

/// A matrix in any layout: element (v, c) is data[v row_stride + c column_stride].
template <class T>
struct table_view {
  T* data;
  index_t rows, columns, row_stride, column_stride;
  SINTER_WORD T& at(index_t v, index_t c) const { return data[v * row_stride + c * column_stride]; }
  SINTER_WORD bool has(index_t v) const { return v >= 0 && v < rows; }
};
template <class T, device D>
table_view<T> view_of_table(const tensor<T, 2, D>& x) {
  return {sinter::detail::access::data(x), x.shape()[0], x.shape()[1], x.strides()[0], x.strides()[1]};
}

/// 16 bytes of a row.
struct alignas(16) row_word {
  std::uint64_t half[2];
};

/// y[i] = table[ids[i]], zeros where there is no such row: a thread per element, which is a word where rows allow.
template <class W>
struct look_up_body {
  table_view<const W> table;
  splitter by_columns;
  const std::int64_t* ids;
  index_t n;
  W* y;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, n * table.columns, [&](index_t i) {
      index_t c = i;
      const index_t v = ids[by_columns(c)];
      y[i] = table.has(v) ? table.at(v, c) : W{};
    });
  }
};

/// Ids as keys of a sort, with their places; those without a sum get the key after the last row.
struct id_keys_body {
  const std::int64_t* ids;
  index_t n, rows, left_out;
  std::uint64_t* keys;
  std::uint32_t* places;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, n, [&](index_t i) {
      const index_t v = ids[i];
      keys[i] = static_cast<std::uint64_t>(v >= 0 && v < rows && v != left_out ? v : rows);
      places[i] = static_cast<std::uint32_t>(i);
    });
  }
};

/// Row v of `to` += the sum of term(place, c) over the places of v: the thread of the first of them, and of column c,
/// adds all, in order.
template <class T, class Term>
struct id_sums_body {
  table_view<T> to;
  splitter by_columns;
  bool by_frequency;
  index_t n;
  const std::uint64_t* keys;
  const std::uint32_t* places;
  Term term;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    each_element(g, n * to.columns, [&](index_t i) {
      index_t c = i;
      const index_t first = by_columns(c);
      const std::uint64_t v = keys[first];
      if (v == static_cast<std::uint64_t>(to.rows) || (first > 0 && keys[first - 1] == v)) return;
      C sum = 0;
      index_t k = first;
      for (; k < n && keys[k] == v; ++k) sum += term(static_cast<index_t>(places[k]), c);
      if (by_frequency) sum /= static_cast<C>(k - first);
      put_or_add(to.at(static_cast<index_t>(v), c), sum, true);
    });
  }
};

/// Row c of what is looked up.
template <class T>
struct row_term {
  const T* g;
  index_t columns;
  SINTER_WORD compute_type<T> operator()(index_t place, index_t c) const { return g[place * columns + c]; }
};

/// Scales the rows that op says; a block for each, that of the first place of its id.
template <class T>
struct renorm_body {
  using C = compute_type<T>;
  using state = ops::renorm_op::state;
  ops::renorm_op op;
  table_view<T> table;
  index_t n;
  const std::uint64_t* keys;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    state* const parts = g.template shared<state>();
    for (index_t i = g.block(); i < n; i += g.blocks()) {
      const std::uint64_t key = keys[i];
      if (key == static_cast<std::uint64_t>(table.rows) || (i > 0 && keys[i - 1] == key)) continue;
      const auto v = static_cast<index_t>(key);
      state part = ops::renorm_op::squares::identity();
      for (index_t c = g.thread(); c < table.columns; c += g.threads())
        op.push(part, static_cast<double>(static_cast<C>(table.at(v, c))));
      parts[g.thread()] = part;
      for (int step = g.threads() / 2; step > 0; step /= 2) {
        g.sync();
        if (g.thread() < step) parts[g.thread()] = op.merge(parts[g.thread()], parts[g.thread() + step]);
      }
      g.sync();
      const C factor = op.factor(static_cast<C>(op.finish(parts[0])));
      g.sync();
      if (factor == 1) continue;
      for (index_t c = g.thread(); c < table.columns; c += g.threads()) {
        T& x = table.at(v, c);
        x = static_cast<T>(static_cast<C>(x) * factor);
      }
    }
  }
};

/// Ids in order, each with its place; those without a row at the end, as rows.
template <device D>
radix_sorter<D> sorted_ids(const char* what, const std::int64_t* ids, index_t n, index_t rows, index_t left_out) {
  radix_sorter<D> pairs(n);
  launch_on<D>({what, &n, 1}, id_keys_body{ids, n, rows, left_out, pairs.keys(), pairs.values()},
               {blocks_for(n, block_threads), 0});
  int bits = 0;
  while (rows >> bits > 0) ++bits;
  pairs.sort(n, bits);
  return pairs;
}

/// Row v of `to` += the sum of term(place, c) over the places of v.
template <device D, class T, class Term>
void sum_at_ids(const char* what, const std::int64_t* ids, index_t n, index_t left_out, const table_view<T>& to,
                bool by_frequency, const Term& term) {
  const index_t sums = n * to.columns;
  if (sums == 0) return;
  const auto pairs = sorted_ids<D>(what, ids, n, to.rows, left_out);
  launch_on<D>(
      {what, &n, 1},
      id_sums_body<T, Term>{to, splitter(to.columns, sums), by_frequency, n, pairs.keys(), pairs.values(), term},
      {blocks_for(sums, block_threads), 0});
}

template <device D, class W>
void look_up(const table_view<const W>& table, const std::int64_t* ids, index_t n, W* y) {
  const index_t elements = n * table.columns;
  launch_on<D>({"embedding", &n, 1}, look_up_body<W>{table, splitter(table.columns, elements), ids, n, y},
               {blocks_for(elements, block_threads), 0});
}
template <device D, class T>
void look_up_rows(const table_view<T>& t, const std::int64_t* ids, index_t n, T* y) {
  constexpr index_t lanes = sizeof(row_word) / sizeof(T);
  const auto at = reinterpret_cast<std::uintptr_t>(t.data) | reinterpret_cast<std::uintptr_t>(y);
  if (n * t.columns == 0) return;
  if (t.column_stride == 1 && t.columns % lanes == 0 && t.row_stride % lanes == 0 && at % sizeof(row_word) == 0)
    look_up<D, row_word>(
        {reinterpret_cast<const row_word*>(t.data), t.rows, t.columns / lanes, t.row_stride / lanes, 1}, ids, n,
        reinterpret_cast<row_word*>(y));
  else look_up<D, T>({t.data, t.rows, t.columns, t.row_stride, t.column_stride}, ids, n, y);
}

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::embedding_op, D> {
  template <class T, int R, class Epilogue, class Ids>
  static void forward(const ops::embedding_op&, const tensor<T, R, D>& y, const Epilogue*, const tensor<T, 2, D>& table,
                      const Ids& ids) {
    cuda_impl::look_up_rows<D>(cuda_impl::view_of_table(table), access::data(ids), ids.numel(), access::data(y));
  }
  template <class Backward>
  static void reverse(const ops::embedding_op& op, const Backward& b) {
    const auto& ids = b.template operand<1>();
    const auto to = cuda_impl::view_of_table(b.template sum_of<0>());
    using T = std::remove_pointer_t<decltype(to.data)>;
    cuda_impl::sum_at_ids<D>("backward of embedding", access::data(ids), ids.numel(), op.padding, to, op.by_frequency,
                             cuda_impl::row_term<T>{access::data(b.gradient()), to.columns});
  }
};

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::renorm_op, D> {
  template <class T, class Ids>
  static bool run(const ops::renorm_op& op, const tensor<T, 2, D>& table, const Ids& ids) {
    using body = cuda_impl::renorm_body<T>;
    const index_t n = ids.numel();
    if (n == 0) return false;
    const auto rows = cuda_impl::view_of_table(table);
    const auto pairs = cuda_impl::sorted_ids<D>("renorm", access::data(ids), n, rows.rows, no_padding);
    cuda_impl::launch_on<D>({"renorm", &n, 1}, body{op, rows, n, pairs.keys()},
                            {cuda_impl::blocks_for(n), sizeof(ops::renorm_op::state) * cuda_impl::block_threads});
    return true;
  }
};

}  // namespace sinter::detail
