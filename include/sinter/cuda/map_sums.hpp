// sinter/cuda/map_sums.hpp: the body of backward passes that add up the gradients of broadcast leaves on the way.
//
// A block goes down a slab of rows, each thread in columns of its own, and adds in registers; then its threads add up what
// they have, in double, and the block that comes last adds up what all of them have. The order follows from the shape alone.
#pragma once

#include <algorithm>

#include "sinter/cuda/map.hpp"

namespace sinter::cuda_impl {

/// What the gradient of a leaf is made of.
enum class sink_kind : unsigned char {
  element,  ///< one element of the pass for each
  column,   ///< a column: the leaf was repeated along all outer axes
  row,      ///< a row: it was repeated along the inner axis
  total     ///< everything
};

template <class Pass>
struct map_sums_body {
  using elements = map_body<Pass>;
  static constexpr int outputs = Pass::outputs, lanes = elements::lanes;
  using registers = typename Pass::sum_type[outputs][lanes];

  elements at;
  sink_kind kind[outputs] = {};
  bool rows = false, columns = false, totals = false;  ///< the kinds of sums there are
  int across = 1, down = block_threads;                ///< powers of two: threads side by side, and one above the other
  index_t strips = 1;                                  ///< blocks side by side
  index_t slabs = 1, per_slab = 0;                     ///< blocks one above the other, and their rows
  double* partial[outputs] = {};                       ///< sums of the blocks
  unsigned* arrivals = nullptr;

  /// A machine whose sums stay in registers.
  struct machine : elements::template machine<elements> {
    using base = typename elements::template machine<elements>;
    const map_sums_body& body;
    registers& sum;

    SINTER_WORD machine(const map_sums_body& b, registers& s) : base(b.at), body(b), sum(s) {}
    template <int O, class T>
    SINTER_WORD void accumulate(compute_type<T> x) const {
      if (this->lane < this->valid) sum[O][this->lane] += static_cast<typename Pass::sum_type>(x);
      this->written[O][this->lane] = pack(x);
      if (this->lane == lanes - 1 && body.kind[O] == sink_kind::element) this->template flush_sum<O, T>();
    }
  };

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    double* const share = g.template shared<double>() + g.thread() * lanes;
    const int x = g.thread() % across, y = g.thread() / across;
    const index_t strip = g.block() % strips, slab = g.block() / strips;
    const index_t end = (slab + 1) * per_slab < at.space.rows ? (slab + 1) * per_slab : at.space.rows;
    registers sum = {};
    for (index_t top = slab * per_slab; top < end; top += down) {  // equally often for all threads: they may meet
      const index_t row = top + y;
      for (index_t c = strip * across + x; row < end && c < at.chunks_per_row; c += strips * across) {
        machine m(*this, sum);
        at.place(m, row, c * lanes);
        run_lanes<lanes>(m, at.pass);
      }
      if (!rows) continue;
      const team mates{x, across, 1, row < end ? 1 : 0, row, 0, 1, 0, 0};
      each_output([&](int o) {
        if (kind[o] == sink_kind::row) add_up(g, share, sum, o, mates);
      });
    }
    const index_t column = (strip * across + x) * lanes, left = at.space.inner - column;
    const team above{y, down, across, static_cast<int>(left < 0 ? 0 : left < lanes ? left : lanes), 0, column, slabs, slab, at.space.inner};
    const team all{g.thread(), block_threads, 1, 1, 0, 0, g.blocks(), g.block(), 1};
    const auto team_of = [&](int o) {
      team t = all;
      if (kind[o] == sink_kind::column) t = above;
      return t;
    };
    each_output([&](int o) {
      if (kind[o] == sink_kind::column || kind[o] == sink_kind::total) add_up(g, share, sum, o, team_of(o));
    });
    const bool last_of_strip = columns && slabs > 1 && g.arrives_last(arrivals + 1 + strip, static_cast<unsigned>(slabs));
    const bool last_of_all = totals && g.blocks() > 1 && g.arrives_last(arrivals, static_cast<unsigned>(g.blocks()));
    each_output([&](int o) {
      if ((last_of_strip && kind[o] == sink_kind::column) || (last_of_all && kind[o] == sink_kind::total))
        merge(g, share, o, team_of(o));
    });
  }

 private:
  /// The threads of a block that have terms of the same sums, and where their sums go.
  struct team {
    int place, size, apart;       ///< of the thread among them; how many; how far they lie from each other
    int count;                    ///< their sums, neighbours
    index_t row, column;          ///< of the first one
    index_t pieces, piece, pitch;  ///< blocks with terms of the same sums, which of them this is, and how far theirs lie apart
  };

  template <class F>
  SINTER_WORD static void each_output(const F& f) {
    SINTER_KEEP_LOOP
    for (int o = 0; o < outputs; ++o) f(o);
  }

