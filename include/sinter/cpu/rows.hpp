// sinter/cpu/rows.hpp: row-persistent work: softmax and its relatives hold a row in cache from reading to writing it.
//
// A result that is larger than the cache is written past it, once: what a kernel reads again it keeps in a buffer.
// While a row is worked on, the next one is fetched.
#pragma once

#include <optional>

#include "sinter/cpu/reduce.hpp"
#include "sinter/ops/row_op.hpp"

namespace sinter::cpu_impl {

/// Where a vector begins in a row: all of it lies inside, or its last lanes may lie past the end. Row work is compiled
/// for both, so that inside no vector asks.
struct inside {
  index_t first;
};
struct at_end {
  index_t first;
};

/// A vector of a row of n values; past its end stand zeros.
template <class T>
SINTER_INLINE vector<T> load_row(const T* x, inside i, index_t) {
  return math::read<lanes>(x + i.first);
}
template <class T>
vector<T> load_row(const T* x, at_end i, index_t n) {
  alignas(64) T pad[lanes] = {};
  for (int k = 0; i.first + k < n; ++k) pad[k] = x[i.first + k];
  return math::read<lanes>(pad);
}

template <class T>
SINTER_INLINE void store_row(T* x, inside i, index_t, vector<T> v) {
  math::write(x + i.first, v);
}
template <class T>
void store_row(T* x, at_end i, index_t n, vector<T> v) {
  alignas(64) T pad[lanes];
  math::write(pad, v);
  for (index_t k = 0; i.first + k < n; ++k) x[i.first + k] = pad[k];
}

/// v, with `fill` past the end of a row of n values.
template <class T>
SINTER_INLINE vector<T> within_row(inside, index_t, vector<T> v, compute_type<T>) {
  return v;
}
template <class T>
vector<T> within_row(at_end i, index_t n, vector<T> v, compute_type<T> fill) {
  using C = compute_type<T>;
  alignas(64) C pad[lanes];
  math::write(pad, v);
  for (int k = 0; k < lanes; ++k) pad[k] = i.first + k < n ? pad[k] : fill;
  return math::read<lanes>(pad);
}

/// combine over f at 0, lanes, ... below n, in four independent chains, so that no addition waits for the one before.
template <class T, class Combine, class F>
SINTER_INLINE vector<T> fold_vectors(index_t n, T identity, const Combine& combine, const F& f) {
  vector<T> s0(identity), s1(identity), s2(identity), s3(identity);
  index_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    s0 = combine(s0, f(inside{i}));
    s1 = combine(s1, f(inside{i + lanes}));
    s2 = combine(s2, f(inside{i + 2 * lanes}));
    s3 = combine(s3, f(inside{i + 3 * lanes}));
  }
  for (; i + lanes <= n; i += lanes) s0 = combine(s0, f(inside{i}));
  if (i < n) s0 = combine(s0, f(at_end{i}));
  return combine(combine(s0, s1), combine(s2, s3));
}

template <class T, class F>
SINTER_INLINE compute_type<T> row_sum(index_t n, const F& f) {
  return math::hsum(
      fold_vectors(n, compute_type<T>(0), [](vector<T> a, vector<T> b) SINTER_INLINE_LAMBDA { return a + b; }, f));
}

/// The same for an f of many instructions, which is compiled once and not four times: the chains take turns.
template <class T, class F>
SINTER_INLINE compute_type<T> row_sum_of_long(index_t n, const F& f) {
  vector<T> s0(compute_type<T>(0)), s1 = s0, s2 = s0, s3 = s0;
  index_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const vector<T> s = s0 + f(inside{i});
    s0 = s1;
    s1 = s2;
    s2 = s3;
    s3 = s;
  }
  if (i < n) s0 = s0 + f(at_end{i});
  return math::hsum((s0 + s1) + (s2 + s3));
}

/// y = f at 0, lanes, ...
template <class T, class F>
SINTER_INLINE void put_row(T* y, index_t n, bool stream, const F& f) {
  if (stream) {
    for (index_t i = 0; i < n; i += lanes) math::write_past_caches(y + i, f(inside{i}));
    return;
  }
  index_t i = 0;
  for (; i + lanes <= n; i += lanes) math::write(y + i, f(inside{i}));
  if (i < n) store_row(y, at_end{i}, n, f(at_end{i}));
}

