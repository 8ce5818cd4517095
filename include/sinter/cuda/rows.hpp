// sinter/cuda/rows.hpp: the bodies of softmax, layer_norm and their relatives: the threads of a group share a row.
#pragma once

#include <cmath>
#include <limits>

#include "sinter/cuda/element.hpp"
#include "sinter/math/scalar.hpp"

namespace sinter::cuda_impl {

/// One thread's view of its row: fold() and each() go over the row together with the other threads of the group. A row
/// that is out of range takes part in the meetings and touches no memory.
template <class T, class G>
struct row_team {
  const G& g;
  T* states;
  index_t n;
  int group, place;

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
    for (index_t i = place; i < n; i += group) f(i);
  }
};

/// A shift that leaves exp(x - shift) free of overflow, and of inf - inf.
template <class T>
SINTER_WORD T row_shift(T max) {
  return max == -std::numeric_limits<T>::infinity() ? T(0) : max;
}

struct softmax_rows {
  template <class Team, class T, class X>
  SINTER_WORD void run(const Team& team, const X& x, T* y, compute_type<T>*) const {
    using C = compute_type<T>;
    const C shift = row_shift(team.max(x));
    const C scale = C(1) / team.sum([&](index_t i) { return math::exp(x(i) - shift); });
    team.each([&](index_t i) { y[i] = math::exp(x(i) - shift) * scale; });
  }
  template <class Team, class T, class Put>
  SINTER_WORD void reverse(const Team& team, const T* y, const T* g, const compute_type<T>*, const Put& put) const {
    const compute_type<T> dot = team.sum([&](index_t i) { return g[i] * y[i]; });
    team.each([&](index_t i) { put(i, y[i] * (g[i] - dot)); });
  }
};

struct log_softmax_rows {
  template <class Team, class T, class X>
  SINTER_WORD void run(const Team& team, const X& x, T* y, compute_type<T>*) const {
    using C = compute_type<T>;
    const C shift = row_shift(team.max(x));
    const C rest = math::log(team.sum([&](index_t i) { return math::exp(x(i) - shift); }));
    team.each([&](index_t i) { y[i] = (x(i) - shift) - rest; });
  }
  template <class Team, class T, class Put>
  SINTER_WORD void reverse(const Team& team, const T* y, const T* g, const compute_type<T>*, const Put& put) const {
    const compute_type<T> total = team.sum([&](index_t i) { return g[i]; });
    team.each([&](index_t i) { put(i, g[i] - math::exp(y[i]) * total); });
  }
};

template <bool Centred>
struct norm_rows {
  double eps;

  template <class Team, class T, class X>
  SINTER_WORD void run(const Team& team, const X& x, T* y, compute_type<T>* saved) const {
    using C = compute_type<T>;
    const C count = static_cast<C>(team.n);
    C mean = 0;
    if constexpr (Centred) mean = team.sum(x) / count;
    const C power = team.sum([&](index_t i) { return (x(i) - mean) * (x(i) - mean); }) / count;
    const C factor = C(1) / math::sqrt(power + static_cast<C>(eps));
    if (team.place == 0) *saved = factor;
    team.each([&](index_t i) { y[i] = (x(i) - mean) * factor; });
  }
  template <class Team, class T, class Put>
  SINTER_WORD void reverse(const Team& team, const T* y, const T* g, const compute_type<T>* saved, const Put& put) const {
    using C = compute_type<T>;
    const C count = static_cast<C>(team.n);
    C mean = 0;
    if constexpr (Centred) mean = team.sum([&](index_t i) { return g[i]; }) / count;
    const C slope = team.sum([&](index_t i) { return g[i] * y[i]; }) / count;
    const C factor = *saved;
    team.each([&](index_t i) { put(i, factor * (g[i] - mean - y[i] * slope)); });
  }
};

/// Rows of n, `group` threads to each; derived bodies say what is done with a row.
struct row_groups {
  index_t rows = 0, n = 0;
  int group = 1;

  row_groups(index_t count, index_t length) : rows(count), n(length) {
    while (group < block_threads && group < n) group *= 2;
  }
  launch_shape launch(std::size_t element_size) const {
    return {blocks_for(rows, block_threads / group), element_size * block_threads};
  }