  /// Adds up what a team has of output o in registers, which then start anew. A thread's `share` has a place for each lane.
  template <class G>
  SINTER_WORD void add_up(const G& g, double* share, registers& sum, int o, const team& t) const {
    g.sync();
    SINTER_UNROLL
    for (int i = 0; i < outputs; ++i) {
      if (i != o) continue;
      SINTER_UNROLL
      for (int lane = 0; lane < lanes; ++lane) {
        share[lane] = static_cast<double>(sum[i][lane]);
        sum[i][lane] = 0;
      }
    }
    if (kind[o] != sink_kind::column)
      for (int lane = 1; lane < lanes; ++lane) share[0] += share[lane];
    fold(g, share, t);
    if (t.place != 0) return;
    if (t.pieces > 1) each_of(t, [&](int i) { partial[o][t.piece * t.pitch + t.column + i] = share[i]; });
    else put(o, share, t);
  }

  /// Adds up what all blocks have of the sums of output o.
  template <class G>
  SINTER_WORD void merge(const G& g, double* share, int o, const team& t) const {
    g.sync();
    each_of(t, [&](int i) {
      double sum = 0;
      for (index_t p = t.place; p < t.pieces; p += t.size) sum += g.fresh(partial[o] + p * t.pitch + t.column + i);
      share[i] = sum;
    });
    fold(g, share, t);
    if (t.place == 0) put(o, share, t);
  }

  template <class F>
  SINTER_WORD void each_of(const team& t, const F& f) const {
    SINTER_KEEP_LOOP
    for (int i = 0; i < t.count; ++i) f(i);
  }

  /// Leaves the sums of a team with its first thread.
  template <class G>
  SINTER_WORD void fold(const G& g, double* share, const team& t) const {
    for (int step = t.size / 2; step > 0; step /= 2) {
      g.sync();
      if (t.place < step) each_of(t, [&](int i) { share[i] += share[step * t.apart * lanes + i]; });
    }
  }

  SINTER_WORD void put(int o, const double* share, const team& t) const {
    index_t to = t.column * at.out.step[o];
    each_coordinate(at.space, t.row, [&](int d, index_t i) { to += i * at.out.stride[o][d]; });
    each_of(t, [&](int i) {
      const index_t place = to + i * at.out.step[o];
      if (at.wide[o]) put_at(reinterpret_cast<float*>(at.out.data[o]) + place, at.add[o], share[i]);
      else put_at(reinterpret_cast<double*>(at.out.data[o]) + place, at.add[o], share[i]);
    });
  }
  template <class T>
  SINTER_WORD static void put_at(T* to, bool add, double sum) {
    *to = static_cast<T>(add ? static_cast<double>(*to) + sum : sum);
  }
};

/// Operand s of coalesced axes is a sink that repeats along some of them: the kind of its sums; `element` where it is none of
/// them, and has to be added up another way.
template <int N>
sink_kind sums_of(const pass_axes<N>& axes, int s) {
  const int last = axes.rank - 1;
  const auto moves = [&](int d) { return axes.strides[s][d] != 0; };
  int outer = 0;
  for (int d = 0; d < last; ++d) outer += moves(d);
  if (outer == 0) return moves(last) ? sink_kind::column : sink_kind::total;
  return outer == last && !moves(last) ? sink_kind::row : sink_kind::element;
}

/// Lays out the threads and blocks of a body with its kinds set. False where it would keep too few of them busy.
template <class Pass>
bool lay_out(map_sums_body<Pass>& b) {
  const index_t rows = b.at.space.rows, chunks = b.at.chunks_per_row;
  const auto up = [](index_t n, index_t d) { return std::max<index_t>(1, (n + d - 1) / d); };  // sums of nothing are written too
  b.across = 1;
  const int widest = rows == 1 && !b.columns ? block_threads : 32;
  while (b.across < widest && b.across < chunks) b.across *= 2;
  b.down = block_threads / b.across;
  const index_t high = up(rows, b.down), wide = up(chunks, b.across);
  if (b.rows) {
    b.strips = 1;
    b.slabs = std::min(high, b.totals ? enough_blocks : most_blocks);
    if (high < 64 && wide > 16) return false;
  } else {
    b.strips = b.columns ? wide : std::min(wide, up(enough_blocks, high));
    b.slabs = std::min(high, std::max<index_t>(1, enough_blocks / b.strips));
  }
  b.per_slab = up(high, b.slabs) * b.down;
  b.slabs = up(rows, b.per_slab);
  return b.strips * b.slabs <= most_blocks;
}

/// Scratch space of output o, in sums.
template <class Pass>
index_t partial_sums(const map_sums_body<Pass>& b, int o) {
  if (b.kind[o] == sink_kind::column && b.slabs > 1) return b.slabs * b.at.space.inner;
  if (b.kind[o] == sink_kind::total && b.slabs * b.strips > 1) return b.slabs * b.strips;
  return 0;
}

template <class Pass>
launch_shape launch_of(const map_sums_body<Pass>& b) {
  return {b.strips * b.slabs, sizeof(double) * block_threads * b.lanes};
}

}  // namespace sinter::cuda_impl
