// sinter/cpu/reduce.hpp: reductions of what a kernel produces, along any axes, in a fixed order of additions.
//
// The values are produced in short linear runs that stay in the first-level cache (or read in place where they lie in
// memory already) and folded at once. Sums fold at most 16 vectors in a row in each of four chains and add what comes
// out in double.
#pragma once

#include "sinter/cpu/epilogue.hpp"
#include "sinter/expr/reducer.hpp"

namespace sinter::cpu_impl {

/// Produces values of a kernel in linear order, or points to them where the kernel is a dense leaf.
template <class T>
class producer {
 public:
  static constexpr index_t run = 4096;
  using buffer_type = T[run];

  producer(const loop& l, bool is_leaf) : p_(l) {
    if (is_leaf) {
      index_t step = 1;
      bool dense = true;
      for (int d = p_.shape().rank - 1; d >= 0; --d) {
        dense = dense && p_.shape().in[0].strides[d] == step;
        step *= p_.shape().shape[d];
      }
      if (dense) direct_ = reinterpret_cast<const T*>(p_.shape().in[0].data);
    }
  }

  /// Values [begin, begin + n); `buffer` holds n of them.
  const T* get(index_t begin, index_t n, T* buffer) const {
    if (direct_ != nullptr) return direct_ + begin;
    char* const base[1] = {reinterpret_cast<char*>(buffer)};
    const bool add[1] = {false};
    p_.run(begin, begin + n, base, add, true);
    return buffer;
  }
  bool direct() const { return direct_ != nullptr; }

