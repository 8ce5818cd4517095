// sinter/cpu/rows.hpp: row-persistent work: softmax and its relatives hold a row in cache from reading to writing it.
#pragma once

#include "sinter/cpu/reduce.hpp"

namespace sinter::cpu_impl {

/// Vector i of a row of n values; past its end stands `fill`.
template <class T>
vector<T> load_row(const T* x, index_t i, index_t n, T fill) {
  if (i + lanes <= n) return vector<T>::load(x + i);
  alignas(64) T pad[lanes];
  for (int k = 0; k < lanes; ++k) pad[k] = i + k < n ? x[i + k] : fill;
  return vector<T>::load(pad);
}

template <class T>
void store_row(T* x, index_t i, index_t n, vector<T> v) {
  if (i + lanes <= n) return v.store(x + i);
  alignas(64) T pad[lanes];
  v.store(pad);
  for (index_t k = 0; i + k < n; ++k) x[i + k] = pad[k];
}

/// combine over f(0), f(lanes), ... below n, in four independent chains, so that no addition waits for the one before.
template <class T, class Combine, class F>
SINTER_INLINE vector<T> fold_vectors(index_t n, T identity, const Combine& combine, const F& f) {
  vector<T> s0(identity), s1(identity), s2(identity), s3(identity);
  index_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = combine(s0, f(i));
    s1 = combine(s1, f(i + lanes));
    s2 = combine(s2, f(i + 2 * lanes));
    s3 = combine(s3, f(i + 3 * lanes));
  }
  for (; i < n; i += lanes) s0 = combine(s0, f(i));
  return combine(combine(s0, s1), combine(s2, s3));
}

template <class T, class F>
SINTER_INLINE T row_sum(index_t n, const F& f) {
  return math::hsum(fold_vectors(n, T(0), [](vector<T> a, vector<T> b) { return a + b; }, f));
}

template <class T>
T row_max(const T* x, index_t n) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  return math::hmax(fold_vectors(
      n, lowest, [](vector<T> a, vector<T> b) { return math::max(a, b); }, [&](index_t i) { return load_row(x, i, n, lowest); }));
}

/// A shift that leaves exp(x - shift) free of overflow, and of inf - inf.
template <class T>
T row_shift(T max) {
  return max == -std::numeric_limits<T>::infinity() ? T(0) : max;
}

struct softmax_row {
  template <class T>
  static void run(const T* x, T* y, index_t n) {
    const vector<T> shift(row_shift(row_max(x, n)));
    const vector<T> scale(T(1) / row_sum<T>(n, [&](index_t i) {
      const vector<T> e = math::exp(load_row(x, i, n, -std::numeric_limits<T>::infinity()) - shift);
      store_row(y, i, n, e);
      return e;
    }));
    for (index_t i = 0; i < n; i += lanes) store_row(y, i, n, load_row<T>(y, i, n, 0) * scale);
  }
  /// dx = y (g - sum(g y))
  template <class T>
  static void reverse(const T* y, const T* g, T* dx, index_t n, bool add) {
    const vector<T> dot(row_sum<T>(n, [&](index_t i) { return load_row<T>(g, i, n, 0) * load_row<T>(y, i, n, 0); }));
    for (index_t i = 0; i < n; i += lanes) {
      vector<T> d = load_row<T>(y, i, n, 0) * (load_row<T>(g, i, n, 0) - dot);
      if (add) d = d + load_row<T>(dx, i, n, 0);
      store_row(dx, i, n, d);
    }
  }
};

/// log(sum(exp(x))) in two parts, the shift and what remains: added up they would lose digits where x is large.
template <class T>
struct split_logsumexp {
  T shift, rest;
};
template <class T>
split_logsumexp<T> row_logsumexp(const T* x, index_t n) {
  const T shift = row_shift(row_max(x, n));
  return {shift, math::log(row_sum<T>(
                     n, [&](index_t i) { return math::exp(load_row(x, i, n, -std::numeric_limits<T>::infinity()) - vector<T>(shift)); }))};
}