/// What a row-wise op leaves of a row: its values in cache, and the last step, which the pass that writes the result
/// does.
template <class T>
struct unfinished_row {
  const compute_type<T>* from;
  row_end end;

  SINTER_INLINE void put(T* y, index_t n, bool stream) const {
    const last_step<T> finish(end);
    put_row(y, n, stream, [&](auto i) SINTER_INLINE_LAMBDA { return finish(load_row(from, i, n)); });
  }
};

/// The values of a row in memory.
template <class T>
struct row_values {
  const T* x;
  index_t n;
  template <class Place>
  SINTER_INLINE vector<T> operator()(Place i) const {
    return load_row<T>(x, i, n);
  }
};
template <class V>
inline constexpr bool is_in_memory = false;
template <class T>
inline constexpr bool is_in_memory<row_values<T>> = true;

/// The sums and maxima of a row, for the formulas of ops/row_op.hpp.
template <class T>
struct row_folds {
  using value_type = compute_type<T>;
  using C = value_type;
  index_t n;

  SINTER_INLINE C count() const { return static_cast<C>(n); }
  SINTER_INLINE bool any_row(bool is) const { return is; }
  template <class V>
  SINTER_INLINE C sum(const V& v) const {
    return row_sum<T>(n, [&](auto i) SINTER_INLINE_LAMBDA { return within_row<T>(i, n, v(i), C(0)); });
  }
  template <class V>
  SINTER_INLINE C max(const V& v) const {
    constexpr C lowest = -std::numeric_limits<C>::infinity();
    const auto greater = [](vector<T> a, vector<T> b) SINTER_INLINE_LAMBDA { return math::max(a, b); };
    return math::hmax(fold_vectors(n, lowest, greater,
                                   [&](auto i) SINTER_INLINE_LAMBDA { return within_row<T>(i, n, v(i), lowest); }));
  }
};

/// One row of a forward pass: n values, of which those of narrow elements are float.
template <class T>
struct row : row_folds<T> {
  using C = compute_type<T>;
  static constexpr bool always_keeps = true;
  const C* values;
  C* held;        ///< room for a row in cache; may be `values`
  const C* next;  ///< what will be read after this row
  C* of_row;      ///< what backward asks of this row

  SINTER_INLINE row_values<C> x() const { return {values, this->n}; }
  SINTER_INLINE C first(const row_values<C>& v) const { return v.x[0]; }
  /// The row itself lies in memory already.
  SINTER_INLINE row_values<C> keep(const row_values<C>& v) const { return v; }
  /// With these the next row is fetched, where they are not the row as it lies in memory.
  template <class V>
  SINTER_INLINE C sum(const V& v) const {
    if constexpr (is_in_memory<V>) return row_folds<T>::sum(v);
    else
      return row_folds<T>::sum([&](auto i) SINTER_INLINE_LAMBDA {
        fetch_next(i);
        return v(i);
      });
  }
  template <class V>
  SINTER_INLINE ops::values_and_sum<row_values<C>, C> keep_and_sum(const V& v) const {
    const C sum = row_sum_of_long<T>(this->n, [&](auto i) SINTER_INLINE_LAMBDA {
      fetch_next(i);
      const vector<T> one = v(i);
      store_row(held, i, this->n, one);
      return within_row<T>(i, this->n, one, C(0));
    });
    return {{held, this->n}, sum};
  }
  template <class V>
  SINTER_INLINE ops::shifted_sum<C> sum_of_exp(const V& v) const {
    const C shift = ops::row_shift(this->max(v));
    return {shift, row_sum_of_long<T>(this->n, [&](auto i) SINTER_INLINE_LAMBDA {
              fetch_next(i);
              return within_row<T>(i, this->n, math::exp(v(i) - vector<T>(shift)), C(0));
            })};
  }
  SINTER_INLINE unfinished_row<T> finish(const row_values<C>& v, ops::last_step<C> end) const {
    return {v.x, {.shift = end.shift, .scale = end.scale, .rest = end.rest}};
  }
  SINTER_INLINE void save(C c) const { *of_row = c; }

 private:
  template <class Place>
  SINTER_INLINE void fetch_next(Place i) const {
    __builtin_prefetch(next + i.first);
  }
};

/// One row of a backward pass: dx (+)= the derivative at the result y, given the gradient g.
template <class T>
struct reverse_row : row_folds<T> {
  const T* y;
  const T* g;
  T* dx;
  const compute_type<T>* of_row;
  bool add;
  bool stream;

