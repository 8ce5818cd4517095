// sinter/expr/reducer.hpp: the folds behind reductions; they know nothing of axes, memory or devices.
//
// A reducer has a state, identity(), push(state, value, index), merge(earlier, later) and finish(state), or
// finish(state, n) where the result depends on how many values there were.
// `vectorised<T>` says that combine() on vectors of T folds as well, and `of` makes a state of the folded value. Where
// what is folded is not the values, term(vector) gives it. Where a fold of T may leave its range, is_in_range(folded)
// says that it did not; if it did, the values are pushed one by one.
// `depends_on_index` says that the result depends on the indices, which count the values in the order of the shape.
#pragma once

#include <concepts>
#include <limits>

#include "sinter/core/types.hpp"
#include "sinter/math/scalar.hpp"

namespace sinter::detail {

/// What sums are gathered in: double for floating point, int64 for integers and bool.
template <class T>
using wide = std::conditional_t<floating_element<T>, double, std::int64_t>;
template <class T>
using sum_type = std::conditional_t<floating_element<T>, T, std::int64_t>;

template <class R>
inline constexpr bool depends_on_index = requires { R::depends_on_index; };

/// The result of n values.
template <class R>
SINTER_WORD typename R::result finish_fold_of(const typename R::state& s, index_t n) {
  if constexpr (requires { R::finish(s, n); }) return R::finish(s, n);
  else return R::finish(s);
}

template <class T>
struct sum_reducer {
  using state = wide<T>;
  using result = sum_type<T>;
  template <class U>
  static constexpr bool vectorised = floating_element<U>;
  SINTER_WORD static state identity() { return 0; }
  SINTER_WORD static void push(state& s, T x, index_t) { s += static_cast<state>(x); }
  SINTER_WORD static state merge(state a, state b) { return a + b; }
  SINTER_WORD static result finish(state s) { return static_cast<result>(s); }
  template <class V>
  static V combine(V a, V b) {
    return a + b;
  }
  template <class V>
  static T horizontal(V v) {
    return math::hsum(v);
  }
  static state of(T x) { return static_cast<state>(x); }
  template <class V>
    requires std::same_as<T, float>
  static auto is_in_range(V folded) {
    return math::isfinite(folded);
  }
};

/// Divided by their number before the sum is rounded: the sum may be beyond the range of T.
template <class T>
struct mean_reducer : sum_reducer<T> {
  SINTER_WORD static T finish(double s, index_t n) { return static_cast<T>(s / static_cast<double>(n)); }
};

template <class T>
struct prod_reducer {
  using state = wide<T>;
  using result = sum_type<T>;
  template <class U>
  static constexpr bool vectorised = floating_element<U>;
  SINTER_WORD static state identity() { return 1; }
  SINTER_WORD static void push(state& s, T x, index_t) { s *= static_cast<state>(x); }
  SINTER_WORD static state merge(state a, state b) { return a * b; }
  SINTER_WORD static result finish(state s) { return static_cast<result>(s); }
  template <class V>
  static V combine(V a, V b) {
    return a * b;
  }
  template <class V>
  static T horizontal(V v) {
    return math::hprod(v);
  }
  static state of(T x) { return static_cast<state>(x); }
};

/// The sum of squares, in double: those of a float are in its range.
template <class T>
struct squares_reducer {
  using state = double;
  using result = T;
  template <class U>
  static constexpr bool vectorised = floating_element<U>;
  SINTER_WORD static state identity() { return 0; }
  SINTER_WORD static void push(state& s, T x, index_t) { s += static_cast<double>(x) * static_cast<double>(x); }
  SINTER_WORD static state merge(state a, state b) { return a + b; }
  template <class V>
  static V term(V x) {
    return x * x;
  }
  template <class V>
  static V combine(V a, V b) {
    return a + b;
  }
  template <class V>
  static T horizontal(V v) {
    return math::hsum(v);
  }
  static state of(T x) { return static_cast<state>(x); }
  /// Squares that underflow are too small to show beside such a sum.
  template <class V>
  static auto exceeds_lost_squares(V folded) {
    using limits = std::numeric_limits<T>;
    constexpr T least = limits::min() / (limits::epsilon() * limits::epsilon());
    return math::logical_and(folded > least, folded < limits::infinity());
  }
  template <class V>
    requires std::same_as<T, float>
  static auto is_in_range(V folded) {
    return exceeds_lost_squares(folded);
  }
};

/// The sum of squares over n - 1.
template <class T>
struct var_reducer : squares_reducer<T> {
  SINTER_WORD static T finish(double s, index_t n) {
    return n > 1 ? static_cast<T>(s / static_cast<double>(n - 1)) : std::numeric_limits<T>::quiet_NaN();
  }
};

/// The sum of squares over n.
template <class T>
struct mean_square_reducer : squares_reducer<T> {
  SINTER_WORD static T finish(double s, index_t n) { return static_cast<T>(s / static_cast<double>(n)); }
};

/// The root of the sum of squares.
template <class T>
struct norm_reducer : squares_reducer<T> {
  SINTER_WORD static T finish(double s) { return static_cast<T>(math::sqrt(s)); }
  /// The results of n states: in vectors the roots of sums that are in the range of T.
  template <class V>
  static void finish_all(const double* s, T* out, index_t n, int lanes) {
    using limits = std::numeric_limits<T>;
    index_t i = 0;
    for (; i + lanes <= n; i += lanes) {
      for (int k = 0; k < lanes; ++k) out[i + k] = static_cast<T>(s[i + k]);
      const V sum = V::load(out + i);
      if (math::all(math::logical_and(sum >= limits::min(), sum < limits::infinity()))) math::sqrt(sum).store(out + i);
      else
        for (int k = 0; k < lanes; ++k) out[i + k] = finish(s[i + k]);
    }
    for (; i < n; ++i) out[i] = finish(s[i]);
  }
};

/// Squares of doubles leave the range, so those of large and of small ones are summed scaled: Blue, "A portable Fortran
/// program to find the Euclidean norm of a vector", 1978; the constants are those of Anderson, "Algorithm 978", 2017.
template <>
struct norm_reducer<double> : squares_reducer<double> {
  struct state {
    double large, middle, tiny;  ///< NaN is in the middle
  };
  static constexpr double from_large = 0x1p486, scale_large = 0x1p-538;
  static constexpr double below_small = 0x1p-511, scale_small = 0x1p537;
  SINTER_WORD static state identity() { return {0, 0, 0}; }
  SINTER_WORD static void push(state& s, double x, index_t) {
    const double size = math::abs(x);
    const bool is_large = size > from_large, is_small = size < below_small;
    const double scaled = x * (is_large ? scale_large : is_small ? scale_small : 1.), squared = scaled * scaled;
    s.large += is_large ? squared : 0.;
    s.tiny += is_small ? squared : 0.;
    s.middle += is_large || is_small ? 0. : squared;
  }
  SINTER_WORD static state merge(const state& a, const state& b) {
    return {a.large + b.large, a.middle + b.middle, a.tiny + b.tiny};
  }
  SINTER_WORD static double finish(const state& s) {
    if (s.large > 0) return math::sqrt(s.large + s.middle * scale_large * scale_large) / scale_large;
    if (!(s.tiny > 0)) return math::sqrt(s.middle);
    if (s.middle == 0) return math::sqrt(s.tiny) / scale_small;
    return math::sqrt(s.middle + s.tiny / scale_small / scale_small);
  }
  static state of(double x) { return {0, x, 0}; }
  template <class V>
  static auto is_in_range(V folded) {
    return exceeds_lost_squares(folded);
  }
};

template <class T, bool Max>
struct extreme_reducer {
  using state = T;
  using result = T;
  template <class U>
  static constexpr bool vectorised = floating_element<U>;
  SINTER_WORD static state identity() {
    using limits = std::numeric_limits<T>;
    if constexpr (limits::has_infinity) return Max ? -limits::infinity() : limits::infinity();
    else return Max ? limits::lowest() : limits::max();
  }
  SINTER_WORD static void push(state& s, T x, index_t) { s = merge(s, x); }
  SINTER_WORD static state merge(state a, state b) {
    if constexpr (std::is_same_v<T, bool>) return Max ? a || b : a && b;
    else return Max ? math::max(a, b) : math::min(a, b);
  }
  SINTER_WORD static result finish(state s) { return s; }
  template <class V>
  static V combine(V a, V b) {
    return Max ? math::max(a, b) : math::min(a, b);
  }
  template <class V>
  static T horizontal(V v) {
    return Max ? math::hmax(v) : math::hmin(v);
  }
  static state of(T x) { return x; }
};

template <class T>
using max_reducer = extreme_reducer<T, true>;
template <class T>
using min_reducer = extreme_reducer<T, false>;

/// Index of the first largest (smallest) value; the first NaN wins over all, as in NumPy.
template <class T, bool Max>
struct arg_reducer {
  struct state {
    T value;
    index_t index;
  };
  using result = std::int64_t;
  static constexpr bool depends_on_index = true;
  template <class U>
  static constexpr bool vectorised = false;
  SINTER_WORD static state identity() { return {T{}, -1}; }
  SINTER_WORD static bool beats(T x, T y) {
    if (math::isnan(y)) return false;
    return (Max ? x > y : x < y) || math::isnan(x);
  }
  SINTER_WORD static void push(state& s, T x, index_t i) {
    if (s.index < 0 || beats(x, s.value)) s = {x, i};
  }
  SINTER_WORD static state merge(state a, state b) {
    if (b.index < 0) return a;
    if (a.index < 0 || beats(b.value, a.value)) return b;
    return b.index < a.index && !beats(a.value, b.value) ? b : a;
  }
  SINTER_WORD static result finish(state s) { return s.index; }
  /// Looks for the place only in pieces of the run whose largest (smallest) value beats those before.
  template <class V>
    requires std::floating_point<T>
  static state fold_run(const T* x, index_t n, index_t first, int lanes) {
    state s = identity();
    index_t i = 0;
    while (i + lanes <= n) {
      const index_t begin = i, end = n - i < 8 * lanes ? n - n % lanes : i + 8 * lanes;
      V lane_best = V::load(x + i);
      for (i += lanes; i < end; i += lanes)
        lane_best = Max ? math::max(lane_best, V::load(x + i)) : math::min(lane_best, V::load(x + i));
      const T best = Max ? math::hmax(lane_best) : math::hmin(lane_best);
      if (s.index >= 0 && !beats(best, s.value)) continue;
      index_t at = begin;
      while (math::isnan(best) ? !math::isnan(x[at]) : x[at] != best) ++at;
      s = {best, first + at};
    }
    for (; i < n; ++i) push(s, x[i], first + i);
    return s;
  }
};

template <class T>
using argmax_reducer = arg_reducer<T, true>;
template <class T>
using argmin_reducer = arg_reducer<T, false>;

/// The largest (smallest) value so far with its index: of equals the last, as in PyTorch; NaN wins over all.
template <class T, bool Max>
struct running_reducer : arg_reducer<T, Max> {
  using arg = arg_reducer<T, Max>;
  using state = typename arg::state;
  SINTER_WORD static void push(state& s, T x, index_t i) {
    if (s.index < 0 || !arg::beats(s.value, x)) s = {x, i};
  }
  SINTER_WORD static state merge(state a, state b) {
    if (b.index < 0) return a;
    if (a.index < 0) return b;
    if (b.index < a.index) return arg::beats(b.value, a.value) ? b : a;
    return arg::beats(a.value, b.value) ? a : b;
  }
  template <class V>
  static state fold_run(const T*, index_t, index_t, int) = delete;  // that of `arg` takes the first of equals
};

template <class T, bool Any>
struct logical_reducer {
  using state = bool;
  using result = bool;
  template <class U>
  static constexpr bool vectorised = false;
  SINTER_WORD static state identity() { return !Any; }
  SINTER_WORD static void push(state& s, T x, index_t) { s = merge(s, x != T(0)); }
  SINTER_WORD static state merge(state a, state b) { return Any ? a || b : a && b; }
  SINTER_WORD static result finish(state s) { return s; }
};

template <class T>
using any_reducer = logical_reducer<T, true>;
template <class T>
using all_reducer = logical_reducer<T, false>;

/// log of the sum of exponentials, relative to the largest value so far.
template <class T>
struct logsumexp_reducer {
  struct state {
    T max;
    T sum;
  };
  using result = T;
  template <class U>
  static constexpr bool vectorised = false;
  static constexpr T infinity = std::numeric_limits<T>::infinity();
  SINTER_WORD static state identity() { return {-infinity, T(0)}; }
  SINTER_WORD static void push(state& s, T x, index_t) {
    if (x <= s.max && s.max > -infinity && s.max < infinity) s.sum += math::exp(x - s.max);
    else s = merge(s, {x, T(1)});
  }
  SINTER_WORD static state merge(state a, state b) {
    if (a.max == -infinity && !(b.max != b.max)) return b;
    if (b.max == -infinity) return a;
    const T m = math::max(a.max, b.max);
    if (m == infinity) return {m, T(1)};
    return {m, a.sum * math::exp(a.max - m) + b.sum * math::exp(b.max - m)};
  }
  SINTER_WORD static result finish(state s) {
    if (s.max == -infinity || s.max == infinity) return s.max;
    return s.max + math::log(s.sum);
  }
  template <class V>
  static state fold_run(const T* x, index_t n, index_t, int lanes) {
    state s = identity();
    index_t i = 0;
    if (n >= lanes) {
      V largest = V::load(x);
      for (i = lanes; i + lanes <= n; i += lanes) largest = math::max(largest, V::load(x + i));
      const T m = math::hmax(largest);
      if (m > -infinity && m < infinity) {
        V sum(T(0));
        for (index_t j = 0; j < i; j += lanes) sum = sum + math::exp(V::load(x + j) - V(m));
        s = {m, math::hsum(sum)};
      } else {
        s = {m, T(1)};
      }
    }
    for (; i < n; ++i) push(s, x[i], i);
    return s;
  }
};

/// The same for a scan, in double: a rounded sum would be rescaled, and rounded again, with every new largest value.
template <class T>
struct running_logsumexp_reducer : logsumexp_reducer<double> {
  using base = logsumexp_reducer<double>;
  using result = T;
  SINTER_WORD static void push(state& s, T x, index_t i) { base::push(s, static_cast<double>(x), i); }
  SINTER_WORD static result finish(state s) { return static_cast<result>(base::finish(s)); }
};

/// Where a scan leaves its state at element i: as the fold's result, or as a value and its index.
template <class R>
struct scan_results {
  typename R::result* values;
  SINTER_WORD void put(index_t i, const typename R::state& s) const { values[i] = R::finish(s); }
};
template <class T>
struct scan_extremes {
  T* values;
  std::int64_t* indices;
  template <class State>
  SINTER_WORD void put(index_t i, const State& s) const {
    values[i] = s.value;
    indices[i] = s.index;
  }
};

}  // namespace sinter::detail
