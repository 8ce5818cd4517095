// sinter/cpu/embedding.hpp: rows of a table on the host: looked up, and in backward summed id by id.
#pragma once

#include <algorithm>

#include "sinter/cpu/rows.hpp"
#include "sinter/ops/embedding.hpp"

namespace sinter::cpu_impl {

/// A matrix in any layout: element (v, c) is data[v row_stride + c column_stride].
template <class T>
struct table_view {
  using C = compute_type<T>;
  T* data;
  index_t rows, columns, row_stride, column_stride;

  T* row(index_t v) const { return data + v * row_stride; }
  void clear(index_t v, index_t begin, index_t end) const {
    if (column_stride == 1) return static_cast<void>(std::fill(row(v) + begin, row(v) + end, T(0)));
    for (index_t c = begin; c < end; ++c) row(v)[c * column_stride] = T(0);
  }
  template <class Place>
  SINTER_INLINE vector<T> load(index_t v, Place c) const {
    if (column_stride == 1) return load_row<T>(row(v), c, columns);
    alignas(64) C value[lanes] = {};
    for (index_t k = 0; k < lanes && c.first + k < columns; ++k)
      value[k] = static_cast<C>(row(v)[(c.first + k) * column_stride]);
    return math::read<lanes>(value);
  }
  template <class Place>
  SINTER_INLINE void put(index_t v, Place c, bool add, vector<T> x) const {
    if (add) x = load(v, c) + x;
    if (column_stride == 1) return store_row(row(v), c, columns, x);
    alignas(64) C value[lanes];
    math::write(value, x);
    for (index_t k = 0; k < lanes && c.first + k < columns; ++k)
      row(v)[(c.first + k) * column_stride] = static_cast<T>(value[k]);
  }
};
template <class T, device D>
table_view<T> view_of_table(const tensor<T, 2, D>& x) {
  return {x.data(), x.shape()[0], x.shape()[1], x.strides()[0], x.strides()[1]};
}

/// f(place of columns, number of vectors) for the columns in [begin, end).
template <class F>
SINTER_INLINE void each_columns(index_t begin, index_t end, const F& f) {
  index_t c = begin;
  for (; c + 4 * lanes <= end; c += 4 * lanes) f(inside{c}, std::integral_constant<int, 4>());
  for (; c + lanes <= end; c += lanes) f(inside{c}, std::integral_constant<int, 1>());
  if (c < end) f(at_end{c}, std::integral_constant<int, 1>());
}

/// N vectors of columns from c on: the sums of term(i, columns) over i < n, times scale, go to put(columns, sum). They
/// are added up in runs, so that few additions follow one another.
template <class T, int N, class Place, class Term, class Put>
SINTER_INLINE void sum_terms(index_t n, Place c, compute_type<T> scale, const Term& term, const Put& put) {
  constexpr index_t run = 512;
  vector<T> total[std::size_t{N}];
  for (int k = 0; k < N; ++k) total[k] = vector<T>(compute_type<T>(0));
  for (index_t i = 0; i < n;) {
    vector<T> part[std::size_t{N}];
    for (int k = 0; k < N; ++k) part[k] = vector<T>(compute_type<T>(0));
    for (const index_t stop = std::min(i + run, n); i < stop; ++i)
      for (int k = 0; k < N; ++k) part[k] = part[k] + term(i, Place{c.first + k * lanes});
    for (int k = 0; k < N; ++k) total[k] = total[k] + part[k];
  }
  for (int k = 0; k < N; ++k) put(Place{c.first + k * lanes}, total[k] * vector<T>(scale));
}

/// Elements of a task, about.
inline constexpr index_t table_task = 16384;
inline index_t rows_of_task(index_t columns) {
  return std::max<index_t>(table_task / std::max<index_t>(columns, 1), 1);
}

/// y[i] = table[ids[i]], rows of y dense.
template <class T>
void look_up(const table_view<T>& table, const std::int64_t* ids, index_t n, T* y, thread_pool& pool) {
  const index_t columns = table.columns, grain = rows_of_task(columns);
  pool.parallel_for((n + grain - 1) / grain, [&](index_t task) {
    for (index_t i = task * grain; i < std::min((task + 1) * grain, n); ++i) {
      const T* const from = table.row(ids[i]);
      T* const to = y + i * columns;
      if (table.column_stride == 1) std::copy_n(from, columns, to);
      else
        for (index_t c = 0; c < columns; ++c) to[c] = from[c * table.column_stride];
    }
  });
}

/// An id, and its place among others.
struct placed_id {
  std::int64_t id;
  std::uint32_t place;
  bool operator<(const placed_id& o) const { return id != o.id ? id < o.id : place < o.place; }
};
/// Those of n ids that are neither negative nor `left_out`, in order. Errors: index_error for an id of `rows` or more.
SINTER_SHARED std::vector<placed_id> sorted_ids(const std::int64_t* ids, index_t n, index_t rows, index_t left_out,
                                                const ops::index_check& named);

/// The places of each of `rows` ids among n, in order: a counting sort. The id `left_out` has none.
class id_places {
 public:
  /// Errors: index_error for an id outside [0, rows).
  id_places(const std::int64_t* ids, index_t n, index_t rows, index_t left_out, const ops::index_check& named);
  /// The different ids among those sorted, numbered in their order.
  explicit id_places(const std::vector<placed_id>& sorted);

