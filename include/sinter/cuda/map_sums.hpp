// sinter/cuda/map_sums.hpp: the body of backward passes, which add up the gradients of broadcast leaves on the way.
//
// A block goes down a slab of rows, each thread in columns of its own, and adds in shared memory; then its threads add
// up what they have, in double, and the block that comes last adds up what all of them have. The order follows from the
// shape alone. All this is in functions that the kernels of a file share.
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

/// The memory that a block shares: a double for each lane of its threads, and as many of what they gather of each sum.
constexpr std::size_t bytes_of_sums(int lanes, int sums, std::size_t sum_size) {
  return static_cast<std::size_t>(block_threads * lanes) * (sizeof(double) + static_cast<std::size_t>(sums) * sum_size);
}

/// How many sums a block has memory for.
constexpr int most_sums(int lanes, std::size_t sum_size) {
  int n = 0;
  while (bytes_of_sums(lanes, n + 1, sum_size) <= most_shared_bytes) ++n;
  return n;
}
static_assert(most_sums(4, sizeof(float)) == 13 && most_sums(8, sizeof(float)) == 5 &&
                  most_sums(4, sizeof(double)) == 6,
              "docs/gpu.md says so");

/// The blocks of a pass that gathers sums.
struct sums_grid {
  bool rows = false, columns = false, totals = false;  ///< the kinds of sums there are
  int sums = 0;                                        ///< how many
  index_t groups = 1, height = 1;                      ///< of rows that follow each other
  int across = 1, down = block_threads;                ///< powers of two: threads side by side, and one above the other
  index_t strips = 1;                                  ///< blocks side by side
  index_t slabs = 1, per_slab = 0;                     ///< blocks of a group one above the other, and their rows
  unsigned* arrivals = nullptr;                        ///< a counter per group, then one per group and strip

  index_t blocks() const { return groups * strips * slabs; }