 private:
  prepared_loop p_;
  const T* direct_ = nullptr;
};

/// What a vector of values adds to a fold of R.
template <class R, class V>
SINTER_INLINE V term_of(V x) {
  if constexpr (requires { R::term(x); }) return R::term(x);
  else return x;
}

/// Must the values behind a fold, or behind one of n folds, be pushed one by one because it left the range?
template <class R, class S>
SINTER_INLINE bool left_range(S folded) {
  if constexpr (requires { R::is_in_range(folded); }) return !R::is_in_range(folded);
  else return false;
}
template <class R, class T>
SINTER_INLINE bool any_left_range(const T* folded, index_t n) {  // a multiple of the lanes
  using V = vector<T>;
  if constexpr (requires(V v) { R::is_in_range(v); }) {
    auto in_range = V(T(0)) == V(T(0));
    for (index_t i = 0; i < n; i += lanes) in_range = math::logical_and(in_range, R::is_in_range(V::load(folded + i)));
    return !math::all(in_range);
  } else {
    return false;
  }
}

template <class T>
bool are_zeros(const T* x, index_t n) {
  auto zero = vector<T>::load(x) == T(0);
  for (index_t i = lanes; i < n; i += lanes) zero = math::logical_and(zero, vector<T>::load(x + i) == T(0));
  return math::all(zero);
}

/// The state of n values, at least as many as there are lanes, that are pushed one by one; eight at a time, as they do
/// not depend on each other. Terms that are too small to fold are often those of zeros.
template <class R, class T>
[[gnu::noinline]] typename R::state push_each(const T* x, index_t n, index_t first) {
  constexpr index_t chains = 8;
  typename R::state s[std::size_t{chains}];
  for (auto& each : s) each = R::identity();
  index_t i = 0;
  if constexpr (requires(vector<T> v) { R::term(v); })
    if (const index_t whole = n / lanes * lanes; are_zeros(x, whole)) i = whole;
  for (; i + chains <= n; i += chains)
    for (index_t k = 0; k < chains; ++k) R::push(s[k], x[i + k], first + i + k);
  for (; i < n; ++i) R::push(s[0], x[i], first + i);
  for (index_t k = 1; k < chains; ++k) s[0] = R::merge(s[0], s[k]);
  return s[0];
}

/// Folds a contiguous run: in vectors where the reducer is an associative word, value by value otherwise.
template <class R, class T>
typename R::state fold(const T* x, index_t n, index_t first) {
  typename R::state s = R::identity();
  index_t i = 0;
  if constexpr (R::template vectorised<T>) {
    using V = vector<T>;
    constexpr index_t step = 4 * lanes;
    constexpr index_t block = 16 * step;
    // Terms that underflow are missed in the fold of their block; what exceeds the range still shows in the state.
    constexpr bool block_by_block = requires(V v) { R::term(v); };
    bool left = false;
    while (n - i >= step) {
      const index_t end = n - i < block ? n - step : i + block - step;
      const auto term = [x](index_t at) SINTER_INLINE_LAMBDA { return term_of<R>(V::load(x + at)); };
      V a = term(i), b = term(i + lanes), c = term(i + 2 * lanes), d = term(i + 3 * lanes);
      for (i += step; i <= end; i += step) {
        a = R::combine(a, term(i));
        b = R::combine(b, term(i + lanes));
        c = R::combine(c, term(i + 2 * lanes));
        d = R::combine(d, term(i + 3 * lanes));
      }
      const T folded = R::horizontal(R::combine(R::combine(a, b), R::combine(c, d)));
      if constexpr (block_by_block) left = left || left_range<R>(folded);
      s = R::merge(s, R::of(folded));
    }
    if constexpr (!block_by_block) left = left_range<R>(s);
    if (left) return push_each<R>(x, n, first);  // the last call: in the loop it would need a stack frame
  } else if constexpr (requires { R::template fold_run<vector<T>>(x, n, first, lanes); }) {
    s = R::template fold_run<vector<T>>(x, n, first, lanes);
    i = n;
  }
  for (; i < n; ++i) R::push(s, x[i], first + i);
  return s;
}

using sinter::detail::finish_fold_of, sinter::detail::fold_shape;

/// Elements of a row that one task takes where rows are longer.
inline constexpr index_t row_piece = 65536;

template <class R, class T>
void reduce_rows(const producer<T>& p, const fold_shape& s, typename R::result* out, thread_pool& pool,
                 const epilogue* after) {
  constexpr index_t run = producer<T>::run;
  using state = typename R::state;
  const auto fold_range = [&](index_t row, index_t begin, index_t end) {
    alignas(64) typename producer<T>::buffer_type buffer;
    state total = R::identity();
    for (index_t i = begin; i < end; i += run) {
      const index_t n = end - i < run ? end - i : run;
      total = R::merge(total, fold<R>(p.get(row * s.reduced + i, n, buffer), n, i));
    }
    return total;
  };
  if (s.reduced > row_piece) {
    const index_t pieces = (s.reduced + row_piece - 1) / row_piece;
    detail::temporary_array<state> partial(s.outer * pieces);
    pool.parallel_for(s.outer * pieces, [&](index_t t) {
      const index_t begin = t % pieces * row_piece;
      partial[t] = fold_range(t / pieces, begin, begin + row_piece < s.reduced ? begin + row_piece : s.reduced);
    });
    for (index_t row = 0; row < s.outer; ++row) {
      state total = R::identity();
      for (index_t i = 0; i < pieces; ++i) total = R::merge(total, partial[row * pieces + i]);
      out[row] = finish_fold_of<R>(total, s.reduced);
    }
    finish_range(after, index_t{0}, s.outer);
    return;
  }
  const index_t rows = 32768 / (s.reduced > 0 ? s.reduced : 1) + 1;
  pool.parallel_for((s.outer + rows - 1) / rows, [&](index_t t) {
    const index_t begin = t * rows;
    const index_t end = begin + rows < s.outer ? begin + rows : s.outer;
    if (s.reduced <= run / 2) {
      // Short rows are produced several at a time.
      alignas(64) typename producer<T>::buffer_type buffer;
      const index_t together = s.reduced > 0 ? run / s.reduced : end - begin;
      for (index_t row = begin; row < end; row += together) {
        const index_t n = end - row < together ? end - row : together;
        const T* x = s.reduced > 0 ? p.get(row * s.reduced, n * s.reduced, buffer) : buffer;
        for (index_t i = 0; i < n; ++i)
          out[row + i] =
              finish_fold_of<R>(R::merge(R::identity(), fold<R>(x + i * s.reduced, s.reduced, 0)), s.reduced);
      }
    } else {
      for (index_t row = begin; row < end; ++row)
        out[row] = finish_fold_of<R>(fold_range(row, 0, s.reduced), s.reduced);
    }
    finish_range(after, begin, end);
  });
}

inline constexpr index_t columns_at_once = 512, rows_in_a_row = 16;

/// How many pieces the rows are cut in where there are too few blocks of columns to share.
inline index_t pieces_of_columns(const fold_shape& s, index_t blocks) {
  index_t pieces = s.outer * blocks >= 8 ? 1 : s.reduced * s.inner * s.outer / row_piece;
  if (pieces > 64) pieces = 64;
  if (pieces > s.reduced) pieces = s.reduced;
  return pieces < 1 ? 1 : pieces;
}

/// Folds rows [begin, end), of which row_at(r) gives n values, onto the states of their columns; in vectors as `fold`.
template <class R, class Rows>
void fold_columns(typename R::state* total, index_t n, index_t begin, index_t end, const Rows& row_at) {
  using T = std::remove_cvref_t<decltype(*row_at(begin))>;
  if constexpr (R::template vectorised<T>) {
    using V = vector<T>;
    alignas(64) T folded[columns_at_once];
    const index_t whole = n - n % lanes;
    for (index_t row = begin; row < end; ++row) {
      const T* const x = row_at(row);
      if (row == begin)
        for (index_t i = 0; i < whole; i += lanes) term_of<R>(V::load(x + i)).store(folded + i);
      else
        for (index_t i = 0; i < whole; i += lanes)
          R::combine(V::load(folded + i), term_of<R>(V::load(x + i))).store(folded + i);
      for (index_t i = whole; i < n; ++i) R::push(total[i], x[i], row);
    }
    if (!any_left_range<R>(folded, whole)) {
      for (index_t i = 0; i < whole; ++i) total[i] = R::merge(total[i], R::of(folded[i]));
      return;
    }
    for (index_t row = begin; row < end; ++row) {
      const T* const x = row_at(row);
      for (index_t i = 0; i < whole; ++i) R::push(total[i], x[i], row);
    }
  } else {
    for (index_t row = begin; row < end; ++row) {
      const T* const x = row_at(row);
      for (index_t i = 0; i < n; ++i) R::push(total[i], x[i], row);
    }
  }
}

template <class R, class T>
void reduce_columns(const producer<T>& p, const fold_shape& s, typename R::result* out, thread_pool& pool,
                    const epilogue* after) {
  using state = typename R::state;
  constexpr index_t width = columns_at_once;
  const index_t blocks = (s.inner + width - 1) / width;
  const index_t pieces = pieces_of_columns(s, blocks);  // whose states merge in order
  const index_t rows = (s.reduced + pieces - 1) / pieces;
  detail::temporary_array<state> partial(pieces > 1 ? pieces * s.outer * s.inner : 0);
  pool.parallel_for(s.outer * blocks * pieces, [&](index_t t) {
    const index_t piece = t % pieces;
    const index_t block = t / pieces % blocks;
    const index_t outer = t / pieces / blocks;
    const index_t column = block * width;
    const index_t n = s.inner - column < width ? s.inner - column : width;
    alignas(64) T buffer[width];
    const index_t end = (piece + 1) * rows < s.reduced ? (piece + 1) * rows : s.reduced;
    const auto row_at = [&](index_t r) { return p.get((outer * s.reduced + r) * s.inner + column, n, buffer); };
    // Doubles have no wider type to gather them: states of 16 runs of rows fold into one of the next level, so that few
    // additions follow one another.
    constexpr int levels = std::is_same_v<T, double> && R::template vectorised<T> ? 5 : 1;
    state part[std::size_t{levels}][width];
    for (auto& level : part)
      for (index_t i = 0; i < n; ++i) level[i] = R::identity();
    index_t runs = 0;
    for (index_t row = piece * rows; row < end; row += rows_in_a_row) {
      fold_columns<R>(part[0], n, row, row + rows_in_a_row < end ? row + rows_in_a_row : end, row_at);
      index_t done_runs = ++runs;
      for (int k = 0; k + 1 < levels && done_runs % 16 == 0; ++k, done_runs /= 16)
        for (index_t i = 0; i < n; ++i) {
          part[k + 1][i] = R::merge(part[k + 1][i], part[k][i]);
          part[k][i] = R::identity();
        }
    }
    state* const total = part[levels - 1];
    for (int k = levels - 2; k >= 0; --k)
      for (index_t i = 0; i < n; ++i) total[i] = R::merge(total[i], part[k][i]);
    const index_t at = outer * s.inner + column;
    if (pieces == 1) {
      if constexpr (requires { R::template finish_all<vector<T>>(total, out, n, lanes); })
        R::template finish_all<vector<T>>(total, out + at, n, lanes);
      else
        for (index_t i = 0; i < n; ++i) out[at + i] = finish_fold_of<R>(total[i], s.reduced);
      finish_range(after, at, at + n);
    } else {
      for (index_t i = 0; i < n; ++i) partial[piece * s.outer * s.inner + at + i] = total[i];
    }
  });
  if (pieces == 1) return;
  const index_t n = s.outer * s.inner;
  for (index_t i = 0; i < n; ++i) {
    state total = R::identity();
    for (index_t k = 0; k < pieces; ++k) total = R::merge(total, partial[k * n + i]);
    out[i] = finish_fold_of<R>(total, s.reduced);
  }
  finish_range(after, index_t{0}, n);
}

/// So many rows of few columns are folded as one of many columns.
inline index_t rows_together(const fold_shape& s) { return columns_at_once / s.inner / lanes * lanes; }

/// reduce_columns of long columns, so few that they do not fill a vector.
template <class R, class T>
void reduce_few_columns(const producer<T>& p, const fold_shape& s, typename R::result* out, thread_pool& pool,
                        const epilogue* after) {
  using state = typename R::state;
  const index_t together = rows_together(s), wide = together * s.inner;
  const index_t rows = row_piece / wide * together, pieces = (s.reduced + rows - 1) / rows;
  const detail::temporary_array<state> partial(s.outer * pieces * s.inner);
  pool.parallel_for(s.outer * pieces, [&](index_t t) {
    const index_t first = t % pieces * rows, n = s.reduced - first < rows ? s.reduced - first : rows;
    const index_t at = (t / pieces * s.reduced + first) * s.inner;
    alignas(64) T buffer[columns_at_once];
    state total[columns_at_once];
    for (index_t i = 0; i < wide; ++i) total[i] = R::identity();
    const auto row_at = [&](index_t row) { return p.get(at + row * wide, wide, buffer); };
    const index_t whole = n / together;
    for (index_t row = 0; row < whole; row += rows_in_a_row)
      fold_columns<R>(total, wide, row, row + rows_in_a_row < whole ? row + rows_in_a_row : whole, row_at);
    const index_t rest = (n - whole * together) * s.inner;
    if (rest > 0) {
      const T* const x = p.get(at + whole * wide, rest, buffer);
      for (index_t i = 0; i < rest; ++i) R::push(total[i], x[i], 0);
    }
    for (index_t k = together; k > 1;) {  // the states of a column, in pairs
      const index_t half = (k + 1) / 2;
      for (index_t i = half * s.inner; i < k * s.inner; ++i)
        total[i - half * s.inner] = R::merge(total[i - half * s.inner], total[i]);
      k = half;
    }
    for (index_t i = 0; i < s.inner; ++i) partial[t * s.inner + i] = total[i];
  });
  for (index_t o = 0; o < s.outer; ++o)
    for (index_t i = 0; i < s.inner; ++i) {
      state total = R::identity();
      for (index_t k = 0; k < pieces; ++k) total = R::merge(total, partial[(o * pieces + k) * s.inner + i]);
      out[o * s.inner + i] = finish_fold_of<R>(total, s.reduced);
    }
  finish_range(after, index_t{0}, s.outer * s.inner);
}

/// Orders the axes of `l` for a fold; see order_axes().
SINTER_SHARED fold_shape order_for_fold(loop& l, const bool* reduced, bool by_shape);
#if SINTER_DEFINES
SINTER_SHARED fold_shape order_for_fold(loop& l, const bool* reduced, bool by_shape) {
  index_t* strides[max_operands];
  for (int i = 0; i < l.inputs; ++i) strides[i] = l.in[i].strides;
  return sinter::detail::order_axes(l.shape, l.rank, l.inputs, strides, reduced, by_shape);
}
#endif  // SINTER_DEFINES

/// Reduces what `l` produces along the axes marked in `reduced`; results are dense, in the order of the kept axes, and
/// the epilogue runs on them part by part.
template <class T, class R>
void reduce(R, bool is_leaf, loop& l, const bool* reduced, typename R::result* out, thread_pool& pool,
            const epilogue* after) {
  const fold_shape s = order_for_fold(l, reduced, sinter::detail::depends_on_index<R>);
  sinter::detail::row_major_strides(l.shape, l.rank, l.out[0].strides);  // values are produced in the new order
  if (s.outer * s.inner == 0) return;
  const producer<T> p(l, is_leaf);
  if constexpr (R::template vectorised<T>) {
    if (s.inner > 1 && rows_together(s) > 0 && s.reduced >= 4 * rows_together(s))
      return reduce_few_columns<R>(p, s, out, pool, after);
  }
  if (s.inner > 1 && s.reduced > 0) reduce_columns<R>(p, s, out, pool, after);
  else reduce_rows<R>(p, {s.outer * s.inner, s.reduced, 1}, out, pool, after);
}

}  // namespace sinter::cpu_impl
