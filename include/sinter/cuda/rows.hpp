// sinter/cuda/rows.hpp: the bodies of softmax, layer_norm and their relatives: the threads of a group share a row.
#pragma once

#include <cmath>
#include <limits>

#include "sinter/cuda/element.hpp"
#include "sinter/math/scalar.hpp"

namespace sinter::cuda_impl {

/// f(i), or what the thread has kept of it.
template <class T, class F>
struct kept_values {
  const T* held;
  F f;
  SINTER_WORD T operator()(index_t i) const { return held != nullptr ? held[i] : f(i); }
};

/// One thread's view of its row: keep(), fold() and each() go over the row together with the other threads of the group. A
/// row that is out of range takes part in the meetings and touches no memory.
template <class T, class G>
struct row_team {
  const G& g;
  T* states;
  T* held;  ///< room for the values of a row, several times; null where they take too much
  index_t n;
  int group, place;

  /// f, evaluated now where there is room: it may be what was kept in the same room before.
  template <class F>
  SINTER_WORD kept_values<T, F> keep(const F& f, int room = 0) const {
    if (held == nullptr) return {nullptr, f};
    T* const to = held + room * n;
    constexpr int together = 6;  // reads in flight
    for (index_t first = place; first < n; first += together * group) {
      T x[together];
      SINTER_UNROLL
      for (int k = 0; k < together; ++k) x[k] = f(first + k * group < n ? first + k * group : first);
      SINTER_UNROLL
      for (int k = 0; k < together; ++k)
        if (first + k * group < n) to[first + k * group] = x[k];
    }
    return {to, f};
  }

  /// combine over f(i) for all i of the row, the same value for every thread.
  template <class Combine, class F>
  SINTER_WORD T fold(T identity, const Combine& combine, const F& f) const {
    T s = identity;
    for (index_t i = place; i < n; i += group) s = combine(s, f(i));
    g.sync();
    states[g.thread()] = s;
    for (int step = group / 2; step > 0; step /= 2) {
      g.sync();
      if (place < step) states[g.thread()] = combine(states[g.thread()], states[g.thread() + step]);
    }
    g.sync();
    return states[g.thread() - place];
  }
  template <class F>
  SINTER_WORD T sum(const F& f) const {
    return fold(T(0), [](T a, T b) { return a + b; }, f);
  }
  template <class F>
  SINTER_WORD T max(const F& f) const {
    return fold(-std::numeric_limits<T>::infinity(), [](T a, T b) { return math::max(a, b); }, f);
  }
  template <class F>
  SINTER_WORD void each(const F& f) const {
    for (index_t i = place; i < n; i += group) {
      keep_loop(i);
      f(i);
    }
  }
};

/// A shift that leaves exp(x - shift) free of overflow, and of inf - inf.
template <class T>
SINTER_WORD T row_shift(T max) {
  return max == -std::numeric_limits<T>::infinity() ? T(0) : max;
}

struct softmax_rows {
  template <class Team, class X, class Put, class C>
  SINTER_WORD void run(const Team& team, const X& x, const Put& put, C*) const {
    const auto v = team.keep(x);
    const C shift = row_shift(team.max(v));
    const auto power = [&](index_t i) { return math::exp(v(i) - shift); };
    const auto e = team.keep(power);
    const C scale = C(1) / team.sum(e);
    team.each([&](index_t i) { put(i, e(i) * scale); });
  }
  template <class Team, class Y, class Put, class C>
  SINTER_WORD void reverse(const Team& team, const Y& y, const Y& g, const C*, const Put& put) const {
    const C dot = team.sum([&](index_t i) { return g(i) * y(i); });
    team.each([&](index_t i) { put(i, y(i) * (g(i) - dot)); });
  }
};

struct log_softmax_rows {
  template <class Team, class X, class Put, class C>
  SINTER_WORD void run(const Team& team, const X& x, const Put& put, C*) const {
    const auto v = team.keep(x);
    const C shift = row_shift(team.max(v));
    const C rest = math::log(team.sum([&](index_t i) { return math::exp(v(i) - shift); }));
    team.each([&](index_t i) { put(i, (v(i) - shift) - rest); });
  }
  template <class Team, class Y, class Put, class C>
  SINTER_WORD void reverse(const Team& team, const Y& y, const Y& g, const C*, const Put& put) const {
    const C total = team.sum([&](index_t i) { return g(i); });
    team.each([&](index_t i) { put(i, g(i) - math::exp(y(i)) * total); });
  }
};

template <bool Centred>
struct norm_rows {
  double eps;

  template <class Team, class X, class Put, class C>
  SINTER_WORD void run(const Team& team, const X& x, const Put& put, C* saved) const {
    const auto v = team.keep(x);
    const C count = static_cast<C>(team.n);
    C mean = 0;
    if constexpr (Centred) mean = team.sum(v) / count;
    const C power = team.sum([&](index_t i) { return (v(i) - mean) * (v(i) - mean); }) / count;
    const C factor = C(1) / math::sqrt(power + static_cast<C>(eps));
    if (team.place == 0 && saved != nullptr) *saved = factor;
    team.each([&](index_t i) { put(i, (v(i) - mean) * factor); });
  }
  template <class Team, class Y, class Put, class C>
  SINTER_WORD void reverse(const Team& team, const Y& y, const Y& g, const C* saved, const Put& put) const {
    const C count = static_cast<C>(team.n);
    C mean = 0;
    if constexpr (Centred) mean = team.sum([&](index_t i) { return g(i); }) / count;
    const C slope = team.sum([&](index_t i) { return g(i) * y(i); }) / count;
    const C factor = *saved;
    team.each([&](index_t i) { put(i, factor * (g(i) - mean - y(i) * slope)); });
  }
};

/// Rows of n values of type T, `group` threads to each; derived bodies say what is done with a row.
template <class T>
struct row_groups {
  static constexpr int blocks_at_once = 4;  ///< on a multiprocessor: some read while others compute
  index_t rows = 0, n = 0;
  int group = 1;
  int rooms = 0;  ///< how many times a row is kept in shared memory

