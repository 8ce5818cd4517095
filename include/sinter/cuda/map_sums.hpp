// sinter/cuda/map_sums.hpp: the body of backward passes, which add up the gradients of broadcast leaves on the way.
//
// A block goes down a slab of rows, each thread in columns of its own, and adds in registers; then its threads add up what
// they have, in double, and the block that comes last adds up what all of them have. The order follows from the shape alone.
#pragma once

#include <algorithm>

#include "sinter/cuda/map.hpp"

namespace sinter::cuda_impl {

/// What an element of a leaf's gradient is made of.
enum class sink_kind : unsigned char {
  element,  ///< one element of the pass
  row,      ///< a row
  column,   ///< a column of a group of rows
  total     ///< all of a group of rows
};

/// The blocks of a pass that gathers sums.
struct sums_grid {
  bool rows = false, columns = false, totals = false;  ///< the kinds of sums there are
  index_t groups = 1, height = 1;                      ///< of rows that follow each other
  int across = 1, down = block_threads;                ///< powers of two: threads side by side, and one above the other
  index_t strips = 1;                                  ///< blocks side by side
  index_t slabs = 1, per_slab = 0;                     ///< blocks of a group one above the other, and their rows
  unsigned* arrivals = nullptr;                        ///< a counter per group, then one per group and strip

  index_t blocks() const { return groups * strips * slabs; }

  /// Lays out threads and blocks; kinds and groups are set. False where blocks would have too little to do, or threads more
  /// columns than they have registers for.
  bool lay_out(index_t pass_rows, index_t chunks) {
    const auto up = [](index_t n, index_t d) { return std::max<index_t>(1, (n + d - 1) / d); };  // sums of nothing are written too
    height = groups > 0 ? pass_rows / groups : 0;
    const bool wide_block = rows ? columns || pass_rows < 512 : !columns && height == 1;
    across = 1;
    while (across < (wide_block ? block_threads : 32) && across < chunks) across *= 2;
    down = block_threads / across;
    const index_t high = up(height, down), wide = up(chunks, across), enough = rows || columns || totals ? enough_blocks : most_blocks;
    if (rows) {
      if (wide > (columns ? 1 : pass_rows < 128 ? 64 : 4096)) return false;
      strips = 1;
      slabs = std::min(high, totals || columns ? std::max<index_t>(1, enough / groups) : most_blocks);
    } else {
      strips = columns ? wide : std::min(wide, up(enough, high * groups));
      slabs = std::min(high, std::max<index_t>(1, enough / (strips * groups)));
    }
    per_slab = up(high, slabs) * down;
    slabs = up(height, per_slab);
    if (groups > 16 * enough && height * chunks < block_threads) return false;
    const index_t counters = columns && slabs > 1 ? groups * (strips + 1) : totals && slabs * strips > 1 ? groups : 0;
    if (counters > max_arrivals) return false;
    return blocks() <= most_blocks;
  }

  /// The sums of that kind which blocks leave to be added up, of a pass with rows of `inner` elements.
  index_t partial_sums(sink_kind kind, index_t inner) const {
    if (kind == sink_kind::column && slabs > 1) return groups * slabs * inner;
    if (kind == sink_kind::total && slabs * strips > 1) return groups * slabs * strips;
    return 0;
  }
};

/// What of a pass that gathers sums does not follow from its operands.
struct sums_plan : sums_grid {
  const sinter::detail::kernel::gradient_format* format;  ///< of each output
  sink_kind kind[sinter::detail::max_operands] = {};
  double* partial[sinter::detail::max_operands] = {};
};

/// The threads of a block that have terms of the same sums, and where their sums go.
struct team {
  int place, size, apart;              ///< of the thread among them; how many; how far they lie from each other
  int count;                           ///< their sums, neighbours
  int pieces, first_piece, piece;      ///< blocks with terms of the same sums, the first of them and this one
  index_t row, column;                 ///< of the first sum
  index_t pitch;                       ///< how far the sums of two blocks lie apart
};

/// Where the sums of an output go.
struct sum_place {
  char* data;
  double* partial;  ///< sums of the blocks
  index_t step;
  const index_t* stride;
  const index_space* space;
  sink_kind kind;
  sinter::detail::kernel::gradient_format format;
  bool add;