  /// f(row, team) for every row; team.n is 0 where there is none left.
  template <class T, class G, class F>
  SINTER_WORD void each_row(const G& g, const F& f) const {
    T* const states = g.template shared<T>();
    const int together = g.threads() / group;
    for (index_t first = g.block() * together; first < rows; first += g.blocks() * together) {
      const index_t row = first + g.thread() / group;
      f(row < rows ? row : rows - 1, row_team<T, G>{g, states, row < rows ? n : 0, group, g.thread() % group}, row < rows);
    }
  }
};

template <class Kernel, class K, class T>
struct rows_body : row_groups {
  element_source<K> source;
  Kernel kernel;
  T* out;
  compute_type<T>* saved;

  rows_body(const element_source<K>& x, const Kernel& k, T* y, compute_type<T>* s, index_t count, index_t length)
      : row_groups(count, length), source(x), kernel(k), out(y), saved(s) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_row<compute_type<T>>(g, [&](index_t row, const auto& team, bool there) {
      compute_type<T> nowhere;
      kernel.run(team, [&](index_t i) { return source(row * n + i); }, out + row * n, there && saved != nullptr ? saved + row : &nowhere);
    });
  }
};

template <class Kernel, class T>
struct reverse_rows_body : row_groups {
  Kernel kernel;
  const T* y;
  const T* g_of_y;
  const compute_type<T>* saved;
  T* dx;
  bool add;

  reverse_rows_body(const Kernel& k, const T* result, const T* gradient, const compute_type<T>* s, T* to, index_t count, index_t length, bool adds)
      : row_groups(count, length), kernel(k), y(result), g_of_y(gradient), saved(s), dx(to), add(adds) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_row<compute_type<T>>(g, [&](index_t row, const auto& team, bool) {
      T* const to = dx + row * n;
      kernel.reverse(team, y + row * n, g_of_y + row * n, saved != nullptr ? saved + row : nullptr,
                     [&](index_t i, compute_type<T> d) { to[i] = add ? to[i] + d : d; });
    });
  }
};

/// loss[row] = logsumexp(x) - x[label]; both parts of the former are kept in lse[2 row] for backward.
template <class K, class T>
struct cross_entropy_body : row_groups {
  element_source<K> source;
  const std::int64_t* labels;
  T* loss;
  compute_type<T>* lse;

  cross_entropy_body(const element_source<K>& x, const std::int64_t* label, T* to, compute_type<T>* parts, index_t count, index_t length)
      : row_groups(count, length), source(x), labels(label), loss(to), lse(parts) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_row<compute_type<T>>(g, [&](index_t row, const auto& team, bool there) {
      const auto x = [&](index_t i) { return source(row * n + i); };
      const compute_type<T> shift = row_shift(team.max(x));
      const compute_type<T> rest = math::log(team.sum([&](index_t i) { return math::exp(x(i) - shift); }));
      if (!there || team.place != 0) return;
      lse[2 * row] = shift;
      lse[2 * row + 1] = rest;
      const bool is_class = labels[row] >= 0 && labels[row] < n;
      loss[row] = is_class ? rest - (x(labels[row]) - shift) : std::numeric_limits<compute_type<T>>::quiet_NaN();
    });
  }
};

/// dx = g[row] (exp(x - lse) - [column == label])
template <class K, class T>
struct reverse_cross_entropy_body : row_groups {
  element_source<K> source;
  const std::int64_t* labels;
  const compute_type<T>* lse;
  const T* g_of_loss;
  T* dx;
  bool add;

  reverse_cross_entropy_body(const element_source<K>& x, const std::int64_t* label, const compute_type<T>* parts, const T* gradient, T* to, index_t count,
                             index_t length, bool adds)
      : row_groups(count, length), source(x), labels(label), lse(parts), g_of_loss(gradient), dx(to), add(adds) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_row<compute_type<T>>(g, [&](index_t row, const auto& team, bool there) {
      if (!there) return;
      using C = compute_type<T>;
      const C shift = lse[2 * row], rest = lse[2 * row + 1], scale = g_of_loss[row];
      T* const to = dx + row * n;
      team.each([&](index_t i) {
        const C exponent = (source(row * n + i) - shift) - rest;
        const C d = (i == labels[row] ? math::expm1(exponent) : math::exp(exponent)) * scale;
        to[i] = add ? to[i] + d : d;
      });
    });
  }
};

}  // namespace sinter::cuda_impl
