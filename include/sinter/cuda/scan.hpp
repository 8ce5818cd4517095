// sinter/cuda/scan.hpp: the bodies that fold all elements up to each along an axis, in an order that follows from the shape
// alone. (CUB's scan passes sums on as blocks finish, so that rounding differs from run to run.)
#pragma once

#include "sinter/cuda/reduce.hpp"

namespace sinter::cuda_impl {

/// Rows along the last axis; `group` threads share a row, or one of its pieces, and take `each` neighbours at a time. A piece
/// starts from the folds of those before it in `partial`.
template <class R, class T, class Source, class Out>
struct scan_rows_body {
  using state = typename R::state;
  static constexpr int each = 8;
  Source source;
  index_t rows = 0, n = 0, pieces = 1, per_piece = 0;
  int group = 1;
  Out out;
  const state* partial = nullptr;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    state* const states = g.template shared<state>();
    const int place = g.thread() % group;
    const int groups = g.threads() / group;
    // All threads of a block go round equally often: they meet at sync().
    for (index_t first = g.block() * groups; first < rows * pieces; first += g.blocks() * groups) {
      const index_t task = first + g.thread() / group;
      const index_t row = task / pieces, piece = task % pieces, begin = piece * per_piece;
      const index_t stop = begin + per_piece < n ? begin + per_piece : n;
      const index_t end = task < rows * pieces ? stop : begin;
      state before = pieces > 1 ? fold_before(g, states, row, task < rows * pieces ? piece : 0, place) : R::identity();
      for (index_t tile = begin; tile < begin + per_piece; tile += group * each) {
        const index_t mine = tile + place * each;
        T x[each] = {};
        state s = R::identity();
        SINTER_UNROLL
        for (int k = 0; k < each; ++k)
          if (mine + k < end) {
            x[k] = source(row * n + mine + k);
            R::push(s, x[k], mine + k);
          }
        scan_group(g, states, s, place);
        s = place > 0 ? R::merge(before, states[g.thread() - 1]) : before;
        SINTER_UNROLL
        for (int k = 0; k < each; ++k)
          if (mine + k < end) {
            R::push(s, x[k], mine + k);
            out.put(row * n + mine + k, s);
          }
        before = R::merge(before, states[g.thread() - place + group - 1]);
        g.sync();
      }
    }
  }

 private:
  template <class G>
  SINTER_WORD state fold_before(const G& g, state* states, index_t row, index_t piece, int place) const {
    state s = R::identity();
    for (index_t i = place; i < piece; i += group) s = R::merge(s, partial[row * pieces + i]);
    states[g.thread()] = s;
    fold_group<R>(g, states, group, place);
    g.sync();
    s = states[g.thread() - place];
    g.sync();
    return s;
  }

  /// states[t] = the fold of s over the threads of the group up to t.
  template <class G>
  SINTER_WORD void scan_group(const G& g, state* states, state s, int place) const {
    states[g.thread()] = s;
    for (int step = 1; step < group; step *= 2) {
      g.sync();
      if (place >= step) s = R::merge(states[g.thread() - step], s);
      g.sync();
      states[g.thread()] = s;
    }
    g.sync();
  }
};

/// Columns: a thread per column and piece.
template <class R, class Source, class Out>
struct scan_columns_body {
  using state = typename R::state;
  Source source;
  index_t outer = 0, n = 0, inner = 0, pieces = 1, per_piece = 0;
  Out out;
  const state* partial = nullptr;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t tasks = outer * pieces * inner;
    for (index_t task = g.block() * g.threads() + g.thread(); task < tasks; task += g.blocks() * g.threads()) {
      const index_t column = task % inner, piece = task / inner % pieces, o = task / inner / pieces;
      state s = R::identity();
      for (index_t i = 0; i < piece; ++i) s = R::merge(s, partial[(o * inner + column) * pieces + i]);
      const index_t begin = piece * per_piece;
      const index_t end = begin + per_piece < n ? begin + per_piece : n;
      for (index_t i = begin; i < end; ++i) {
        const index_t at = (o * n + i) * inner + column;
        R::push(s, source(at), i);
        out.put(at, s);
      }
    }
  }
};

/// Calls run(body, launch_shape) for each kernel of a scan of T, in order; memory(bytes) gives scratch space. Rows are left to
/// by_library(source, rows, n) if that is true.
template <class R, class T, class Source, class Out, class Run, class Memory, class Library>
void plan_scan(const Source& source, const sinter::detail::fold_shape& s, const Out& out, const Run& run, const Memory& memory,
               const Library& by_library) {
  using state = typename R::state;
  const index_t lines = s.outer * s.inner;
  if (lines * s.reduced == 0) return;
  const bool columns = s.inner > 1;
  if (!columns && by_library(source, lines, s.reduced)) return;
  const fold_pieces p = columns ? cut_columns<Source>(s) : cut(lines, s.reduced, 4096);
  const store_results<typename R::result> nowhere{nullptr};
  state* const partial = p.count > 1 ? static_cast<state*>(memory(sizeof(state) * static_cast<std::size_t>(lines * p.count))) : nullptr;
  if (columns) {
    if (p.count > 1) fold_columns<R>(source, s, p, nowhere, partial, run);
    run(scan_columns_body<R, Source, Out>{source, s.outer, s.reduced, s.inner, p.count, p.length, out, partial},
        launch_shape{blocks_for(lines * p.count, block_threads), 0});
  } else {
    if (p.count > 1) fold_rows<R>(source, lines, s.reduced, p, nowhere, partial, run);
    scan_rows_body<R, T, Source, Out> body{source, lines, s.reduced, p.count, p.length, 1, out, partial};
    while (body.group < block_threads && body.group * body.each < p.length) body.group *= 2;
    run(body, launch_shape{blocks_for(lines * p.count, block_threads / body.group), sizeof(state) * block_threads});
  }
}

}  // namespace sinter::cuda_impl
