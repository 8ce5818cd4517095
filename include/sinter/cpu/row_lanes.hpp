// sinter/cpu/row_lanes.hpp: row-wise ops of rows that lie side by side in memory, and of short rows: each lane of a
// vector has a row of its own, so that the numbers of a row, its sum and the like, are vectors too.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/rows.hpp"

namespace sinter::cpu_impl {

/// As many rows of n values as a vector has lanes: value j of row k is x[j step + k].
template <class C>
struct lane_values {
  const C* x;
  index_t step;
  SINTER_INLINE vector<C> operator()(index_t j) const { return math::read<lanes>(x + j * step); }
};

/// The sums and maxima of the rows, for the formulas of ops/row_op.hpp.
template <class C>
struct lane_folds {
  using value_type = vector<C>;
  index_t n;

  SINTER_INLINE vector<C> count() const { return vector<C>(static_cast<C>(n)); }
  SINTER_INLINE bool any_row(math::mask_t<vector<C>> is) const { return math::any(is); }
  /// In runs, so that few additions follow one another.
  template <class V>
  SINTER_INLINE vector<C> sum(const V& v) const {
    vector<C> total(C(0));
    for (index_t j = 0; j < n;) {
      vector<C> part(C(0));
      for (const index_t end = n - j < 64 ? n : j + 64; j < end; ++j) part = part + v(j);
      total = total + part;
    }
    return total;
  }
  template <class V>
  SINTER_INLINE vector<C> max(const V& v) const {
    vector<C> most = v(0);
    for (index_t j = 1; j < n; ++j) most = math::max(most, v(j));
    return most;
  }
};

/// What a row-wise op leaves of the rows: their values, and the last step.
template <class C>
struct unfinished_lanes {
  lane_values<C> values;
  ops::last_step<vector<C>> end;
  SINTER_INLINE vector<C> operator()(index_t j) const { return (values(j) - end.shift) * end.scale - end.rest; }
};

template <class C>
struct forward_lanes : lane_folds<C> {
  static constexpr bool always_keeps = true;
  lane_values<C> values;
  C* held;    ///< room for the rows
  C* of_row;  ///< what backward asks of them

  SINTER_INLINE lane_values<C> x() const { return values; }
  SINTER_INLINE vector<C> first(const lane_values<C>& v) const { return v(0); }
  SINTER_INLINE lane_values<C> keep(const lane_values<C>& v) const { return v; }
  template <class V>
  SINTER_INLINE ops::values_and_sum<lane_values<C>, vector<C>> keep_and_sum(const V& v) const {
    const auto sum = lane_folds<C>::sum([&](index_t j) SINTER_INLINE_LAMBDA {
      const vector<C> one = v(j);
      math::write(held + j * lanes, one);
      return one;
    });
    return {{held, lanes}, sum};
  }
  template <class V>
  SINTER_INLINE ops::shifted_sum<vector<C>> sum_of_exp(const V& v) const {
    const vector<C> shift = ops::row_shift(this->max(v));
    return {shift, this->sum([&](index_t j) SINTER_INLINE_LAMBDA { return math::exp(v(j) - shift); })};
  }
  SINTER_INLINE unfinished_lanes<C> finish(const lane_values<C>& v, ops::last_step<vector<C>> end) const {
    return {v, end};
  }
  SINTER_INLINE void save(vector<C> c) const { math::write(of_row, c); }
};

/// Where the rows of a result go: value j of row k to y[j step + k].
template <class C>
struct lane_results {
  C* y;
  index_t step;
  bool add, stream;

  template <class V>
  SINTER_INLINE void put(index_t n, const V& v) const {
    if (stream)
      for (index_t j = 0; j < n; ++j) math::write_past_caches(y + j * step, v(j));
    else if (add)
      for (index_t j = 0; j < n; ++j) math::write(y + j * step, math::read<lanes>(y + j * step) + v(j));
    else
      for (index_t j = 0; j < n; ++j) math::write(y + j * step, v(j));
  }
};

template <class C>
struct reverse_lanes : lane_folds<C> {
  lane_values<C> y, g;
  const C* of_row;
  lane_results<C> dx;