  row_groups(index_t count, index_t length, int wanted_rooms) : rows(count), n(length) {
    while (group < block_threads && group < n) group *= 2;
    constexpr index_t most_kept = 44 * 1024;  // with the states within what every kernel has
    if (wanted_rooms * n <= most_kept / static_cast<index_t>(sizeof(T)) / together()) rooms = wanted_rooms;
  }
  SINTER_WORD int together() const { return block_threads / group; }
  launch_shape launch() const {
    return {blocks_for(rows, together()), sizeof(T) * static_cast<std::size_t>(block_threads + together() * rooms * n)};
  }

  /// f(row, team) for every row; team.n is 0 where there is none left.
  template <class G, class F>
  SINTER_WORD void each_row(const G& g, const F& f) const {
    T* const states = g.template shared<T>();
    T* const held = rooms > 0 ? states + block_threads + g.thread() / group * rooms * n : nullptr;
    for (index_t first = g.block() * together(); first < rows; first += g.blocks() * together()) {
      const index_t row = first + g.thread() / group;
      f(row < rows ? row : rows - 1, row_team<T, G>{g, states, held, row < rows ? n : 0, group, g.thread() % group}, row < rows);
    }
  }
};

template <class Kernel, class K, class T, class Put>
struct rows_body : row_groups<compute_type<T>> {
  using C = compute_type<T>;
  element_source<K> source;
  Kernel kernel;
  Put put;
  C* saved;

  rows_body(const element_source<K>& x, const Kernel& k, const Put& p, C* s, index_t count, index_t length)
      : row_groups<C>(count, length, 1), source(x), kernel(k), put(p), saved(s) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool there) {
      const index_t first = row * this->n;
      kernel.run(
          team, [&](index_t i) { return source(first + i); }, [&](index_t i, C x) { put(first + i, x); },
          there && saved != nullptr ? saved + row : static_cast<C*>(nullptr));
    });
  }
};

template <class Kernel, class T>
struct reverse_rows_body : row_groups<compute_type<T>> {
  using C = compute_type<T>;
  Kernel kernel;
  const T* y;
  const T* g_of_y;
  const C* saved;
  T* dx;
  bool add;

  reverse_rows_body(const Kernel& k, const T* result, const T* gradient, const C* s, T* to, index_t count, index_t length, bool adds)
      : row_groups<C>(count, length, 2), kernel(k), y(result), g_of_y(gradient), saved(s), dx(to), add(adds) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool) {
      struct values {
        const T* of_row;
        SINTER_WORD C operator()(index_t i) const { return of_row[i]; }
      };
      const index_t first = row * this->n;
      const values result{y + first}, gradient{g_of_y + first};
      T* const to = dx + first;
      kernel.reverse(team, team.keep(result, 0), team.keep(gradient, 1), saved != nullptr ? saved + row : nullptr,
                     [&](index_t i, C d) { to[i] = add ? to[i] + d : d; });
    });
  }
};

/// loss[row] = logsumexp(x) - x[label]; both parts of the former are kept in lse[2 row] for backward.
template <class K, class T>
struct cross_entropy_body : row_groups<compute_type<T>> {
  using C = compute_type<T>;
  element_source<K> source;
  const std::int64_t* labels;
  T* loss;
  C* lse;

  cross_entropy_body(const element_source<K>& x, const std::int64_t* label, T* to, C* parts, index_t count, index_t length)
      : row_groups<C>(count, length, 1), source(x), labels(label), loss(to), lse(parts) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool there) {
      const index_t length = this->n;
      const auto x = [&](index_t i) { return source(row * length + i); };
      const auto v = team.keep(x);
      const C shift = row_shift(team.max(v));
      const C rest = math::log(team.sum([&](index_t i) { return math::exp(v(i) - shift); }));
      if (!there || team.place != 0) return;
      lse[2 * row] = shift;
      lse[2 * row + 1] = rest;
      const bool is_class = labels[row] >= 0 && labels[row] < length;
      loss[row] = is_class ? rest - (x(labels[row]) - shift) : std::numeric_limits<C>::quiet_NaN();
    });
  }
};

/// dx = g[row] (exp(x - lse) - [column == label])
template <class K, class T>
struct reverse_cross_entropy_body : row_groups<compute_type<T>> {
  using C = compute_type<T>;
  element_source<K> source;
  const std::int64_t* labels;
  const C* lse;
  const T* g_of_loss;
  T* dx;
  bool add;

  reverse_cross_entropy_body(const element_source<K>& x, const std::int64_t* label, const C* parts, const T* gradient, T* to, index_t count, index_t length,
                             bool adds)
      : row_groups<C>(count, length, 0), source(x), labels(label), lse(parts), g_of_loss(gradient), dx(to), add(adds) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool there) {
      if (!there) return;
      const index_t length = this->n;
      const C shift = lse[2 * row], rest = lse[2 * row + 1], scale = g_of_loss[row];
      T* const to = dx + row * length;
      team.each([&](index_t i) {
        const C exponent = (source(row * length + i) - shift) - rest;
        const C d = (i == labels[row] ? math::expm1(exponent) : math::exp(exponent)) * scale;
        to[i] = add ? to[i] + d : d;
      });
    });
  }
};

}  // namespace sinter::cuda_impl