  SINTER_INLINE row_values<T> result() const { return {y, this->n}; }
  SINTER_INLINE row_values<T> gradient() const { return {g, this->n}; }
  SINTER_INLINE compute_type<T> saved() const { return *of_row; }
  template <class V>
  SINTER_INLINE void put(const V& v) const {
    if (add)
      put_row(dx, this->n, false, [&](auto i) SINTER_INLINE_LAMBDA { return v(i) + load_row<T>(dx, i, this->n); });
    else put_row(dx, this->n, stream, v);
  }
};

/// f(first, last) for groups of rows of n values that are enough work to be worth a task.
template <class F>
void in_row_groups(index_t rows, index_t n, thread_pool& pool, const F& f) {
  const index_t grain = 16384 / (n > 0 ? n : 1) + 1;
  pool.parallel_for((rows + grain - 1) / grain,
                    [&](index_t t) { f(t * grain, (t + 1) * grain < rows ? (t + 1) * grain : rows); });
}

/// Longer rows are worked on where they stand: no buffer would hold them in cache.
inline constexpr index_t longest_held_row = 65536;

/// Does a result of rows of n values at `to` go past the cache? Only whole, aligned vectors do.
template <class T>
bool streams_rows(const T* to, index_t rows, index_t n) {
  return n <= longest_held_row && n % lanes == 0 && reinterpret_cast<std::uintptr_t>(to) % 64 == 0 &&
         rows * n * static_cast<index_t>(sizeof(T)) >= stream_bytes;
}

/// A row-sized buffer of this thread.
template <int Use, class T>
T* row_buffer(index_t n) {
  return reinterpret_cast<T*>(detail::scratch<Use>(static_cast<std::size_t>(n) * sizeof(T)));
}

/// Room for a row while it is worked on: in cache, or for longer ones where the result goes, if that is as wide.
template <class T>
compute_type<T>* row_room([[maybe_unused]] T* y, index_t n) {
  if constexpr (!narrow_element<T>) {
    if (n > longest_held_row) return y;
  }
  return row_buffer<1, compute_type<T>>(n);
}

template <class T>
row<T> produced_row(const producer<compute_type<T>>& p, index_t at, index_t rows, index_t n, compute_type<T>* held) {
  row<T> r{};
  r.n = n;
  r.held = held;
  r.values = p.get(at * n, n, held);
  r.next = p.direct() && at + 1 < rows ? r.values + n : r.values;
  return r;
}

/// Row by row: out = op(values of l), with rows of n along the last axis; `saved`, where there is one, gets a value per
/// row. An epilogue takes the last step of a row with it, and writes it to its place.
template <class Op, class T>
void run_rows(loop& l, bool is_leaf, const Op& op, T* out, compute_type<T>* saved, index_t rows, index_t n,
              const epilogue* after, thread_pool& pool) {
  if (rows * n == 0) return;
  const producer<compute_type<T>> p(l, is_leaf);
  const bool stream = streams_rows(out, rows, n);
  in_row_groups(rows, n, pool, [&](index_t first, index_t last) {
    std::optional<epilogue::rows> finish;
    if (after != nullptr) finish.emplace(*after, static_cast<int>(sizeof(compute_type<T>)), stream);
    for (index_t at = first; at < last; ++at) {
      T* const y = out + at * n;
      row<T> r = produced_row<T>(p, at, rows, n, row_room(y, n));
      r.of_row = saved != nullptr ? saved + at : nullptr;
      const unfinished_row<T> made = op.forward(r);
      if (finish) finish->run(at * n, (at + 1) * n, made.from, made.end);
      else made.put(y, n, stream);
    }
  });
}

template <class Op, class T>
void reverse_rows(const Op& op, const T* y, const T* g, const compute_type<T>* saved, T* dx, index_t rows, index_t n,
                  bool add, thread_pool& pool) {
  const bool stream = !add && streams_rows(dx, rows, n);
  in_row_groups(rows, n, pool, [&](index_t first, index_t last) {
    for (index_t at = first; at < last; ++at)
      op.reverse(reverse_row<T>{
          {n}, y + at * n, g + at * n, dx + at * n, saved != nullptr ? saved + at : nullptr, add, stream});
  });
}

}  // namespace sinter::cpu_impl