  SINTER_INLINE lane_values<C> result() const { return y; }
  SINTER_INLINE lane_values<C> gradient() const { return g; }
  SINTER_INLINE vector<C> saved() const { return math::read<lanes>(of_row); }
  template <class V>
  SINTER_INLINE void put(const V& v) const {
    dx.put(this->n, v);
  }
};

template <class Op, class C>
[[gnu::noinline]] void run_forward(const Op& op, const forward_lanes<C>& rows, const lane_results<C>& to) {
  to.put(rows.n, op.forward(rows));
}
template <class Op, class C>
[[gnu::noinline]] void run_reverse(const Op& op, const reverse_lanes<C>& rows) {
  op.reverse(rows);
}

/// Where the rows of a tile lie in a tensor: value j of row k at j step + k apart.
struct tile_place {
  index_t step, apart;
  index_t rows;  ///< of the tile that there are; the others are zero
};

/// values[j lanes + k] = value j of row k.
template <class T>
void read_tile(const T* x, const tile_place& at, index_t n, compute_type<T>* values) {
  if (at.rows == lanes && at.apart == 1) {
    for (index_t j = 0; j < n; ++j) math::write(values + j * lanes, math::read<lanes>(x + j * at.step));
    return;
  }
  for (index_t j = 0; j < n; ++j)
    for (index_t k = 0; k < lanes; ++k)
      values[j * lanes + k] = k < at.rows ? compute_type<T>(x[j * at.step + k * at.apart]) : compute_type<T>(0);
}
template <class T>
void write_tile(T* y, const tile_place& at, index_t n, bool add, const compute_type<T>* values) {
  using C = compute_type<T>;
  if (at.rows == lanes && at.apart == 1)
    return lane_results<T>{y, at.step, add, false}.put(n, lane_values<C>{values, lanes});
  for (index_t j = 0; j < n; ++j)
    for (index_t k = 0; k < at.rows; ++k) {
      T& to = y[j * at.step + k * at.apart];
      to = static_cast<T>(add ? C(to) + values[j * lanes + k] : values[j * lanes + k]);
    }
}

/// One thread's work on tiles of rows of n values. Values of C that lie side by side are read and written where they
/// are, others through a copy.
template <class Op, class C>
struct tile_worker {
  const Op& op;
  index_t n;
  C* room = row_buffer<3, C>(3 * n * lanes);

  C* copy(int number) const { return room + number * n * lanes; }
  template <class T>
  static bool in_place(const tile_place& at) {
    return std::is_same_v<T, C> && at.apart == 1 && at.rows == lanes;
  }
  template <class T>
  lane_values<C> values(const T* x, const tile_place& at, int number) const {
    if constexpr (std::is_same_v<T, C>)
      if (in_place<T>(at)) return {x, at.step};
    read_tile(x, at, n, copy(number));
    return {copy(number), lanes};
  }
  template <class T, class F>
  void results(T* y, const tile_place& at, bool add, bool stream, const F& f) const {
    if constexpr (std::is_same_v<T, C>)
      if (in_place<T>(at)) return f(lane_results<C>{y, at.step, add, stream});
    f(lane_results<C>{copy(2), lanes, false, false});
    write_tile(y, at, n, add, copy(2));
  }

