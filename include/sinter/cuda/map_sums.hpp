// sinter/cuda/map_sums.hpp: the body of backward passes that add up the gradients of broadcast leaves on the way.
//
// A block goes down a slab of rows, each thread in columns of its own, and adds in registers; then its threads add up what
// they have, in double, and the block that comes last adds up what all of them have. The order follows from the shape alone.
#pragma once

#include <algorithm>

#include "sinter/cuda/map.hpp"
#include "sinter/cuda/reduce.hpp"

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
      if (body.kind[O] == sink_kind::element) base::template accumulate<O, T>(x);
      else if (this->lane < this->valid) sum[O][this->lane] += static_cast<typename Pass::sum_type>(x);
    }
  };

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    double* const share = g.template shared<double>();
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
      if (rows) put_rows(g, share, sum, row, end);
    }
    const index_t column = (strip * across + x) * lanes;
    SINTER_UNROLL
    for (int o = 0; o < outputs; ++o) {
      if (kind[o] == sink_kind::column) {
        add_columns(g, share, sum[o]);
        put_columns(share, g.thread(), o, column, slabs > 1 ? partial[o] + slab * at.space.inner : nullptr);
      } else if (kind[o] == sink_kind::total) {
        add_threads(g, share, in_all_lanes(sum, o), block_threads);
        if (g.thread() == 0) put_total(o, share[0], g.blocks() > 1 ? partial[o] + g.block() : nullptr);
      }
    }
    if (columns && slabs > 1 && g.arrives_last(arrivals + 1 + strip, static_cast<unsigned>(slabs))) merge_columns(g, share, column);
    if (totals && g.blocks() > 1 && g.arrives_last(arrivals, static_cast<unsigned>(g.blocks()))) merge_totals(g, share);
  }

 private:
  SINTER_WORD double in_all_lanes(const registers& sum, int o) const {
    double all = 0;
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) all += static_cast<double>(sum[o][i]);
    return all;
  }

  /// The sums of the rows that the block has just been through, which then start anew.
  template <class G>
  SINTER_WORD void put_rows(const G& g, double* share, registers& sum, index_t row, index_t end) const {
    SINTER_UNROLL
    for (int o = 0; o < outputs; ++o) {
      if (kind[o] != sink_kind::row) continue;
      add_threads(g, share, in_all_lanes(sum, o), across);
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) sum[o][i] = 0;
      if (g.thread() % across == 0 && row < end) put(o, row, 0, share[g.thread()]);
    }
  }

  /// Adds up what each `width` neighbouring threads have; the first of them finds the sum in its place of `share`.
  template <class G>
  SINTER_WORD void add_threads(const G& g, double* share, double mine, int width) const {
    g.sync();
    share[g.thread()] = mine;
    fold_group<sinter::detail::sum_reducer<double>>(g, share, width, g.thread() % width);
  }
  /// The same for threads that stand one above the other, which have `lanes` sums each.
  template <class T, class G>
  SINTER_WORD void add_columns(const G& g, double* share, const T (&mine)[lanes]) const {
    g.sync();
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) share[g.thread() * lanes + i] = static_cast<double>(mine[i]);
    for (int step = down / 2; step > 0; step /= 2) {
      g.sync();
      if (g.thread() < step * across) {
        SINTER_UNROLL
        for (int i = 0; i < lanes; ++i) share[g.thread() * lanes + i] += share[(g.thread() + step * across) * lanes + i];
      }
    }
  }

  template <class G>
  SINTER_WORD void merge_columns(const G& g, double* share, index_t column) const {
    SINTER_UNROLL
    for (int o = 0; o < outputs; ++o) {
      if (kind[o] != sink_kind::column) continue;
      double mine[lanes] = {};
      for (index_t s = g.thread() / across; s < slabs; s += down) {
        SINTER_UNROLL
        for (int i = 0; i < lanes; ++i)
          if (column + i < at.space.inner) mine[i] += g.fresh(partial[o] + s * at.space.inner + column + i);
      }
      add_columns(g, share, mine);
      put_columns(share, g.thread(), o, column, nullptr);
    }
  }
  template <class G>
  SINTER_WORD void merge_totals(const G& g, double* share) const {
    SINTER_UNROLL
    for (int o = 0; o < outputs; ++o) {
      if (kind[o] != sink_kind::total) continue;
      double mine = 0;
      for (index_t b = g.thread(); b < g.blocks(); b += g.threads()) mine += g.fresh(partial[o] + b);
      add_threads(g, share, mine, block_threads);
      if (g.thread() == 0) put_total(o, share[0], nullptr);
    }
  }

  SINTER_WORD void put_columns(const double* share, int thread, int o, index_t column, double* apart) const {
    if (thread >= across) return;
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) {
      if (column + i >= at.space.inner) return;
      if (apart != nullptr) apart[column + i] = share[thread * lanes + i];
      else put(o, 0, column + i, share[thread * lanes + i]);
    }
  }
  SINTER_WORD void put_total(int o, double sum, double* apart) const {
    if (apart != nullptr) *apart = sum;
    else put(o, 0, 0, sum);
  }
  SINTER_WORD void put(int o, index_t row, index_t column, double sum) const {
    index_t to = column * at.out.step[o];
    each_coordinate(at.space, row, [&](int d, index_t i) { to += i * at.out.stride[o][d]; });
    if (at.wide[o]) put_at(reinterpret_cast<float*>(at.out.data[o]) + to, at.add[o], sum);
    else put_at(reinterpret_cast<double*>(at.out.data[o]) + to, at.add[o], sum);
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
