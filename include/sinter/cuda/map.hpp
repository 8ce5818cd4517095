// sinter/cuda/map.hpp: the body of every elementwise kernel, forward and backward.
//
// A thread computes four neighbouring elements, eight of half or bfloat16: what lies side by side it reads and writes in
// accesses of 16 bytes.
#pragma once

#include <bit>

#include "sinter/cuda/space.hpp"

namespace sinter::cuda_impl {

/// Neighbouring elements that a thread computes.
template <class Pass>
inline constexpr int lanes_of = [] {
  if constexpr (requires { requires Pass::narrow; }) return 8;
  else return 4;
}();

/// How an operand is read or written along the inner axis.
enum class access_mode : unsigned char { strided, whole_chunks };

/// Asks for the operands that the bits of Read name.
template <std::uint64_t Read, class Machine, class... T, int... S>
SINTER_WORD void fetch(const Machine& m, sinter::detail::kernel::type_list<T...>, std::integer_sequence<int, S...>) {
  (((Read >> S & 1) != 0 ? m.template fetch<S, T>() : void()), ...);
}

/// Runs a formula on each lane of a machine. Unrolled, so that `lane` is a constant and the machine's arrays are registers. What
/// is read is asked for first: a call in between, as of a division's rare cases, would keep the compiler from it.
template <int Lanes, class Machine, class Pass>
SINTER_WORD void run_lanes(Machine& m, const Pass& formula) {
  static_assert(Pass::input_types::count == Pass::inputs);
  fetch<Pass::inputs_read>(m, typename Pass::input_types{}, std::make_integer_sequence<int, Pass::inputs>{});
  SINTER_UNROLL
  for (int i = 0; i < Lanes; ++i) {
    m.lane = i;
    formula(m);
  }
}

template <class T, int lanes>
struct alignas(sizeof(T) * lanes < 16 ? sizeof(T) * lanes : 16) chunk {
  T value[lanes];
};

template <class T, int lanes>
SINTER_WORD chunk<T, lanes> rounded(const chunk<compute_type<T>, lanes>& c) {
  if constexpr (std::is_same_v<T, compute_type<T>>) {
    return c;
  } else {
    chunk<T, lanes> to;
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) to.value[i] = static_cast<T>(c.value[i]);
    return to;
  }
}

// What does not lie side by side, or is added to what is there, is read and written by functions that all kernels share.
template <class T, int lanes>
SINTER_WORD_APART chunk<T, lanes> read_apart(const T* p, int valid, index_t step) {
  chunk<T, lanes> c{};
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) c.value[i] = p[(i < valid ? i : 0) * step];  // no branch for each lane
  return c;
}
template <class T, int lanes>
SINTER_WORD_APART void write_apart(T* p, bool whole, int valid, index_t step, bool add, chunk<compute_type<T>, lanes> c) {
  if constexpr (floating_element<T>) {
    if (add) {
      chunk<T, lanes> old;
      if (whole) old = *reinterpret_cast<const chunk<T, lanes>*>(p);
      else old = read_apart<T, lanes>(p, valid, step);
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) c.value[i] += static_cast<compute_type<T>>(old.value[i]);
    }
  }
  const chunk<T, lanes> to = rounded<T>(c);
  if (whole) {
    *reinterpret_cast<chunk<T, lanes>*>(p) = to;
    return;
  }
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) {
    if (i < valid) p[i * step] = to.value[i];
  }
}

/// Any element in a register of its own, so that leaves of different types share one array.
using sinter::detail::bits_of;
template <class T>
SINTER_WORD std::uint64_t pack(T x) {
  return std::bit_cast<bits_of<T>>(x);
}
template <class T>
SINTER_WORD T unpack(std::uint64_t bits) {
  return std::bit_cast<T>(static_cast<bits_of<T>>(bits));
}

/// What a pass reads and writes, as the host prepares it: all but its formula. An output that repeats is not written by map_body.
struct pass_operands {
  int inputs, outputs;
  pass_axes axes;  ///< inputs, then outputs
  int size[pass_axes::most];
  bool add[sinter::detail::max_operands];