  template <class X, class Y>
  void forward(const X* x, Y* y, C* saved, const tile_place& at, bool stream) const {
    alignas(64) C of_row[lanes] = {};
    const forward_lanes<C> rows{{n}, values(x, at, 0), copy(1), of_row};
    results(y, at, false, stream, [&](const lane_results<C>& to) { run_forward(op, rows, to); });
    if (saved != nullptr) std::copy(of_row, of_row + at.rows, saved);
  }
  template <class T>
  void reverse(const T* y, const T* g, const C* saved, T* dx, const tile_place& at, bool add, bool stream) const {
    alignas(64) C of_row[lanes] = {};
    if (saved != nullptr) std::copy(saved, saved + at.rows, of_row);
    const lane_values<C> result = values(y, at, 0), gradient = values(g, at, 1);
    results(dx, at, add, stream,
            [&](const lane_results<C>& to) { run_reverse(op, reverse_lanes<C>{{n}, result, gradient, of_row, to}); });
  }
};

using sinter::detail::fold_shape;

/// Longer columns do not stay in cache.
inline constexpr index_t longest_column = 4096;
/// Are the rows along the middle axis of `s` worked on as columns?
inline bool are_columns(const fold_shape& s) { return s.inner >= lanes && s.reduced <= longest_column; }

/// f(worker, first element, saved numbers before it, place) for the tiles of all columns.
template <class T, class Op, class F>
void each_tile_of_columns(const Op& op, const fold_shape& s, thread_pool& pool, const F& f) {
  const index_t n = s.reduced, tiles = (s.inner + lanes - 1) / lanes;
  if (s.outer * n * s.inner == 0) return;
  in_row_groups(s.outer * tiles, n * lanes, pool, [&](index_t first, index_t last) {
    const tile_worker<Op, compute_type<T>> worker{op, n};
    for (index_t t = first; t < last; ++t) {
      const index_t outer = t / tiles, column = t % tiles * lanes, rest = s.inner - column;
      f(worker, outer * n * s.inner + column, outer * s.inner + column,
        tile_place{s.inner, 1, rest < lanes ? rest : lanes});
    }
  });
}
template <class T>
bool streams_columns(const T* to, const fold_shape& s) {
  return streams_rows(to, s.outer * s.reduced, s.inner);
}

/// y = op(x) and its reverse, of rows along the middle axis; see are_columns().
template <class Op, class T>
void run_columns(const Op& op, const fold_shape& s, const T* x, T* y, compute_type<T>* saved, thread_pool& pool) {
  const bool stream = streams_columns(y, s);
  each_tile_of_columns<T>(op, s, pool, [&](const auto& worker, index_t at, index_t row, const tile_place& place) {
    worker.forward(x + at, y + at, saved != nullptr ? saved + row : nullptr, place, stream);
  });
}
template <class Op, class T>
void reverse_columns(const Op& op, const fold_shape& s, const T* y, const T* g, const compute_type<T>* saved, T* dx,
                     bool add, thread_pool& pool) {
  const bool stream = !add && streams_columns(dx, s);
  each_tile_of_columns<T>(op, s, pool, [&](const auto& worker, index_t at, index_t row, const tile_place& place) {
    worker.reverse(y + at, g + at, saved != nullptr ? saved + row : nullptr, dx + at, place, add, stream);
  });
}

/// Rows that fill no vectors, or too few beside the one that they do not fill, are worked on many at a time.
inline bool are_short_rows(index_t n) { return n % lanes != 0 && n <= 40; }

/// f(first, last) for runs of short rows that fit in a producer's buffer; the first is a multiple of `lanes`.
template <class F>
void in_runs_of_rows(index_t rows, index_t n, index_t most, thread_pool& pool, const F& f) {
  const index_t together = most / n / lanes * lanes, grain = 4 * together;
  pool.parallel_for((rows + grain - 1) / grain, [&](index_t t) {
    const index_t end = (t + 1) * grain < rows ? (t + 1) * grain : rows;
    f(t * grain, end, together);
  });
}

/// run_rows of short rows.
template <class Op, class T>
void run_short_rows(loop& l, bool is_leaf, const Op& op, T* out, compute_type<T>* saved, index_t rows, index_t n,
                    const epilogue* after, thread_pool& pool) {
  using C = compute_type<T>;
  if (rows * n == 0) return;
  const producer<C> p(l, is_leaf);
  in_runs_of_rows(rows, n, producer<C>::run, pool, [&](index_t begin, index_t end, index_t together) {
    alignas(64) typename producer<C>::buffer_type produced, made;
    const tile_worker<Op, C> worker{op, n};
    std::optional<epilogue::rows> finish;
    if (after != nullptr) finish.emplace(*after, static_cast<int>(sizeof(C)), streams_rows(out, rows, n));
    for (index_t first = begin; first < end; first += together) {
      const index_t count = end - first < together ? end - first : together;
      const C* const x = p.get(first * n, count * n, produced);
      for (index_t row = 0; row < count; row += lanes) {
        const tile_place place{1, n, count - row < lanes ? count - row : lanes};
        C* const of_row = saved != nullptr ? saved + first + row : nullptr;
        if (finish) worker.forward(x + row * n, made + row * n, of_row, place, false);
        else worker.forward(x + row * n, out + (first + row) * n, of_row, place, false);
      }
      if (finish) finish->run(first * n, (first + count) * n, made, row_end{});
    }
  });
}
template <class Op, class T>
void reverse_short_rows(const Op& op, const T* y, const T* g, const compute_type<T>* saved, T* dx, index_t rows,
                        index_t n, bool add, thread_pool& pool) {
  using C = compute_type<T>;
  if (rows * n == 0) return;
  in_runs_of_rows(rows, n, producer<C>::run, pool, [&](index_t begin, index_t end, index_t) {
    const tile_worker<Op, C> worker{op, n};
    for (index_t row = begin; row < end; row += lanes) {
      const tile_place place{1, n, end - row < lanes ? end - row : lanes};
      worker.reverse(y + row * n, g + row * n, saved != nullptr ? saved + row : nullptr, dx + row * n, place, add,
                     false);
    }
  });
}

/// See row_kernels in ops/row_op.hpp.
template <device D>
struct row_passes {
  template <class Op, class E, class T, auto S>
  static void rows(const Op& op, index_t n, const E& e, const tensor<T, S, D>& to,
                   const tensor<compute_type<T>, 1, D>& saved, const epilogue* after) {
    const index_t count = n > 0 ? to.numel() / n : 0;
    with_producer(e, [&](loop& l, bool is_leaf) {
      if (are_short_rows(n)) run_short_rows(l, is_leaf, op, to.data(), saved.data(), count, n, after, pool_of<D>());
      else run_rows(l, is_leaf, op, to.data(), saved.data(), count, n, after, pool_of<D>());
    });
  }
  template <class Op, class T, auto S>
  static void reverse_rows(const Op& op, index_t n, const tensor<T, S, D>& y, const tensor<T, S, D>& g,
                           const tensor<compute_type<T>, 1, D>& saved, const tensor<T, S, D>& dx, bool add) {
    const index_t count = n > 0 ? y.numel() / n : 0;
    if (are_short_rows(n))
      reverse_short_rows(op, y.data(), g.data(), saved.data(), dx.data(), count, n, add, pool_of<D>());
    else cpu_impl::reverse_rows(op, y.data(), g.data(), saved.data(), dx.data(), count, n, add, pool_of<D>());
  }
  template <int R>
  static bool takes_columns(const extents<R>& shape, int axis) {
    return are_columns(sinter::detail::around_axis(shape.data(), R, axis));
  }
  template <class Op, class T, auto S>
  static void columns(const Op& op, const tensor<T, S, D>& x, const tensor<T, S, D>& to,
                      const tensor<compute_type<T>, 1, D>& saved) {
    run_columns(op, sinter::detail::around_axis(x.shape().data(), x.rank, op.axis), x.data(), to.data(), saved.data(),
                pool_of<D>());
  }
  template <class Op, class T, auto S>
  static void reverse_columns(const Op& op, const tensor<T, S, D>& y, const tensor<T, S, D>& g,
                              const tensor<compute_type<T>, 1, D>& saved, const tensor<T, S, D>& dx, bool add) {
    cpu_impl::reverse_columns(op, sinter::detail::around_axis(y.shape().data(), y.rank, op.axis), y.data(), g.data(),
                              saved.data(), dx.data(), add, pool_of<D>());
  }
};

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <std::derived_from<ops::row_op> Op, device D>
  requires is_cpu_v<D>
struct kernels<Op, D> : row_kernels<Op, D, cpu_impl::row_passes<D>> {};

}  // namespace sinter::detail