  template <class T>
  SINTER_WORD void put(index_t place, double sum) const {
    T& to = reinterpret_cast<T*>(data)[place];
    to = static_cast<T>(add ? static_cast<double>(to) + sum : sum);
  }
};

template <class F>
SINTER_WORD void each_of(const team& t, const F& f) {
  for (int i = 0; i < t.count; ++i) {
    keep_loop(i);
    f(i);
  }
}

/// Adds up the shares of a team, or when merging what all its blocks left, and passes the sums on. All kernels share it. Narrow,
/// Doubles: there may be elements of half and bfloat16, of double.
template <int lanes, bool Narrow, bool Doubles, class G>
SINTER_WORD_APART void add_up_shares(const G g, double* share, const sum_place to, const team t, bool merging) {
  if (merging) {
    each_of(t, [&](int i) {
      share[i] = 0;
      for (int p = t.place; p < t.pieces; p += t.size) share[i] += g.fresh(to.partial + (t.first_piece + p) * t.pitch + t.column + i);
    });
  } else if (to.kind != sink_kind::column) {
    for (int lane = 1; lane < lanes; ++lane) share[0] += share[lane];
  }
  for (int step = t.size / 2; step > 0; step /= 2) {  // leaves the sums with the first thread
    g.sync();
    if (t.place < step) each_of(t, [&](int i) { share[i] += share[step * t.apart * lanes + i]; });
  }
  if (t.place != 0) return;
  if (t.pieces > 1 && !merging) return each_of(t, [&](int i) { to.partial[t.piece * t.pitch + t.column + i] = share[i]; });
  index_t first = t.column * to.step;
  each_coordinate(*to.space, t.row, [&](int d, index_t i) { first += i * to.stride[d]; });
  each_of(t, [&](int i) {
    const index_t place = first + i * to.step;
    using sinter::detail::kernel::gradient_format;
    if constexpr (Narrow) {
      if (to.format == gradient_format::half) return to.put<half>(place, share[i]);
      if (to.format == gradient_format::bfloat16) return to.put<bfloat16>(place, share[i]);
    }
    if constexpr (Doubles) {
      if (to.format == gradient_format::float64) return to.put<double>(place, share[i]);
    }
    to.put<float>(place, share[i]);
  });
}

/// What a kernel is told of a pass that gathers sums of type Sum, beside its formula. Narrow, Doubles: there may be gradients of half
/// and bfloat16, of double.
template <class Frame, class Sum, bool Narrow, bool Doubles>
struct sums_frame : sums_grid {
  static constexpr int outputs = Frame::outputs, lanes = Frame::lanes;
  using registers = Sum[outputs][lanes];

  Frame at;
  sink_kind kind[outputs] = {};
  double* partial[outputs] = {};  ///< sums of the blocks
  sinter::detail::kernel::gradient_format format[outputs] = {};

  [[gnu::noinline]] sums_frame(const pass_operands& p, const sums_plan& plan) : sums_grid(plan), at(p) {
    for (int s = 0; s < outputs; ++s) {
      kind[s] = plan.kind[s];
      partial[s] = plan.partial[s];
      format[s] = plan.format[s];
    }
  }

  launch_shape launch() const { return {blocks(), rows || columns || totals ? sizeof(double) * block_threads * lanes : 0}; }

  /// A machine whose sums stay in registers.
  struct machine : chunk_machine<Frame> {
    const sums_frame& sums;
    registers& sum;

    SINTER_WORD machine(const sums_frame& f, registers& s) : chunk_machine<Frame>(f.at), sums(f), sum(s) {}
    template <int O, class T>
    SINTER_WORD void accumulate(compute_type<T> x) const {
      if (this->lane < this->valid) sum[O][this->lane] += static_cast<Sum>(x);
      this->written[O][this->lane] = pack(x);
      if (this->lane == lanes - 1 && sums.kind[O] == sink_kind::element) this->template flush_sum<O, T>();
    }
  };

  /// Adds up what a team has of output o: in registers, which then start anew, or when merging in what all its blocks left. A
  /// thread's `share` has a place for each lane.
  template <class G>
  SINTER_WORD void add_up(const G& g, double* share, registers& sum, int o, const team& t, bool merging) const {
    g.sync();
    if (!merging) {
      SINTER_UNROLL
      for (int i = 0; i < outputs; ++i) {
        if (i != o) continue;
        SINTER_UNROLL
        for (int lane = 0; lane < lanes; ++lane) {
          share[lane] = static_cast<double>(sum[i][lane]);
          sum[i][lane] = 0;
        }
      }
    }
    const sum_place to{at.out.data[o], partial[o], at.out.step[o], at.out.stride[o], &at.space, kind[o], format[o], at.add[o]};
    add_up_shares<lanes, Narrow, Doubles>(g, share, to, t, merging);
  }
};

template <class Pass, class Formats = sinter::detail::gradient_formats<typename Pass::plan_type>>
using sums_frame_of = sums_frame<frame_of<Pass>, std::conditional_t<Formats().any_double, double, typename Pass::sum_type>, Formats().any_narrow,
                                 Formats().any_double>;

template <class Pass>
struct map_sums_body : sums_frame_of<Pass> {
  using frame = sums_frame_of<Pass>;
  using frame::across, frame::add_up, frame::arrivals, frame::at, frame::columns, frame::down, frame::groups, frame::height, frame::kind,
      frame::lanes, frame::outputs, frame::per_slab, frame::rows, frame::slabs, frame::strips, frame::totals;
  Pass pass;