  // Not inlined, as the constructors of frames: every statement would compile it again.
  [[gnu::noinline]] pass_operands(const index_t* shape, int rank, const leaf_ref* leaves, int leaf_count, const sink_ref* sinks, int sink_count)
      : inputs(leaf_count), outputs(sink_count), axes(shape, rank, leaf_count + sink_count) {
    for (int s = 0; s < inputs; ++s) {
      axes.bind(s, leaves[s]);
      size[s] = leaves[s].element_size;
    }
    for (int s = 0; s < outputs; ++s) {
      axes.bind(inputs + s, sinks[s]);
      size[inputs + s] = sinks[s].element_size;
      add[s] = sinks[s].add;
    }
  }

  /// Which outputs repeat along some axis; whether any does.
  [[gnu::noinline]] bool find_repeated(bool* repeated) const {
    bool any = false;
    for (int s = 0; s < outputs; ++s) {
      repeated[s] = false;
      for (int d = 0; d < axes.rank; ++d) repeated[s] = repeated[s] || (axes.strides[inputs + s][d] == 0 && axes.shape[d] != 1);
      any = any || repeated[s];
    }
    return any;
  }

  /// Can operand s be read or written in whole chunks of `lanes` elements? Its axes are coalesced.
  access_mode mode(int s, int lanes) const {
    const std::uintptr_t bytes = static_cast<std::uintptr_t>(std::min(size[s] * lanes, 16));
    bool aligned = axes.step(s) == 1 && reinterpret_cast<std::uintptr_t>(axes.data[s]) % bytes == 0;
    for (int d = 0; d + 1 < axes.rank; ++d) aligned = aligned && axes.strides[s][d] % lanes == 0;
    return aligned ? access_mode::whole_chunks : access_mode::strided;
  }
};

/// The chunks of a pass, in rows.
struct chunk_space {
  index_space space;
  index_t index_stride[max_rank] = {};  ///< of the row-major index of an element, along the outer axes
  index_t chunks_per_row = 0;
  divider by_chunks = {};
  bool narrow = true;  ///< the chunks' numbers fit the dividers

  chunk_space(const pass_axes& axes, int lanes) : space(axes.space()) {
    for (int d = 0; d < space.outer_axes; ++d) index_stride[d] = axes.index[d];
    chunks_per_row = (space.inner + lanes - 1) / lanes;
    narrow = chunks() < (index_t{1} << 31);
    if (narrow && chunks_per_row > 0) by_chunks = divider(static_cast<std::uint32_t>(chunks_per_row));
  }
  SINTER_WORD index_t chunks() const { return space.rows * chunks_per_row; }
};

/// What a kernel is told of a pass beside its formula. Passes of as many operands share it, and the machine that works on it.
template <int Inputs, int Outputs, int Lanes>
struct map_frame : chunk_space {
  static constexpr int inputs = Inputs, outputs = Outputs, lanes = Lanes;

  operand_table<inputs> in;
  operand_table<outputs> out;
  access_mode in_mode[operand_table<inputs>::size] = {};
  access_mode out_mode[operand_table<outputs>::size] = {};
  bool add[operand_table<outputs>::size] = {};
  bool wide[operand_table<outputs>::size] = {};  ///< a sum of narrow elements, gathered in float

  /// The axes of p are coalesced.
  [[gnu::noinline]] explicit map_frame(const pass_operands& p)
      : chunk_space(p.axes, lanes), in(p.axes.table<inputs>(0)), out(p.axes.table<outputs>(inputs)) {
    for (int s = 0; s < inputs; ++s) in_mode[s] = p.mode(s, lanes);
    for (int s = 0; s < outputs; ++s) {
      out_mode[s] = p.mode(inputs + s, lanes);
      add[s] = p.add[s];
      wide[s] = p.size[inputs + s] == sizeof(float);
    }
  }

  launch_shape launch() const { return {blocks_for(chunks(), block_threads), 0}; }

  /// Puts a machine where a chunk begins.
  template <class Machine>
  SINTER_WORD void place(Machine& m, index_t row, index_t column) const {
    m.index_of_chunk = column;
    if (space.rows > 1) {
      each_coordinate(space, row, [&](int d, index_t i) {
        for (int s = 0; s < inputs; ++s) m.in_at[s] += i * in.stride[s][d];
        for (int s = 0; s < outputs; ++s) m.out_at[s] += i * out.stride[s][d];
        m.index_of_chunk += i * index_stride[d];
      });
    }
    for (int s = 0; s < inputs; ++s) m.in_at[s] += column * in.step[s];
    for (int s = 0; s < outputs; ++s) m.out_at[s] += column * out.step[s];
    m.valid = space.inner - column < lanes ? static_cast<int>(space.inner - column) : lanes;
  }
};

