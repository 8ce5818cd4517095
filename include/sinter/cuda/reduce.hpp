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

/// Rows along the last axes: result r folds elements [r * reduced, (r + 1) * reduced). `group` threads share a row, or
/// one of its pieces, and take chunks of it in turn; pieces leave their states in `partial`, rows pass their result to
/// `put`.
template <class R, class Source, class Put>
struct reduce_rows_body {
  using state = typename R::state;
  static constexpr int lanes = Source::usual_lanes, blocks_at_once = Source::blocks_at_once;
  Source source;
  index_t results = 0, reduced = 0, pieces = 1, per_piece = 0;
  int group = 1;
  Put put;
  state* partial = nullptr;

  SINTER_WORD static int valid_at(index_t i, index_t end) {
    return end - i < lanes ? static_cast<int>(end - i) : lanes;
  }

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
        const index_t first_number = row * reduced, stride = group * lanes;
        for (index_t i = begin + place * lanes; i < end; i += 2 * stride) {
          keep_loop(i);
          source.template two_chunks<lanes>(first_number + i, valid_at(i, end), first_number + i + stride,
                                            valid_at(i + stride, end), [&](const auto& x, index_t number, int valid) {
                                              SINTER_UNROLL
                                              for (int l = 0; l < lanes; ++l)
                                                if (l < valid) R::push(s, x.value[l], number - first_number + l);
                                            });
        }
      }
      states[g.thread()] = s;
      fold_group<R>(g, states, group, place);
      if (place == 0 && task < results * pieces) {
        if (pieces == 1) put(task, sinter::detail::finish_fold_of<R>(states[g.thread()], reduced));
        else partial[task] = states[g.thread()];
      }
      g.sync();
    }
  }
};

/// A block works on strips of columns, so many threads wide; how many strips there are.
inline int width_of_strips(index_t columns, int lanes) {
  int width = 1;
  while (width < 32 && width * lanes < columns) width *= 2;
  return width;
}
inline index_t strips_of(index_t columns, int lanes) {
  const index_t strip = width_of_strips(columns, lanes) * lanes;
  return (columns + strip - 1) / strip;
}

/// Columns: result (o, i) folds elements (o, 0..reduced, i). `width` threads lie along i with a chunk each, the others
/// take rows in turn.
template <class R, class Source, class Put>
struct reduce_columns_body {
  using state = typename R::state;
  static constexpr int lanes = Source::usual_lanes, blocks_at_once = Source::blocks_at_once;
  Source source;
  index_t outer = 0, reduced = 0, inner = 0, pieces = 1, per_piece = 0;
  Put put;
  state* partial = nullptr;
  int width = 1;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    state* const states = g.template shared<state>();  // those of the threads' first lanes, of their second lanes, ...
    const int across = g.thread() % width, down = g.thread() / width, height = g.threads() / width;
    const index_t strips = (inner + width * lanes - 1) / (width * lanes);
    const index_t tasks = outer * strips * pieces;
    for (index_t task = g.block(); task < tasks; task += g.blocks()) {
      const index_t piece = task % pieces, strip = task / pieces % strips, o = task / pieces / strips;
      const index_t column = (strip * width + across) * lanes;
      const int valid = inner - column < lanes ? static_cast<int>(inner - column) : lanes;
      state s[std::size_t{lanes}];
      SINTER_UNROLL
      for (int l = 0; l < lanes; ++l) s[l] = R::identity();
      if (valid > 0) {
        const index_t begin = piece * per_piece;
        const index_t end = begin + per_piece < reduced ? begin + per_piece : reduced;
        for (index_t i = begin + down; i < end; i += 2 * height) {
          keep_loop(i);
          const index_t number = (o * reduced + i) * inner + column;
          source.template two_chunks<lanes>(
              number, valid, number + height * inner, i + height < end ? valid : 0,
              [&](const auto& x, index_t at, int) {
                SINTER_UNROLL
                for (int l = 0; l < lanes; ++l)
                  R::push(s[l], x.value[l], at == number ? i : i + height);  // past the end: states that are never read
              });
        }
      }
      SINTER_UNROLL
      for (int l = 0; l < lanes; ++l) states[l * g.threads() + g.thread()] = s[l];
      for (int step = height / 2; step > 0; step /= 2) {
        g.sync();
        if (down >= step) continue;
        SINTER_UNROLL
        for (int l = 0; l < lanes; ++l) {
          state& mine = states[l * g.threads() + g.thread()];
          mine = R::merge(mine, states[l * g.threads() + g.thread() + step * width]);
        }
      }
      if (down == 0) {
        SINTER_UNROLL
        for (int l = 0; l < lanes; ++l) {
          if (l >= valid) continue;
          const index_t result = o * inner + column + l;
          if (pieces == 1)
            put(result, sinter::detail::finish_fold_of<R>(states[l * g.threads() + g.thread()], reduced));
          else partial[result * pieces + piece] = states[l * g.threads() + g.thread()];
        }
      }
      g.sync();
    }
  }
};

