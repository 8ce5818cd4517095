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

/// The sum of term(place, c) over the places of each id v among n: the thread of the first of them, and of column c,
/// adds all, in order. It goes to row v of `to`, which it is added to; or by_place to that of the first place, where
/// `rows` then has v, and -1 at the other places.
template <class T, class Term>
struct id_sums_body {
  table_view<T> to;
  splitter by_columns;
  bool by_frequency;
  index_t n, table_rows;
  const std::uint64_t* keys;
  const std::uint32_t* places;
  Term term;
  bool by_place;
  std::int64_t* rows;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    each_element(g, n * to.columns, [&](index_t i) {
      index_t c = i;
      const index_t first = by_columns(c);
      const std::uint64_t v = keys[first];
      const bool is_first = v != static_cast<std::uint64_t>(table_rows) && (first == 0 || keys[first - 1] != v);
      if (by_place && c == 0) rows[first] = is_first ? static_cast<std::int64_t>(v) : -1;
      C sum = 0;
      if (is_first) {
        index_t k = first;
        for (; k < n && keys[k] == v; ++k) sum += term(static_cast<index_t>(places[k]), c);
        if (by_frequency) sum /= static_cast<C>(k - first);
      } else if (!by_place) {
        return;
      }
      put_or_add(to.at(by_place ? first : static_cast<index_t>(v), c), sum, !by_place);
    });
  }
};

/// See ops::move_rows; a thread per element.
template <class T>
struct move_rows_body {
  ops::move_rows::way to;
  table_view<T> table;
  splitter by_columns;
  index_t n;
  const std::int64_t* rows;
  T* values;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using way = ops::move_rows::way;
    each_element(g, n * table.columns, [&](index_t i) {
      index_t c = i;
      const index_t v = rows[by_columns(c)];
      if (to == way::take) values[i] = v < 0 ? T(0) : table.at(v, c);
      else if (v >= 0) put_or_add(table.at(v, c), static_cast<compute_type<T>>(values[i]), to == way::add);
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

/// Row v of `to` += the sum of term(place, c) over the places of v; with `rows` as id_sums_body says of by_place, for a
/// table of so many rows.
template <device D, class T, class Term>
void sum_at_ids(const char* what, const std::int64_t* ids, index_t n, index_t left_out, const table_view<T>& to,
                bool by_frequency, const Term& term, index_t table_rows, std::int64_t* rows = nullptr) {
  const index_t sums = n * to.columns;
  if (sums == 0) return;
  const auto pairs = sorted_ids<D>(what, ids, n, table_rows, left_out);
  launch_on<D>({what, &n, 1},
               id_sums_body<T, Term>{to, splitter(to.columns, sums), by_frequency, n, table_rows, pairs.keys(),
                                     pairs.values(), term, rows != nullptr, rows},
               {blocks_for(sums, block_threads), 0});
}

/// The sums of term(place, c) at n ids, as a row_gradient of n rows.
template <device D, class T, class Term>
row_gradient<T, D> sums_by_id(const char* what, const std::int64_t* ids, index_t n, index_t rows, index_t columns,
                              index_t left_out, bool by_frequency, const Term& term) {
  const row_gradient<T, D> g{tensor<std::int64_t, 1, D>::uninitialized({{columns > 0 ? n : 0}}),
                             tensor<T, 2, D>::uninitialized({{columns > 0 ? n : 0, columns}})};
  sum_at_ids<D>(what, ids, n, left_out, view_of_table(g.values), by_frequency, term, rows,
                sinter::detail::access::data(g.rows));
  return g;
}

/// Adds to the gradient of the table that is operand 0 the sums of term(place, c) at n ids.
template <class Backward, class Term>
void give_sums_at_ids(const char* what, const Backward& b, const std::int64_t* ids, index_t n, index_t left_out,
                      bool by_frequency, const Term& term) {
  using T = typename Backward::value_type;
  using D = typename Backward::device_type;
  if (auto* const table = sinter::detail::rows_in<T, D>(b.template source<0>()))
    return table->add_rows(
        sums_by_id<D, T>(what, ids, n, table->shape[0], table->shape[1], left_out, by_frequency, term));
  const auto to = view_of_table(b.template sum_of<0>());
  sum_at_ids<D>(what, ids, n, left_out, to, by_frequency, term, to.rows);
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
    using T = typename Backward::value_type;
    const auto& ids = b.template operand<1>();
    const auto& g = b.gradient();
    cuda_impl::give_sums_at_ids("backward of embedding", b, access::data(ids), ids.numel(), op.padding, op.by_frequency,
                                cuda_impl::row_term<T>{access::data(g), g.shape()[Backward::rank - 1]});
  }
};

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::move_rows, D> {
  template <class T>
  static void run(const ops::move_rows& op, const tensor<T, 2, D>& table, const tensor<std::int64_t, 1, D>& rows,
                  const tensor<T, 2, D>& values) {
    const index_t n = values.shape()[0], columns = values.shape()[1], elements = n * columns;
    if (elements == 0) return;
    cuda_impl::launch_on<D>(
        {"rows of a table", &n, 1},
        cuda_impl::move_rows_body<T>{op.to, cuda_impl::view_of_table(table), cuda_impl::splitter(columns, elements), n,
                                     access::data(rows), access::data(values)},
        {cuda_impl::blocks_for(elements, cuda_impl::block_threads), 0});
  }
};

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::sum_rows, D> {
  template <class T>
  static row_gradient<T, D> run(const ops::sum_rows& op, const tensor<std::int64_t, 1, D>& ids,
                                const tensor<T, 2, D>& values) {
    const index_t columns = values.shape()[1];
    return cuda_impl::sums_by_id<D, T>("sum of row gradients", access::data(ids), ids.numel(), op.rows, columns,
                                       no_padding, false, cuda_impl::row_term<T>{access::data(values), columns});
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