/// The machine of expr/kernel.hpp at one lane of a chunk, which is read before the first lane and written at the last one. Frame
/// says where the operands lie, as map_frame and group_body's item do.
template <class Frame>
struct chunk_machine {
  static constexpr int inputs = Frame::inputs, outputs = Frame::outputs, lanes = Frame::lanes;

  const Frame& frame;
  int lane = 0;
  int valid = lanes;
  index_t index_of_chunk = 0;
  index_t in_at[operand_table<inputs>::size] = {};
  index_t out_at[operand_table<outputs>::size] = {};
  mutable std::uint64_t read[operand_table<inputs>::size][lanes] = {};
  mutable std::uint64_t written[operand_table<outputs>::size][lanes] = {};

  SINTER_WORD explicit chunk_machine(const Frame& f) : frame(f) {}

  template <int S, class T>
  SINTER_WORD compute_type<T> load() const {
    if constexpr (requires { typename Frame::input_types; }) static_assert(std::is_same_v<T, typename Frame::input_types::template at<S>>);
    return unpack<T>(read[S][lane]);
  }
  template <class T>
  SINTER_WORD compute_type<T> literal(compute_type<T> x) const {
    return x;
  }
  SINTER_WORD index_t index() const { return index_of_chunk + lane; }
  template <int O, class T>
  SINTER_WORD void put(compute_type<T> x) const {
    written[O][lane] = pack(x);
    if (lane == lanes - 1) flush<O, T>();
  }
  template <int O, class T>
  SINTER_WORD void accumulate(compute_type<T> x) const {
    written[O][lane] = pack(x);
    if (lane == lanes - 1) flush_sum<O, T>();
  }
  template <int O, class T>
  SINTER_WORD void flush_sum() const {
    if constexpr (narrow_element<T>) {
      if (frame.wide[O]) return flush<O, float>();
    }
    flush<O, T>();
  }

  template <int S, class T>
  SINTER_WORD void fetch() const {
    const T* const p = reinterpret_cast<const T*>(frame.in.data[S]) + in_at[S];
    chunk<T, lanes> c;
    if (is_whole(frame.in_mode[S])) c = *reinterpret_cast<const chunk<T, lanes>*>(p);
    else c = read_apart<T, lanes>(p, valid, frame.in.step[S]);
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) read[S][i] = pack<T>(c.value[i]);
  }
  template <int O, class T>
  SINTER_WORD void flush() const {
    T* const p = reinterpret_cast<T*>(frame.out.data[O]) + out_at[O];
    const bool whole = is_whole(frame.out_mode[O]), add = frame.add[O];
    chunk<compute_type<T>, lanes> c;
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) c.value[i] = unpack<compute_type<T>>(written[O][i]);
    if (whole && !add) *reinterpret_cast<chunk<T, lanes>*>(p) = rounded<T>(c);
    else write_apart<T, lanes>(p, whole, valid, frame.out.step[O], add, c);
  }

  SINTER_WORD bool is_whole(access_mode mode) const { return mode == access_mode::whole_chunks && valid == lanes; }
};

template <class Pass>
using frame_of = map_frame<Pass::inputs, Pass::outputs, lanes_of<Pass>>;

template <class Pass>
struct map_body : frame_of<Pass> {
  using frame = frame_of<Pass>;
  Pass pass;

  map_body(const Pass& formula, const pass_operands& p) : frame(p), pass(formula) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t stride = g.blocks() * g.threads();
    const index_t n = this->chunks();
    for (index_t c = g.block() * g.threads() + g.thread(); c < n; c += stride) {
      index_t row = 0, column = c;
      if (this->space.rows > 1) {
        row = quotient(c, this->chunks_per_row, this->by_chunks, this->narrow);
        column = c - row * this->chunks_per_row;
      }
      chunk_machine<frame> m(*this);
      this->place(m, row, column * frame::lanes);
      run_lanes<frame::lanes>(m, pass);
    }
  }
};

}  // namespace sinter::cuda_impl