struct log_softmax_row {
  template <class T>
  static void run(const T* x, T* y, index_t n) {
    const vector<T> shift(row_shift(row_max(x, n)));
    const vector<T> log_sum(
        math::log(row_sum<T>(n, [&](index_t i) { return math::exp(load_row(x, i, n, -std::numeric_limits<T>::infinity()) - shift); })));
    for (index_t i = 0; i < n; i += lanes) store_row(y, i, n, (load_row<T>(x, i, n, 0) - shift) - log_sum);
  }
  /// dx = g - exp(y) sum(g)
  template <class T>
  static void reverse(const T* y, const T* g, T* dx, index_t n, bool add) {
    const vector<T> total(row_sum<T>(n, [&](index_t i) { return load_row<T>(g, i, n, 0); }));
    for (index_t i = 0; i < n; i += lanes) {
      vector<T> d = load_row<T>(g, i, n, 0) - math::exp(load_row<T>(y, i, n, 0)) * total;
      if (add) d = d + load_row<T>(dx, i, n, 0);
      store_row(dx, i, n, d);
    }
  }
};

/// Rows per task: enough work to be worth a task.
inline index_t rows_per_task(index_t n) { return 16384 / (n > 0 ? n : 1) + 1; }

/// f(row, x) for each row of n produced values; `x` may be `place(row)`, where the row is put if it is not in memory.
template <class T, class Place, class F>
void for_rows(const producer<T>& p, index_t rows, index_t n, thread_pool& pool, const Place& place, const F& f) {
  const index_t grain = rows_per_task(n);
  pool.parallel_for((rows + grain - 1) / grain, [&](index_t t) {
    const index_t end = (t + 1) * grain < rows ? (t + 1) * grain : rows;
    for (index_t row = t * grain; row < end; ++row) f(row, p.get(row * n, n, place(row)));
  });
}

/// Row by row: out = Row(values of l), with rows of n along the last axis.
template <class Row, class T>
void run_rows(loop& l, bool is_leaf, T* out, index_t rows, index_t n, thread_pool& pool) {
  if (rows * n == 0) return;
  const producer<T> p(l, is_leaf);
  for_rows(
      p, rows, n, pool, [&](index_t row) { return out + row * n; }, [&](index_t row, const T* x) { Row::run(x, out + row * n, n); });
}

template <class Row, class T>
void reverse_rows(const T* y, const T* g, T* dx, index_t rows, index_t n, bool add, thread_pool& pool) {
  const index_t grain = rows_per_task(n);
  pool.parallel_for((rows + grain - 1) / grain, [&](index_t t) {
    const index_t end = (t + 1) * grain < rows ? (t + 1) * grain : rows;
    for (index_t row = t * grain; row < end; ++row) Row::reverse(y + row * n, g + row * n, dx + row * n, n, add);
  });
}

/// loss[row] = logsumexp(x) - x[label]; both parts of the former are kept in lse[2 row] for backward.
template <class T>
void run_cross_entropy(loop& l, bool is_leaf, const std::int64_t* labels, T* loss, T* lse, index_t rows, index_t n, thread_pool& pool) {
  const producer<T> p(l, is_leaf);
  for_rows(
      p, rows, n, pool, [&](index_t) { return reinterpret_cast<T*>(detail::scratch<1>(static_cast<std::size_t>(n) * sizeof(T))); },
      [&](index_t row, const T* x) {
        const auto [shift, rest] = row_logsumexp(x, n);
        lse[2 * row] = shift;
        lse[2 * row + 1] = rest;
        loss[row] = rest - (x[labels[row]] - shift);
      });
}

/// dx = g[row] (exp(x - lse) - [column == label])
template <class T>
void reverse_cross_entropy(loop& l, bool is_leaf, const std::int64_t* labels, const T* lse, const T* g, T* dx, index_t rows, index_t n, bool add,
                           thread_pool& pool) {
  const producer<T> p(l, is_leaf);
  for_rows(
      p, rows, n, pool, [&](index_t) { return reinterpret_cast<T*>(detail::scratch<1>(static_cast<std::size_t>(n) * sizeof(T))); },
      [&](index_t row, const T* x) {
        T* d = dx + row * n;
        const vector<T> shift(lse[2 * row]), rest(lse[2 * row + 1]), scale(g[row]);
        const T at_label = add ? d[labels[row]] : T(0);
        for (index_t i = 0; i < n; i += lanes) {
          vector<T> v = math::exp((load_row<T>(x, i, n, 0) - shift) - rest) * scale;
          if (add) v = v + load_row<T>(d, i, n, 0);
          store_row(d, i, n, v);
        }
        d[labels[row]] = at_label + std::expm1((x[labels[row]] - lse[2 * row]) - lse[2 * row + 1]) * g[row];
      });
}

}  // namespace sinter::cpu_impl
