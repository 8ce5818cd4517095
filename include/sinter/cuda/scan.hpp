// sinter/cuda/scan.hpp: the bodies that fold all elements up to each along an axis, in an order that follows from the
// shape alone. (CUB's scan passes sums on as blocks finish, so that rounding differs from run to run.)
#pragma once

#include "sinter/cuda/reduce.hpp"

namespace sinter::cuda_impl {

/// Writes the states of chunks of rows of n elements to `out`.
template <class Out>
struct put_states {
  Out out;
  put_states(const Out& to, int, index_t, index_t) : out(to) {}

  template <class State, std::size_t N>
  SINTER_WORD void operator()(index_t row, index_t column, int valid, const State (&s)[N]) const {
    constexpr int lanes = int{N};
    SINTER_UNROLL
    for (int k = 0; k < lanes; ++k)
      if (k < valid) out.put(row + column + k, s[k]);
  }
};
template <class R>
struct put_states<sinter::detail::scan_results<R>> {
  using result = typename R::result;
  store_elements<result> values;
  put_states(const sinter::detail::scan_results<R>& to, int lanes, index_t rows, index_t n)
      : values(to.values, lanes, rows, n) {}

  template <class State, std::size_t N>
  SINTER_WORD void operator()(index_t row, index_t column, int valid, const State (&s)[N]) const {
    constexpr int lanes = int{N};
    chunk<compute_type<result>, lanes> c;
    SINTER_UNROLL
    for (int k = 0; k < lanes; ++k) c.value[k] = static_cast<compute_type<result>>(R::finish(s[k]));
    values.row_at(row)(column, valid, c);
  }
};
template <class T>
struct put_states<sinter::detail::scan_extremes<T>> {
  store_elements<T> values;
  store_elements<std::int64_t> indices;
  put_states(const sinter::detail::scan_extremes<T>& to, int lanes, index_t rows, index_t n)
      : values(to.values, lanes, rows, n), indices(to.indices, lanes, rows, n) {}

  template <class State, std::size_t N>
  SINTER_WORD void operator()(index_t row, index_t column, int valid, const State (&s)[N]) const {
    constexpr int lanes = int{N};
    chunk<compute_type<T>, lanes> c;
    chunk<std::int64_t, lanes> i;
    SINTER_UNROLL
    for (int k = 0; k < lanes; ++k) {
      c.value[k] = static_cast<compute_type<T>>(s[k].value);
      i.value[k] = s[k].index;
    }
    values.row_at(row)(column, valid, c);
    indices.row_at(row)(column, valid, i);
  }
};

/// Rows along the last axis; `group` threads share a row, or one of its pieces, and take a chunk at a time. A piece
/// starts from the folds of those before it in `partial`.
template <class R, class Source, class Out>
struct scan_rows_body {
  using state = typename R::state;
  static constexpr int lanes = Source::usual_lanes, blocks_at_once = Source::blocks_at_once;
  Source source;
  index_t rows = 0, n = 0, pieces = 1, per_piece = 0;
  int group = 1;
  put_states<Out> put;
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
      const auto from = source.row_at(task < rows * pieces ? row * n : 0);
      for (index_t tile = begin; tile < begin + per_piece; tile += group * lanes) {
        const index_t mine = tile + place * lanes;
        const int valid = mine >= end ? 0 : end - mine < lanes ? static_cast<int>(end - mine) : lanes;
        decltype(source.template chunk_in<lanes>(from, mine, valid)) x{};
        state s = R::identity();
        if (valid > 0) {
          x = source.template chunk_in<lanes>(from, mine, valid);
          SINTER_UNROLL
          for (int k = 0; k < lanes; ++k)
            if (k < valid) R::push(s, x.value[k], mine + k);
        }
        scan_group(g, states, s, place);
        if (valid > 0) {
          s = place > 0 ? R::merge(before, states[g.thread() - 1]) : before;
          state after[std::size_t{lanes}];
          SINTER_UNROLL
          for (int k = 0; k < lanes; ++k) {
            if (k < valid) R::push(s, x.value[k], mine + k);
            after[k] = s;
          }
          put(row * n, mine, valid, after);
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

/// Calls run(body, launch_shape) for each kernel of a scan, in order; memory(bytes) gives scratch space. Rows are left
/// to by_library(source, rows, n) if that is true.
template <class R, class Source, class Out, class Run, class Memory, class Library>
void plan_scan(const Source& source, const sinter::detail::fold_shape& s, const Out& out, const Run& run,
               const Memory& memory, const Library& by_library) {
  using state = typename R::state;
  const index_t lines = s.outer * s.inner;
  if (lines * s.reduced == 0) return;
  const bool columns = s.inner > 1;
  if (!columns && by_library(source, lines, s.reduced)) return;
  const fold_pieces p = columns ? cut_columns<Source>(s) : cut(lines, s.reduced, 4096);
  const store_results<typename R::result> nowhere{nullptr};
  state* const partial =
      p.count > 1 ? static_cast<state*>(memory(sizeof(state) * static_cast<std::size_t>(lines * p.count))) : nullptr;
  if (columns) {
    if (p.count > 1) fold_columns<R>(source, s, p, nowhere, partial, run);
    run(scan_columns_body<R, Source, Out>{source, s.outer, s.reduced, s.inner, p.count, p.length, out, partial},
        launch_shape{blocks_for(lines * p.count, block_threads), 0});
  } else {
    if (p.count > 1) fold_rows<R>(source, lines, s.reduced, p, nowhere, partial, run);
    using body_type = scan_rows_body<R, Source, Out>;
    constexpr int lanes = body_type::lanes;
    body_type body{source.in_rows(lanes, lines, s.reduced), lines,  s.reduced, p.count, p.length, 1,
                   {out, lanes, lines, s.reduced},          partial};
    while (body.group < block_threads && body.group * lanes < p.length) body.group *= 2;
    run(body, launch_shape{blocks_for(lines * p.count, block_threads / body.group), sizeof(state) * block_threads});
  }
}

}  // namespace sinter::cuda_impl
