// sinter/cpu/scan.hpp: running folds of what a kernel produces, along one axis.
//
// Where there are too few lines to share, each is cut in pieces, by sizes alone: one pass folds the pieces, the next
// starts each from the fold of those before it.
#pragma once

#include "sinter/cpu/reduce.hpp"

namespace sinter::cpu_impl {

/// The fold of n values as exact as the scan itself, in chains that do not wait for each other.
template <class R, class T>
typename R::state fold_piece(const producer<T>& p, index_t begin, index_t n, index_t first) {
  constexpr index_t run = producer<T>::run, chains = 8;
  alignas(64) typename producer<T>::buffer_type buffer;
  typename R::state s[chains];
  for (auto& chain : s) chain = R::identity();
  for (index_t i = 0; i < n; i += run) {
    const index_t m = n - i < run ? n - i : run;
    const T* const x = p.get(begin + i, m, buffer);
    index_t k = 0;
    for (; k + chains <= m; k += chains)
      for (index_t c = 0; c < chains; ++c) R::push(s[c], x[k + c], first + i + k + c);
    for (; k < m; ++k) R::push(s[0], x[k], first + i + k);
  }
  for (index_t c = 1; c < chains; ++c) s[0] = R::merge(s[0], s[c]);
  return s[0];
}

/// partial[line * pieces + i] becomes the fold of all pieces of the line before i.
template <class R>
void fold_before(const detail::temporary_array<typename R::state>& partial, index_t lines, index_t pieces) {
  for (index_t line = 0; line < lines; ++line) {
    auto before = R::identity();
    for (index_t i = line * pieces; i < (line + 1) * pieces; ++i) {
      const auto piece = partial[i];
      partial[i] = before;
      before = R::merge(before, piece);
    }
  }
}

/// Goes on from `s` over n values, which are elements `at`, at + 1, ... of the result.
template <class R, class T, class Out>
typename R::state scan_run(typename R::state s, const T* x, index_t n, index_t first, index_t at, const Out& out) {
  for (index_t i = 0; i < n; ++i) {
    R::push(s, x[i], first + i);
    out.put(at + i, s);
  }
  return s;
}

/// Lines of n neighbours; the epilogue runs on elements that are in place.
template <class R, class T, class Out>
void scan_rows(const producer<T>& p, index_t rows, index_t n, const Out& out, thread_pool& pool,
               const epilogue* after) {
  constexpr index_t run = producer<T>::run;
  const auto scan = [&](index_t row, index_t begin, index_t end, typename R::state s) {
    alignas(64) typename producer<T>::buffer_type buffer;
    for (index_t i = begin; i < end; i += run) {
      const index_t m = end - i < run ? end - i : run;
      s = scan_run<R>(s, p.get(row * n + i, m, buffer), m, i, row * n + i, out);
    }
    finish_range(after, row * n + begin, row * n + end);
  };
  if (n > row_piece && rows < 16) {
    const index_t pieces = (n + row_piece - 1) / row_piece;
    const auto end_of = [&](index_t piece) { return piece + 1 < pieces ? (piece + 1) * row_piece : n; };
    const detail::temporary_array<typename R::state> partial(rows * pieces);
    pool.parallel_for(rows * pieces, [&](index_t t) {
      const index_t piece = t % pieces, begin = piece * row_piece;
      partial[t] = piece + 1 < pieces ? fold_piece<R>(p, t / pieces * n + begin, row_piece, begin) : R::identity();
    });
    fold_before<R>(partial, rows, pieces);
    pool.parallel_for(rows * pieces,
                      [&](index_t t) { scan(t / pieces, t % pieces * row_piece, end_of(t % pieces), partial[t]); });
    return;
  }
  const index_t grain = 32768 / n + 1;
  const index_t together = n <= run / 2 ? run / n : 1;  // short rows are produced several at a time
  pool.parallel_for((rows + grain - 1) / grain, [&](index_t t) {
    const index_t end = (t + 1) * grain < rows ? (t + 1) * grain : rows;
    for (index_t row = t * grain; row < end; row += together) {
      if (together == 1) {
        scan(row, 0, n, R::identity());
        continue;
      }
      alignas(64) typename producer<T>::buffer_type buffer;
      const index_t m = end - row < together ? end - row : together;
      const T* const x = p.get(row * n, m * n, buffer);
      for (index_t i = 0; i < m; ++i) scan_run<R>(R::identity(), x + i * n, n, 0, (row + i) * n, out);
      finish_range(after, row * n, (row + m) * n);
    }
  });
}

/// Lines that lie side by side, `s.inner` of them.
template <class R, class T, class Out>
void scan_columns(const producer<T>& p, const fold_shape& s, const Out& out, thread_pool& pool) {
  using state = typename R::state;
  constexpr index_t width = columns_at_once, run = producer<T>::run;
  const index_t blocks = (s.inner + width - 1) / width;
  const index_t pieces = pieces_of_columns(s, blocks);
  const index_t rows = (s.reduced + pieces - 1) / pieces;
  const index_t together = blocks == 1 ? run / s.inner : 1;  // narrow rows are produced several at a time
  const detail::temporary_array<state> partial(pieces > 1 ? pieces * s.outer * s.inner : 0);
  // One piece of a block of columns: start(i) and finish(i, state) are called for part i of `partial`, each(i, state)
  // for element i.
  const auto run_piece = [&](index_t t, const auto& start, const auto& each, const auto& finish) {
    const index_t piece = t % pieces, block = t / pieces % blocks, outer = t / pieces / blocks;
    const index_t column = block * width, n = s.inner - column < width ? s.inner - column : width;
    const index_t line = outer * s.inner + column;
    const index_t end = (piece + 1) * rows < s.reduced ? (piece + 1) * rows : s.reduced;
    alignas(64) typename producer<T>::buffer_type buffer;
    state total[width];
    for (index_t i = 0; i < n; ++i) total[i] = start((line + i) * pieces + piece);
    for (index_t row = piece * rows; row < end; row += together) {
      const index_t m = end - row < together ? end - row : together;
      const index_t at = (outer * s.reduced + row) * s.inner + column;
      const T* const x = p.get(at, m * n, buffer);
      for (index_t k = 0; k < m; ++k)
        for (index_t i = 0; i < n; ++i) {
          R::push(total[i], x[k * n + i], row + k);
          each(at + k * n + i, total[i]);
        }
    }
    for (index_t i = 0; i < n; ++i) finish((line + i) * pieces + piece, total[i]);
  };
  const auto nothing = [](index_t, const state&) {};
  const index_t tasks = s.outer * blocks * pieces;
  if (pieces > 1) {
    pool.parallel_for(tasks, [&](index_t t) {
      run_piece(t, [](index_t) { return R::identity(); }, nothing, [&](index_t i, const state& v) { partial[i] = v; });
    });
    fold_before<R>(partial, s.outer * s.inner, pieces);
  }
  pool.parallel_for(tasks, [&](index_t t) {
    run_piece(
        t, [&](index_t i) { return pieces > 1 ? partial[i] : R::identity(); },
        [&](index_t i, const state& v) { out.put(i, v); }, nothing);
  });
}

/// Scans what `l` produces along an axis; out.put(i, state) takes the state after element i, counted in row-major
/// order.
template <class R, class T, class Out>
void scan(loop& l, bool is_leaf, int axis, const Out& out, thread_pool& pool, const epilogue* after) {
  const fold_shape s = sinter::detail::around_axis(l.shape, l.rank, axis);
  if (s.outer * s.reduced * s.inner == 0) return;
  const producer<T> p(l, is_leaf);
  if (s.inner == 1) scan_rows<R>(p, s.outer, s.reduced, out, pool, after);
  else scan_columns<R>(p, s, out, pool);
}

}  // namespace sinter::cpu_impl