  index_t begin(index_t id) const { return begin_[id]; }
  index_t count(index_t id) const { return index_t{begin_[id + 1]} - begin_[id]; }
  const std::uint32_t* of(index_t id) const { return places_.data() + begin_[id]; }
  index_t most() const { return most_; }
  index_t rows() const { return rows_; }

 private:
  index_t rows_, most_ = 0;
  detail::temporary_array<std::uint32_t> begin_, places_;
};

#if SINTER_DEFINES

SINTER_SHARED std::vector<placed_id> sorted_ids(const std::int64_t* ids, index_t n, index_t rows, index_t left_out,
                                                const ops::index_check& named) {
  std::vector<placed_id> all;
  all.reserve(static_cast<std::size_t>(n));
  for (index_t i = 0; i < n; ++i) {
    if (ids[i] >= rows) sinter::detail::refuse_index(named, ids[i], i, rows);
    if (ids[i] >= 0 && ids[i] != left_out) all.push_back({ids[i], static_cast<std::uint32_t>(i)});
  }
  std::sort(all.begin(), all.end());
  return all;
}

inline index_t different_ids(const std::vector<placed_id>& sorted) {
  index_t n = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) n += i == 0 || sorted[i].id != sorted[i - 1].id;
  return n;
}
SINTER_SHARED id_places::id_places(const std::vector<placed_id>& sorted)
    : rows_(different_ids(sorted)), begin_(rows_ + 2), places_(static_cast<index_t>(sorted.size())) {
  index_t number = -1;
  begin_[0] = begin_[1] = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (i == 0 || sorted[i].id != sorted[i - 1].id) begin_[++number] = static_cast<std::uint32_t>(i);
    places_[static_cast<index_t>(i)] = sorted[i].place;
    begin_[number + 1] = static_cast<std::uint32_t>(i + 1);
    most_ = std::max(most_, count(number));
  }
}

SINTER_SHARED id_places::id_places(const std::int64_t* ids, index_t n, index_t rows, index_t left_out,
                                   const ops::index_check& named)
    : rows_(rows), begin_(rows + 2), places_(n) {
  std::fill_n(begin_.data(), rows + 2, 0u);
  std::uint32_t* const after = begin_.data() + 2;  // while they are counted; then where those of each id end
  for (index_t i = 0; i < n; ++i) {
    if (ids[i] < 0 || ids[i] >= rows) sinter::detail::refuse_index(named, ids[i], i, rows);
    if (ids[i] != left_out) ++after[ids[i]];
  }
  for (index_t v = 0; v < rows; ++v) {
    most_ = std::max<index_t>(most_, after[v]);
    after[v] += after[v - 1];
  }
  std::uint32_t* const next = begin_.data() + 1;
  for (index_t i = 0; i < n; ++i)
    if (ids[i] != left_out) places_[next[ids[i]]++] = static_cast<std::uint32_t>(i);
}

#endif  // SINTER_DEFINES

/// f(first, last, block) for ranges of `rows` rows that are about equal in work, and each of `blocks` blocks of
/// columns. work_before(v) is the work of the rows before v, of which a task gets `grain`.
template <class Before, class F>
void in_equal_parts(index_t rows, index_t grain, index_t blocks, const Before& work_before, thread_pool& pool,
                    const F& f) {
  const auto first_row = [&](index_t work) {
    index_t low = 0, high = rows;
    while (low < high) {
      const index_t v = (low + high) / 2;
      if (work_before(v) < work) low = v + 1;
      else high = v;
    }
    return low;
  };
  const index_t parts = (work_before(rows) + grain - 1) / grain;
  pool.parallel_for(parts * blocks, [&](index_t task) {
    const index_t part = task / blocks;
    f(first_row(part * grain), first_row((part + 1) * grain), task % blocks);
  });
}