/// The pieces of each result, folded in order by the threads of one block.
template <class R, class Put>
struct merge_pieces_body {
  using state = typename R::state;
  const state* partial = nullptr;
  Put put;
  index_t results = 0, pieces = 0, reduced = 0;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    state* const states = g.template shared<state>();
    for (index_t r = g.block(); r < results; r += g.blocks()) {
      state s = R::identity();
      for (index_t i = g.thread(); i < pieces; i += g.threads()) s = R::merge(s, partial[r * pieces + i]);
      states[g.thread()] = s;
      fold_group<R>(g, states, g.threads(), g.thread());
      if (g.thread() == 0) put(r, sinter::detail::finish_fold_of<R>(states[0], reduced));
      g.sync();
    }
  }
};

struct fold_pieces {
  index_t count = 1, length = 0;
};

/// Cuts `reduced` elements of each of `tasks` results into pieces of at least `shortest`, where there are too few
/// tasks.
inline fold_pieces cut(index_t tasks, index_t reduced, index_t shortest) {
  index_t pieces = tasks > 0 && tasks < enough_blocks ? enough_blocks / tasks : 1;
  if (pieces > reduced / shortest) pieces = reduced / shortest;
  if (pieces < 1) pieces = 1;
  const index_t length = (reduced + 8 * pieces - 1) / (8 * pieces) * 8;  // whole chunks
  return {length > 0 ? (reduced + length - 1) / length : 1, length};
}

/// Folds rows, or columns, each in its pieces: to `put` where there is one, to `partial` where there are several.
template <class R, class Source, class Put, class Run>
void fold_rows(const Source& source, index_t results, index_t reduced, const fold_pieces& p, const Put& put,
               typename R::state* partial, const Run& run) {
  using body_type = reduce_rows_body<R, Source, Put>;
  body_type body{
      source.in_rows(body_type::lanes, results, reduced), results, reduced, p.count, p.length, 1, put, partial};
  while (body.group < block_threads && body.group * body_type::lanes < p.length) body.group *= 2;
  run(body, launch_shape{blocks_for(results * p.count, block_threads / body.group),
                         sizeof(typename R::state) * block_threads});
}
template <class R, class Source, class Put, class Run>
void fold_columns(const Source& source, const sinter::detail::fold_shape& s, const fold_pieces& p, const Put& put,
                  typename R::state* partial, const Run& run) {
  using body_type = reduce_columns_body<R, Source, Put>;
  const int width = width_of_strips(s.inner, body_type::lanes);
  const body_type body{source.in_rows(body_type::lanes, s.outer * s.reduced, s.inner),
                       s.outer,
                       s.reduced,
                       s.inner,
                       p.count,
                       p.length,
                       put,
                       partial,
                       width};
  run(body, launch_shape{blocks_for(s.outer * strips_of(s.inner, body_type::lanes) * p.count),
                         sizeof(typename R::state) * block_threads * body_type::lanes});
}
/// The pieces for it.
template <class Source>
fold_pieces cut_columns(const sinter::detail::fold_shape& s) {
  return cut(s.outer * strips_of(s.inner, Source::usual_lanes), s.reduced, 64);
}

/// Calls run(body, launch_shape) for each kernel of a reduction over at most Axes axes, in order; memory(bytes) gives
/// scratch space. Rows are left to by_library(source, results, n) if that is true.
template <class R, int Axes, class K, class Put, class Run, class Memory, class Library>
void plan_reduction(const K& plan, pass_axes axes, const bool* reduced, const Put& put, const Run& run,
                    const Memory& memory, const Library& by_library) {
  using state = typename R::state;
  index_t* strides[std::size_t{K::leaves + 1}];
  for (int i = 0; i < K::leaves; ++i) strides[i] = axes.strides[i];
  const sinter::detail::fold_shape s = sinter::detail::order_axes(axes.shape, axes.rank, K::leaves, strides, reduced,
                                                                  sinter::detail::depends_on_index<R>);
  if (s.outer * s.inner == 0) return;
  const auto source = make_source<Axes>(plan, axes);
  const index_t results = s.outer * s.inner;
  const bool columns = s.inner > 1 && s.reduced > 0;
  if (!columns && by_library(source, results, s.reduced)) return;
  const fold_pieces p = columns ? cut_columns<decltype(source)>(s) : cut(results, s.reduced, 4096);
  state* const partial =
      p.count > 1 ? static_cast<state*>(memory(sizeof(state) * static_cast<std::size_t>(results * p.count))) : nullptr;
  if (columns) fold_columns<R>(source, s, p, put, partial, run);
  else fold_rows<R>(source, results, s.reduced, p, put, partial, run);
  if (p.count > 1)
    run(merge_pieces_body<R, Put>{partial, put, results, p.count, s.reduced},
        launch_shape{blocks_for(results), sizeof(state) * block_threads});
}

}  // namespace sinter::cuda_impl