  /// Lays out threads and blocks; kinds and groups are set. False where blocks would have too little to do, or threads
  /// more columns than it gathers.
  bool lay_out(index_t pass_rows, index_t chunks) {
    const auto up = [](index_t n, index_t d) {
      return std::max<index_t>(1, (n + d - 1) / d);
    };  // sums of nothing are written too
    height = groups > 0 ? pass_rows / groups : 0;
    const bool wide_block = rows ? columns || pass_rows < 512 : !columns && height == 1;
    across = 1;
    while (across < (wide_block ? block_threads : 32) && across < chunks) across *= 2;
    down = block_threads / across;
    const index_t high = up(height, down), wide = up(chunks, across),
                  enough = rows || columns || totals ? enough_blocks : most_blocks;
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

/// An output that is a sum, and where that goes.
struct sum_place : operand_place {
  double* partial;  ///< sums of the blocks
  int output;       ///< its number
  sink_kind kind;
  sinter::detail::kernel::gradient_format format;

  template <class T>
  SINTER_WORD void put(index_t place, double x) const {  // in bytes
    T& to = *reinterpret_cast<T*>(data + place);
    to = static_cast<T>(add ? static_cast<double>(to) + x : x);
  }
};

/// What of a pass that gathers sums does not follow from its operands.
struct sums_plan : sums_grid {
  const sinter::detail::kernel::gradient_format* format;  ///< of each output
  sink_kind kind[sinter::detail::max_operands] = {};
  double* partial[sinter::detail::max_operands] = {};

  [[gnu::noinline]] int place_sums(int outputs, operand_place* out, std::uint64_t& overwritten, sum_place* to) const {
    int n = 0;
    for (int s = 0; s < outputs; ++s) {
      if (kind[s] == sink_kind::element) continue;
      out[s].sum = n;
      overwritten &= ~(std::uint64_t{1} << s);
      static_cast<operand_place&>(to[n]) = out[s];
      to[n].partial = partial[s];
      to[n].output = s;
      to[n].kind = kind[s];
      to[n].format = format[s];
      ++n;
    }
    return n;
  }
};

/// The threads of a block that have terms of the same sums, and where their sums go.
struct team {
  int lane_in_team;                ///< the number of the thread in its team
  int team_size;                   ///< in threads
  int thread_stride;               ///< between the numbers of neighbours in the team
  int count;                       ///< their sums, neighbours
  int pieces, first_piece, piece;  ///< blocks with terms of the same sums, the first of them and this one
  index_t row, column;             ///< of the first sum
  index_t pitch;                   ///< from the sums of one block to those of the next
};

template <class F>
SINTER_WORD void each_of(const team& t, const F& f) {
  for (int i = 0; i < t.count; ++i) {
    keep_loop(i);
    f(i);
  }
}

/// Where a block and a thread are in a pass, and whom they add up with.
struct sums_block {
  index_t slab, strip, group, first;  ///< the slab's number among all; the group's first row
  index_t begin, end;                 ///< rows of the block
  index_t row, chunk;                 ///< the thread's first ones

  // There are at most most_blocks.
  template <class G>
  SINTER_WORD sums_block(const G& g, const sums_grid& grid)
      : slab(static_cast<unsigned>(g.block()) / static_cast<unsigned>(grid.strips)),
        strip(g.block() - slab * grid.strips),
        group(static_cast<unsigned>(slab) / static_cast<unsigned>(grid.slabs)),
        first(group * grid.height),
        begin(first + (slab - group * grid.slabs) * grid.per_slab),
        end(begin + grid.per_slab < first + grid.height ? begin + grid.per_slab : first + grid.height),
        row(begin + g.thread() / grid.across),
        chunk(strip * grid.across + g.thread() % grid.across) {}
  /// The threads with terms of the sums of a column, of a row, and of all of a group.
  template <int lanes, class G>
  SINTER_WORD team with(const G& g, sink_kind kind, const sums_grid& grid, index_t inner, index_t row_of_sum) const {
    if (kind == sink_kind::column) {
      const index_t column = chunk * lanes, left = inner - column;
      return {static_cast<int>(row - begin),
              grid.down,
              grid.across,
              static_cast<int>(left < 0       ? 0
                               : left < lanes ? left
                                              : lanes),
              static_cast<int>(grid.slabs),
              static_cast<int>(group * grid.slabs),
              static_cast<int>(slab),
              first,
              column,
              inner};
    }
    if (kind == sink_kind::row)
      return {g.thread() % grid.across, grid.across, 1, row_of_sum < end ? 1 : 0, 1, 0, 0, row_of_sum, 0, 0};
    const index_t blocks = grid.slabs * grid.strips;
    return {g.thread(),
            block_threads,
            1,
            1,
            static_cast<int>(blocks),
            static_cast<int>(group * blocks),
            static_cast<int>(g.block()),
            first,
            0,
            1};
  }
};

/// The part of a pass that a thread works on.
struct sums_part {
  index_t row, begin, end, chunk;
};
/// That part; what a thread gathers begins at 0.
template <class Sum, int lanes, class G>
SINTER_WORD_NOINLINE sums_part begin_sums(const sums_grid& grid, const gathered<Sum, lanes, G> terms) {
  for (int o = 0; o < grid.sums; ++o) {
    SINTER_UNROLL
    for (int n = 0; n < terms.parts; ++n) terms.part(o, n) = {};
  }
  const sums_block block(terms.g, grid);
  return {block.row, block.begin, block.end, block.chunk};
}

/// Adds up the shares of a team, or when merging what all its blocks left, and passes the sums on. Narrow, Doubles:
/// there may be elements of half and bfloat16, of double.
template <int lanes, bool Narrow, bool Doubles, int Most, class G>
SINTER_WORD void add_up_shares(const G& g, double* share, const sum_place& to, const index_t* stride,
                               const index_space<Most>& space, const team& t, bool merging) {
  if (merging) {
    each_of(t, [&](int i) {
      share[i] = 0;
      for (int p = t.lane_in_team; p < t.pieces; p += t.team_size)
        share[i] += g.fresh(to.partial + (t.first_piece + p) * t.pitch + t.column + i);
    });
  } else if (to.kind != sink_kind::column) {
    for (int lane = 1; lane < lanes; ++lane) share[0] += share[lane];
  }
  for (int step = t.team_size / 2; step > 0; step /= 2) {  // leaves the sums with the first thread
    g.sync();
    if (t.lane_in_team < step) each_of(t, [&](int i) { share[i] += share[step * t.thread_stride * lanes + i]; });
  }
  if (t.lane_in_team != 0) return;
  if (t.pieces > 1 && !merging)
    return each_of(t, [&](int i) { to.partial[t.piece * t.pitch + t.column + i] = share[i]; });
  index_t first = t.column * to.step;
  each_coordinate(space, t.row, [&](int d, index_t i) { first += i * stride[d]; });
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

/// Adds up what the threads of a block have gathered of each sum, in double: of rows, `row` of each thread, and when
/// through of all. Then the block that comes last adds up what all have left. All kernels share it.
template <bool Narrow, bool Doubles, int Most, class Sum, int lanes, class G>
SINTER_WORD_NOINLINE void add_up(const sums_grid& grid, const index_space<Most>& space, const sum_place* places,
                                 const index_t* strides, const gathered<Sum, lanes, G> terms, index_t row,
                                 bool through) {
  const G& g = terms.g;
  const sums_block block(g, grid);
  double* const share = g.template shared<double>() + g.thread() * lanes;
  bool columns_done = !through, totals_done = !through, merging = false;
  for (;;) {
    for (int o = 0; o < grid.sums; ++o) {
      keep_loop(o);
      const sink_kind kind = places[o].kind;
      if (kind == sink_kind::row ? merging : kind == sink_kind::column ? columns_done : totals_done) continue;
      if (!merging) {
        SINTER_UNROLL
        for (int n = 0; n < terms.parts; ++n) {
          SINTER_UNROLL
          for (int i = 0; i < terms.in_part; ++i)
            share[n * terms.in_part + i] = static_cast<double>(terms.part(o, n).value[i]);
          terms.part(o, n) = {};
        }
      }
      add_up_shares<lanes, Narrow, Doubles>(g, share, places[o], strides + places[o].output * space.room, space,
                                            block.with<lanes>(g, kind, grid, space.inner, row), merging);
      g.sync();  // before others write to the shares
    }
    if (!through || merging) return;
    const index_t slabs = grid.slabs, blocks = slabs * grid.strips;  // of a group
    unsigned* const arrivals = grid.arrivals;
    columns_done = !(
        grid.columns && slabs > 1 &&
        g.arrives_last(arrivals + grid.groups + block.group * grid.strips + block.strip, static_cast<unsigned>(slabs)));
    totals_done = !(grid.totals && blocks > 1 && g.arrives_last(arrivals + block.group, static_cast<unsigned>(blocks)));
    if (columns_done && totals_done) return;
    merging = true;
  }
}

/// What a kernel is told of a pass that gathers sums, beside its formula.
template <class Frame>
struct sums_frame : sums_grid {
  static constexpr int outputs = Frame::outputs, lanes = Frame::lanes;

  Frame at;
  sum_place place[std::size_t{outputs}];  ///< of the sums there are

  sums_frame(const pass_operands& p, std::uint64_t inputs_read, const sums_plan& plan)
      : sums_grid(plan), at(p, inputs_read) {
    sums = plan.place_sums(outputs, at.out, at.overwritten_outputs, place);
  }
};

template <class Pass, int Axes>
struct map_sums_body : sums_frame<frame_of<Pass, Axes>> {
  using frame = sums_frame<frame_of<Pass, Axes>>;
  using frame::across, frame::at, frame::down, frame::lanes, frame::place, frame::rows, frame::strips, frame::sums;
  static constexpr sinter::detail::gradient_formats<typename Pass::plan_type> formats{};
  using sum_type = std::conditional_t<formats.any_double, double, typename Pass::sum_type>;  ///< of few terms
  static constexpr int room = most_sums(frame::lanes, sizeof(sum_type));
  static constexpr int blocks_at_once = holds_much<Pass> ? 1 : 2;
  Pass pass;

  map_sums_body(const Pass& formula, const pass_operands& p, const sums_plan& plan)
      : frame(p, Pass::inputs_read, plan), pass(formula) {}

  launch_shape launch() const { return {this->blocks(), sums > 0 ? bytes_of_sums(lanes, sums, sizeof(sum_type)) : 0}; }

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const gathered<sum_type, lanes, G> terms{g};
    const sums_part part = begin_sums(*this, terms);
    index_t row = part.row;
    for (index_t top = part.begin;; row += down) {  // equally often for all threads: they may meet
      for (index_t c = part.chunk; row < part.end && c < at.chunks_per_row; c += strips * across) {
        lane_machine<Pass> m;
        run_chunk(m, pass, at, row, c * lanes, terms);
      }
      top += down;
      const bool through = top >= part.end;
      if (sums > 0 && (rows || through))
        add_up<formats.any_narrow, formats.any_double>(*this, at.space, place, at.out_stride, terms, row, through);
      if (through) break;
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

/// Plans a pass with sums of the outputs that fold. False, with separate[s] set, where those of output s have to be
/// made another way: there is room for so many. The axes of p are coalesced, and may be put in another order.
inline bool plan_sums(pass_operands& p, int lanes, int room, const bool* folds, bool* separate, sums_plan& plan) {
  pass_axes& axes = p.axes;
  int first = -1;  // the output that says which rows make up a group
  bool fits = true;
  const auto in_group = [&](int s, int d) { return axes.strides[p.inputs + s][d] == 0; };
  for (int s = 0; s < p.outputs; ++s) {
    if (!folds[s] || separate[s]) continue;
    plan.kind[s] = sum_of(axes, p.inputs + s);
    if (plan.kind[s] == sink_kind::row) plan.rows = true;
    else if (first < 0) first = s;
    else
      for (int d = 0; d + 1 < axes.rank; ++d) separate[s] = separate[s] || in_group(s, d) != in_group(first, d);
    if (!separate[s] && room-- <= 0) separate[s] = true;
    fits = fits && !separate[s];
  }
  if (!fits) return false;
  index_t numel = 1;
  for (int d = 0; d < axes.rank; ++d) {
    numel *= axes.shape[d];
    if (first >= 0 && d + 1 < axes.rank && !in_group(first, d)) plan.groups *= axes.shape[d];
  }
  if (first >= 0) axes.bring_forward(p.inputs + first);
  const chunk_space<outer_axes_of(max_rank)> chunks(axes, lanes);
  if (plan.rows && first < 0 && numel > 0 && chunks.space.rows < 512 &&
      chunks.chunks_per_row > 2 * block_threads) {  // each a group of its own
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
    for (int s = 0; s < p.outputs; ++s)
      separate[s] = separate[s] || (folds[s] && (!plan.rows || plan.kind[s] == sink_kind::row));
    return false;
  }
  plan.groups = 0;  // nothing to do
  return true;
}

}  // namespace sinter::cuda_impl