/// Row v of `to` (+)= the sum of term(place, columns) over the places of v, in order; by_frequency: their mean. Where
/// one id has a large part of the places, tasks are blocks of columns.
template <class T, class Term>
void sum_at_ids(const id_places& places, const table_view<T>& to, bool add, bool by_frequency, const Term& term,
                thread_pool& pool) {
  using C = compute_type<T>;
  const index_t columns = to.columns;
  if (to.rows * columns == 0) return;
  const auto work_before = [&](index_t v) { return v + places.begin(v); };
  const bool is_uneven = places.most() > std::max(2 * rows_of_task(columns), work_before(to.rows) / 16);
  const index_t block = is_uneven ? std::min<index_t>(4 * lanes, columns) : columns;
  in_equal_parts(to.rows, rows_of_task(block), (columns + block - 1) / block, work_before, pool,
                 [&](index_t first, index_t last, index_t at) {
                   const index_t begin = at * block, end = std::min(begin + block, columns);
                   for (index_t v = first; v < last; ++v) {
                     const index_t n = places.count(v);
                     const std::uint32_t* const of_id = places.of(v);
                     if (n == 0) {
                       if (!add) to.clear(v, begin, end);
                       continue;
                     }
                     const auto next = [&](index_t i, auto c)
                                           SINTER_INLINE_LAMBDA { return term(index_t{of_id[i]}, c); };
                     const auto put = [&](auto c, vector<T> sum) SINTER_INLINE_LAMBDA { to.put(v, c, add, sum); };
                     const C scale = by_frequency ? C(1) / static_cast<C>(n) : C(1);
                     each_columns(begin, end, [&](auto c, auto vectors) SINTER_INLINE_LAMBDA {
                       sum_terms<T, decltype(vectors)::value>(n, c, scale, next, put);
                     });
                   }
                 });
}

/// The different ids among n that are neither negative nor `left_out`, and for each the sum of term(place, columns)
/// over its places.
template <class T, device D, class Term>
row_gradient<T, D> sums_by_id(const std::int64_t* ids, index_t n, index_t rows, index_t columns, index_t left_out,
                              bool by_frequency, const ops::index_check& named, const Term& term) {
  const std::vector<placed_id> sorted = sorted_ids(ids, n, rows, left_out, named);
  const id_places places(sorted);
  row_gradient<T, D> g{tensor<std::int64_t, 1, D>::uninitialized({{places.rows()}}),
                       tensor<T, 2, D>::uninitialized({{places.rows(), columns}})};
  for (index_t i = 0; i < places.rows(); ++i) g.rows.data()[i] = sorted[static_cast<std::size_t>(places.begin(i))].id;
  sum_at_ids(places, view_of_table(g.values), false, by_frequency, term, pool_of<D>());
  return g;
}

/// Adds to the gradient of the table that is operand 0 the sums of term(place, columns) at n ids.
template <class Backward, class Term>
void give_sums_at_ids(const Backward& b, const std::int64_t* ids, index_t n, index_t left_out, bool by_frequency,
                      const ops::index_check& named, const Term& term) {
  using T = typename Backward::value_type;
  using D = typename Backward::device_type;
  if (auto* const table = sinter::detail::rows_in<T, D>(b.template source<0>()))
    return table->add_rows(
        sums_by_id<T, D>(ids, n, table->shape[0], table->shape[1], left_out, by_frequency, named, term));
  const auto place = b.template place_of<0>();
  const table_view<T> to = view_of_table(place.to);
  sum_at_ids(id_places(ids, n, to.rows, left_out, named), to, place.add, by_frequency, term, pool_of<D>());
}

/// f(row of the table, row of the values) for the rows that are there.
template <class T, class F>
void each_moved_row(const table_view<T>& table, const std::int64_t* rows, const table_view<T>& values,
                    thread_pool& pool, const F& f) {
  const index_t grain = rows_of_task(table.columns);
  pool.parallel_for((values.rows + grain - 1) / grain, [&](index_t task) {
    for (index_t i = task * grain; i < std::min((task + 1) * grain, values.rows); ++i)
      f(rows[i] < 0 ? nullptr : table.row(rows[i]), values.row(i));
  });
}

