// sinter/cuda/reduce.hpp: the bodies that fold an expression along axes, in an order that follows from the shape alone.
#pragma once

#include "sinter/cuda/element.hpp"
#include "sinter/expr/reducer.hpp"

namespace sinter::cuda_impl {

/// Folds the states of a group of `width` threads, a power of two, into that of its first.
template <class R, class G>
SINTER_WORD void fold_group(const G& g, typename R::state* states, int width, int place) {
  for (int step = width / 2; step > 0; step /= 2) {
    g.sync();
    if (place < step) {
      typename R::state& mine = states[g.thread()];
      mine = R::merge(mine, states[g.thread() + step]);
    }
  }
}

/// Rows along the last axes: result r folds elements [r * reduced, (r + 1) * reduced). `group` threads share a row, or one
/// of its pieces; pieces leave their states in `partial`.
template <class R, class K>
struct reduce_rows_body {
  using state = typename R::state;
  element_source<K> source;
  index_t results = 0, reduced = 0, pieces = 1, per_piece = 0;
  int group = 1;
  typename R::result* out = nullptr;
  state* partial = nullptr;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    state* const states = g.template shared<state>();
    const int place = g.thread() % group;
    const int groups = g.threads() / group;
    // All threads of a block go round equally often: they meet at sync().
    for (index_t first = g.block() * groups; first < results * pieces; first += g.blocks() * groups) {
      const index_t task = first + g.thread() / group;
      state s = R::identity();
      if (task < results * pieces) {
        const index_t row = task / pieces, begin = task % pieces * per_piece;
        const index_t end = begin + per_piece < reduced ? begin + per_piece : reduced;
        for (index_t i = begin + place; i < end; i += group) R::push(s, source(row * reduced + i), i);
      }
      states[g.thread()] = s;
      fold_group<R>(g, states, group, place);
      if (place == 0 && task < results * pieces) {
        if (pieces == 1) out[task] = R::finish(states[g.thread()]);
        else partial[task] = states[g.thread()];
      }
      g.sync();
    }
  }
};

/// Strips of columns that the threads of a block work on together.
inline constexpr int strip_width = 32;
constexpr index_t strips_of(index_t columns) { return (columns + strip_width - 1) / strip_width; }

/// Columns: result (o, i) folds elements (o, 0..reduced, i). 32 threads lie along i, the others take rows in turn.
template <class R, class K>
struct reduce_columns_body {
  using state = typename R::state;
  static constexpr int width = strip_width;
  element_source<K> source;
  index_t outer = 0, reduced = 0, inner = 0, pieces = 1, per_piece = 0;
  typename R::result* out = nullptr;
  state* partial = nullptr;

  SINTER_WORD index_t strips() const { return strips_of(inner); }

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    state* const states = g.template shared<state>();
    const int across = g.thread() % width, down = g.thread() / width, height = g.threads() / width;
    const index_t tasks = outer * strips() * pieces;
    for (index_t task = g.block(); task < tasks; task += g.blocks()) {
      const index_t piece = task % pieces, strip = task / pieces % strips(), o = task / pieces / strips();
      const index_t column = strip * width + across;
      state s = R::identity();
      if (column < inner) {
        const index_t begin = piece * per_piece;
        const index_t end = begin + per_piece < reduced ? begin + per_piece : reduced;
        for (index_t i = begin + down; i < end; i += height) R::push(s, source((o * reduced + i) * inner + column), i);
      }
      states[g.thread()] = s;
      for (int step = height / 2; step > 0; step /= 2) {
        g.sync();
        if (down < step) states[g.thread()] = R::merge(states[g.thread()], states[g.thread() + step * width]);
      }
      if (down == 0 && column < inner) {
        const index_t result = o * inner + column;
        if (pieces == 1) out[result] = R::finish(states[g.thread()]);
        else partial[result * pieces + piece] = states[g.thread()];
      }
      g.sync();
    }
  }
};

/// The pieces of each result, folded in order by the threads of one block.
template <class R>
struct merge_pieces_body {
  using state = typename R::state;
  const state* partial = nullptr;
  typename R::result* out = nullptr;
  index_t results = 0, pieces = 0;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    state* const states = g.template shared<state>();
    for (index_t r = g.block(); r < results; r += g.blocks()) {
      state s = R::identity();
      for (index_t i = g.thread(); i < pieces; i += g.threads()) s = R::merge(s, partial[r * pieces + i]);
      states[g.thread()] = s;
      fold_group<R>(g, states, g.threads(), g.thread());
      if (g.thread() == 0) out[r] = R::finish(states[0]);
      g.sync();
    }
  }
};

struct fold_pieces {
  index_t count = 1, length = 0;
};

/// Cuts `reduced` elements of each of `tasks` results into pieces of at least `shortest`, where there are too few tasks.
inline fold_pieces cut(index_t tasks, index_t reduced, index_t shortest) {
  index_t pieces = tasks > 0 && tasks < enough_blocks ? enough_blocks / tasks : 1;
  if (pieces > reduced / shortest) pieces = reduced / shortest;
  if (pieces < 1) pieces = 1;
  const index_t length = (reduced + pieces - 1) / pieces;
  return {length > 0 ? (reduced + length - 1) / length : 1, length};
}

/// Folds rows, or columns, each in its pieces: to `out` where there is one, to `partial` where there are several.
template <class R, class K, class Run>
void fold_rows(const element_source<K>& source, index_t results, index_t reduced, const fold_pieces& p, typename R::result* out,
               typename R::state* partial, const Run& run) {
  reduce_rows_body<R, K> body{source, results, reduced, p.count, p.length, 1, out, partial};
  while (body.group < block_threads && body.group < p.length) body.group *= 2;
  run(body, launch_shape{blocks_for(results * p.count, block_threads / body.group), sizeof(typename R::state) * block_threads});
}
template <class R, class K, class Run>
void fold_columns(const element_source<K>& source, const sinter::detail::fold_shape& s, const fold_pieces& p, typename R::result* out,
                  typename R::state* partial, const Run& run) {
  const reduce_columns_body<R, K> body{source, s.outer, s.reduced, s.inner, p.count, p.length, out, partial};
  run(body, launch_shape{blocks_for(s.outer * body.strips() * p.count), sizeof(typename R::state) * block_threads});
}

/// Calls run(body, launch_shape) for each kernel of a reduction, in order; memory(bytes) gives scratch space.
template <class R, class K, class Run, class Memory>
void plan_reduction(const K& plan, pass_axes axes, const bool* reduced, typename R::result* out, const Run& run, const Memory& memory) {
  using state = typename R::state;
  const sinter::detail::fold_shape s =
      sinter::detail::order_axes(axes.shape, axes.rank, K::leaves, [&axes](int i) { return axes.strides[i]; }, reduced);
  if (s.outer * s.inner == 0) return;
  const auto source = make_source(plan, axes);
  const index_t results = s.outer * s.inner;
  const bool columns = s.inner > 1 && s.reduced > 0;
  const fold_pieces p = columns ? cut(s.outer * strips_of(s.inner), s.reduced, 64) : cut(results, s.reduced, 4096);
  state* const partial = p.count > 1 ? static_cast<state*>(memory(sizeof(state) * static_cast<std::size_t>(results * p.count))) : nullptr;
  if (columns) fold_columns<R>(source, s, p, out, partial, run);
  else fold_rows<R>(source, results, s.reduced, p, out, partial, run);
  if (p.count > 1)
    run(merge_pieces_body<R>{partial, out, results, p.count}, launch_shape{blocks_for(results), sizeof(state) * block_threads});
}

}  // namespace sinter::cuda_impl