  map_sums_body(const Pass& formula, const pass_operands& p, const sums_plan& plan) : frame(p, plan), pass(formula) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    double* const share = g.template shared<double>() + g.thread() * lanes;
    const int x = g.thread() % across, y = g.thread() / across;
    const index_t slab = g.block() / strips, strip = g.block() - slab * strips, group = slab / slabs;
    const index_t first = group * height, begin = first + (slab - group * slabs) * per_slab;
    const index_t end = begin + per_slab < first + height ? begin + per_slab : first + height;
    const index_t column = (strip * across + x) * lanes, left = at.space.inner - column;
    const index_t group_blocks = slabs * strips;
    const auto as_int = [](index_t n) SINTER_INLINE_LAMBDA { return static_cast<int>(n); };  // there are at most most_blocks
    const team above{y, down, across, as_int(left < 0 ? 0 : left < lanes ? left : lanes), as_int(slabs), as_int(group * slabs), as_int(slab), first, column,
                     at.space.inner};
    const team all{g.thread(), block_threads, 1, 1, as_int(group_blocks), as_int(group * group_blocks), as_int(g.block()), first, 0, 1};
    typename frame::registers sum = {};
    bool merge_columns = false, merge_totals = false;
    for (index_t top = begin;; top += down) {  // equally often for all threads: they may meet
      const index_t row = top + y;
      for (index_t c = strip * across + x; row < end && c < at.chunks_per_row; c += strips * across) {
        typename frame::machine m(*this, sum);
        at.place(m, row, c * lanes);
        run_lanes<lanes>(m, pass);
      }
      const bool through = top + down >= end, merging = merge_columns || merge_totals;
      if (!through && !rows) continue;
      for (int o = 0; o < outputs; ++o) {
        keep_loop(o);
        team t = all;
        bool wanted = through && merging == merge_totals;
        if (kind[o] == sink_kind::column) {
          t = above;
          wanted = through && merging == merge_columns;
        } else if (kind[o] == sink_kind::row) {
          t = {x, across, 1, row < end ? 1 : 0, 1, 0, 0, row, 0, 0};
          wanted = !merging;
        }
        if (wanted && kind[o] != sink_kind::element) add_up(g, share, sum, o, t, merging);  // one call: it is long
      }
      if (!through) continue;
      if (merging) break;
      merge_columns = columns && slabs > 1 && g.arrives_last(arrivals + groups + group * strips + strip, static_cast<unsigned>(slabs));
      merge_totals = totals && group_blocks > 1 && g.arrives_last(arrivals + group, static_cast<unsigned>(group_blocks));
      if (!merge_columns && !merge_totals) break;
    }
  }
};

/// The sum that operand s of coalesced axes is made of. It repeats along some of them.
inline sink_kind sum_of(const pass_axes& axes, int s) {
  const int last = axes.rank - 1;
  if (last >= 0 && axes.strides[s][last] != 0) return sink_kind::column;
  for (int d = 0; d < last; ++d)
    if (axes.strides[s][d] == 0) return sink_kind::total;
  return last > 0 ? sink_kind::row : sink_kind::total;
}

/// Plans a pass with sums of the outputs that fold. False, with apart[s] set, where those of output s have to be made another
/// way. The axes of p are coalesced, and may be put in another order.
inline bool plan_sums(pass_operands& p, int lanes, const bool* folds, bool* apart, sums_plan& plan) {
  pass_axes& axes = p.axes;
  int first = -1;  // the output that says which rows make up a group
  bool fits = true;
  const auto in_group = [&](int s, int d) { return axes.strides[p.inputs + s][d] == 0; };
  for (int s = 0; s < p.outputs; ++s) {
    if (!folds[s] || apart[s]) continue;
    plan.kind[s] = sum_of(axes, p.inputs + s);
    if (plan.kind[s] == sink_kind::row) plan.rows = true;
    else if (first < 0) first = s;
    else
      for (int d = 0; d + 1 < axes.rank; ++d) apart[s] = apart[s] || in_group(s, d) != in_group(first, d);
    fits = fits && !apart[s];
  }
  if (!fits) return false;
  index_t numel = 1;
  for (int d = 0; d < axes.rank; ++d) {
    numel *= axes.shape[d];
    if (first >= 0 && d + 1 < axes.rank && !in_group(first, d)) plan.groups *= axes.shape[d];
  }
  if (first >= 0) axes.bring_forward(p.inputs + first);
  const chunk_space chunks(axes, lanes);
  if (plan.rows && first < 0 && numel > 0 && chunks.space.rows < 512 && chunks.chunks_per_row > 2 * block_threads) {  // each a group of its own
    for (int s = 0; s < p.outputs; ++s)
      if (plan.kind[s] == sink_kind::row) plan.kind[s] = sink_kind::total;
    plan.groups = chunks.space.rows;
    plan.rows = false;
  }
  for (int s = 0; s < p.outputs; ++s) {
    plan.columns = plan.columns || plan.kind[s] == sink_kind::column;
    plan.totals = plan.totals || plan.kind[s] == sink_kind::total;
  }
  if (numel > 0 || plan.rows || plan.columns || plan.totals) {
    if ((numel > 0 || plan.groups == 1) && plan.lay_out(chunks.space.rows, chunks.chunks_per_row)) return true;
    for (int s = 0; s < p.outputs; ++s) apart[s] = apart[s] || (folds[s] && (!plan.rows || plan.kind[s] == sink_kind::row));
    return false;
  }
  plan.groups = 0;  // nothing to do
  return true;
}

}  // namespace sinter::cuda_impl