/// Scales the rows that op says; false if nothing changed.
template <class T>
bool renorm(const ops::renorm_op& op, const table_view<T>& table, const id_places& ids, thread_pool& pool) {
  using C = compute_type<T>;
  const index_t grain = rows_of_task(table.columns), tasks = (table.rows + grain - 1) / grain;
  const detail::temporary_array<unsigned char> wrote(tasks);
  pool.parallel_for(tasks, [&](index_t task) {
    wrote[task] = 0;
    for (index_t v = task * grain; v < std::min((task + 1) * grain, table.rows); ++v) {
      if (ids.count(v) == 0) continue;
      T* const row = table.row(v);
      ops::renorm_op::state norm = ops::renorm_op::squares::identity();
      for (index_t c = 0; c < table.columns; ++c) op.push(norm, static_cast<double>(row[c * table.column_stride]));
      const C factor = op.factor(static_cast<C>(op.finish(norm)));
      if (factor == 1) continue;
      for (index_t c = 0; c < table.columns; ++c) {
        T& x = row[c * table.column_stride];
        const T scaled = static_cast<T>(static_cast<C>(x) * factor);
        if (static_cast<C>(scaled) != static_cast<C>(x)) wrote[task] = 1;
        x = scaled;
      }
    }
  });
  return std::any_of(wrote.data(), wrote.data() + tasks, [](unsigned char is) { return is != 0; });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::embedding_op, D> {
  template <class T, int R, class Epilogue, class Ids>
  static void forward(const ops::embedding_op&, const tensor<T, R, D>& y, const Epilogue*, const tensor<T, 2, D>& table,
                      const Ids& ids) {
    // They may have changed since the expression was made.
    check_indices({"embedding", "id"}, ids, table.shape()[0]);
    cpu_impl::look_up(cpu_impl::view_of_table(table), ids.data(), ids.numel(), y.data(), cpu_impl::pool_of<D>());
  }
  template <class Backward>
  static void reverse(const ops::embedding_op& op, const Backward& b) {
    using T = typename Backward::value_type;
    const auto& ids = b.template operand<1>();
    const auto& g = b.gradient();
    const auto row = [from = g.data(), columns = g.shape()[Backward::rank - 1]](index_t at, auto c)
                         SINTER_INLINE_LAMBDA { return cpu_impl::load_row<T>(from + at * columns, c, columns); };
    cpu_impl::give_sums_at_ids(b, ids.data(), ids.numel(), op.padding, op.by_frequency,
                               {"backward of 'embedding'", "id"}, row);
  }
};

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::move_rows, D> {
  template <class T>
  static void run(const ops::move_rows& op, const tensor<T, 2, D>& table, const tensor<std::int64_t, 1, D>& rows,
                  const tensor<T, 2, D>& values) {
    using way = ops::move_rows::way;
    const index_t columns = values.shape()[1];
    const auto move = [&](const auto& f) {
      cpu_impl::each_moved_row(cpu_impl::view_of_table(table), rows.data(), cpu_impl::view_of_table(values),
                               cpu_impl::pool_of<D>(), f);
    };
    if (op.to == way::take) {
      move([columns](const T* row, T* value) {
        if (row != nullptr) std::copy_n(row, columns, value);
        else std::fill_n(value, columns, T(0));
      });
    } else if (op.to == way::put) {
      move([columns](T* row, const T* value) {
        if (row != nullptr) std::copy_n(value, columns, row);
      });
    } else {
      move([columns](T* row, const T* value) {
        if (row == nullptr) return;
        using C = compute_type<T>;
        for (index_t c = 0; c < columns; ++c)
          row[c] = static_cast<T>(static_cast<C>(row[c]) + static_cast<C>(value[c]));
      });
    }
  }
};

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::sum_rows, D> {
  template <class T>
  static row_gradient<T, D> run(const ops::sum_rows& op, const tensor<std::int64_t, 1, D>& ids,
                                const tensor<T, 2, D>& values) {
    const index_t columns = values.shape()[1];
    const auto row = [from = values.data(), columns](index_t at, auto c)
                         SINTER_INLINE_LAMBDA { return cpu_impl::load_row<T>(from + at * columns, c, columns); };
    return cpu_impl::sums_by_id<T, D>(ids.data(), ids.numel(), op.rows, columns, no_padding, false,
                                      {"sum of row gradients", "row"}, row);
  }
};

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::renorm_op, D> {
  template <class T, class Ids>
  static bool run(const ops::renorm_op& op, const tensor<T, 2, D>& table, const Ids& ids) {
    const cpu_impl::table_view<T> rows = cpu_impl::view_of_table(table);
    const cpu_impl::id_places places(ids.data(), ids.numel(), rows.rows, no_padding, {"embedding", "id"});
    return cpu_impl::renorm(op, rows, places, cpu_impl::pool_of<D>());
  }
};

}  // namespace sinter::detail
