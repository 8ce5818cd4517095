// sinter/cuda/map.hpp: the body of every elementwise kernel, forward and backward.
//
// A thread computes four neighbouring elements, eight of half or bfloat16: what lies side by side it reads and writes
// in accesses of 16 bytes. It asks for all operands, computes, and writes all results; reading and writing are
// functions that the kernels of a file share, so that of its own each has little more than its formula.
#pragma once

#include <bit>

#include "sinter/cuda/chunk.hpp"

namespace sinter::cuda_impl {

/// Neighbouring elements that a thread computes.
template <class Pass>
inline constexpr int lanes_of = [] {
  if constexpr (requires { requires Pass::narrow; }) return 8;
  else return 4;
}();

/// The types in List that the bits of Chosen name.
template <std::uint64_t Chosen, class List, class... Before>
struct chosen_types {
  using type = type_list<Before...>;
};
template <std::uint64_t Chosen, class T, class... Rest, class... Before>
struct chosen_types<Chosen, type_list<T, Rest...>, Before...>
    : std::conditional_t<(Chosen & 1) != 0, chosen_types<(Chosen >> 1), type_list<Rest...>, Before..., T>,
                         chosen_types<(Chosen >> 1), type_list<Rest...>, Before...>> {};
/// The elements of the inputs that a pass reads, and where input S is among them.
template <class Pass>
using types_read = typename chosen_types<Pass::inputs_read, typename Pass::input_types>::type;
template <class Pass>
inline constexpr int reads_of = std::popcount(Pass::inputs_read);
template <class Pass, int S>
inline constexpr int place_among_read = std::popcount(Pass::inputs_read & sinter::detail::kernel::bits_below(S));

template <class Types>
struct compute_types;
template <class... T>
struct compute_types<type_list<T...>> {
  using type = type_list<compute_type<T>...>;
};
template <class Pass>
using held_inputs = held<types_read<Pass>, lanes_of<Pass>>;
template <class Pass>
using held_outputs = held<typename compute_types<typename Pass::output_types>::type, lanes_of<Pass>>;

/// Where a thread gathers its terms of sums, a chunk for each: in parts of 16 bytes, which neighbouring threads have
/// side by side. It holds no pointer: nvcc takes those that functions are handed in a struct for pointers to the memory
/// of the GPU.
template <class Sum, int Lanes, class G>
struct gathered {
  static constexpr int in_part = 16 / static_cast<int>(sizeof(Sum)), parts = Lanes / in_part;
  G g;

  SINTER_WORD chunk<Sum, in_part>& part(int sum, int number) const {
    auto* const first = reinterpret_cast<chunk<Sum, in_part>*>(g.template shared<double>() + block_threads * Lanes);
    return first[(sum * parts + number) * block_threads + g.thread()];
  }

  /// Adds terms to a sum. False if they belong to none.
  template <class C, int lanes>
  SINTER_WORD bool add(const operand_place& to, const chunk<C, lanes>& terms, int valid) const {
    if (to.sum < 0) return false;
    static_assert(lanes == Lanes);
    SINTER_UNROLL
    for (int n = 0; n < parts; ++n) {
      chunk<Sum, in_part> sum = part(to.sum, n);
      SINTER_UNROLL
      for (int i = 0; i < in_part; ++i)
        sum.value[i] += n * in_part + i < valid ? static_cast<Sum>(terms.value[n * in_part + i]) : Sum(0);
      part(to.sum, n) = sum;
    }
    return true;
  }
};
struct gathers_nothing {
  template <class Place, class Chunk>
  SINTER_WORD bool add(const Place&, const Chunk&, int) const {
    return false;
  }
};

/// From one element to the next.
template <class T, class Place>
SINTER_WORD index_t step_of(const Place& p) {
  if constexpr (requires { Place::dense; }) return sizeof(T);
  else return p.step;
}

/// The first elements of some operands in a chunk.
template <int N>
struct addresses {
  char* of[std::size_t{N}];
};

/// Reads operands with elements T; a bit of `whole` says of each whether a whole chunk is there. From: operand_place*,
/// or what group.hpp has of the kind.
template <int lanes, class... T, class From>
SINTER_WORD held<type_list<T...>, lanes> read_operands(type_list<T...>, const addresses<sizeof...(T)>& at,
                                                       std::uint64_t whole, int valid, const From& from) {
  held<type_list<T...>, lanes> to;
  int s = 0;
  const auto read = [&]<class U>() SINTER_INLINE_LAMBDA {
    const U* const p = reinterpret_cast<const U*>(at.of[s]);
    const chunk<U, lanes> c = (whole >> s & 1) != 0 ? read_chunk<U, lanes>(p, true, lanes, 0)
                                                    : read_chunk<U, lanes>(p, false, valid, step_of<U>(from[s]));
    SINTER_UNROLL
    for (int i = 0; i < lanes; ++i) to.set(s, i, c.value[i]);
    ++s;
  };
  (read.template operator()<T>(), ...);
  return to;
}
/// Writes a result with elements T, or adds it to its sum. Plain: it is a whole chunk, and `to` says nothing else.
template <class T, int lanes, class Place, class Sums>
SINTER_WORD void write_operand(const chunk<compute_type<T>, lanes>& c, char* at, bool overwritten, int valid,
                               const Place& to, const Sums& sums) {
  if (overwritten) return write_whole(reinterpret_cast<T*>(at), c);
  if (sums.add(to, c, valid)) return;
  const bool whole = to.whole && valid == lanes;
  if constexpr (narrow_element<T>) {
    if (to.wide)
      return write_chunk<compute_type<T>, lanes>(reinterpret_cast<compute_type<T>*>(at), whole, valid,
                                                 step_of<compute_type<T>>(to), to.add, c);
  }
  write_chunk<T, lanes>(reinterpret_cast<T*>(at), whole, valid, step_of<T>(to), to.add, c);
}

/// The same, as functions that kernels share. What they are handed and hand over stays in registers, if it is not too
/// much.
template <int lanes, class Types>
SINTER_WORD_NOINLINE held<Types, lanes> read_shared(const addresses<Types::count> at, std::uint64_t whole, int valid,
                                                    const operand_place* from) {
  return read_operands<lanes>(Types{}, at, whole, valid, from);
}
template <class T, int lanes, class Sums>
SINTER_WORD_NOINLINE void write_shared(const chunk<compute_type<T>, lanes> c, char* at, bool overwritten, int valid,
                                       const operand_place& to, const Sums sums) {
  write_operand<T, lanes>(c, at, overwritten, valid, to, sums);
}

/// Random words that the formula of a pass spends on an element.
template <class Pass>
inline constexpr int words_of = [] {
  if constexpr (requires { Pass::plan_type::words; }) return Pass::plan_type::words;
  else return 0;
}();
/// Those of a chunk: neighbours share the blocks in which they are drawn.
template <int Words>
struct drawn_words {
  std::uint32_t drawn[std::size_t{Words}];
};
template <>
struct drawn_words<0> {};

/// What a thread holds of a chunk. Much: it needs more registers than two blocks leave to each.
template <class Pass>
inline constexpr int registers_held =
    held_inputs<Pass>::registers + held_outputs<Pass>::registers + words_of<Pass> * lanes_of<Pass>;
template <class Pass>
inline constexpr bool holds_much = registers_held<Pass> > 80;

/// The machine of expr/kernel.hpp at one lane of what a thread holds.
template <class Pass>
struct lane_machine : drawn_words<words_of<Pass> * lanes_of<Pass>> {
  static constexpr int lanes = lanes_of<Pass>;

  held_inputs<Pass> read;
  mutable held_outputs<Pass> written;
  index_t first = 0;  ///< the row-major index of lane 0
  int lane = 0;

  template <int S, class T>
  SINTER_WORD compute_type<T> load() const {
    static_assert((Pass::inputs_read >> S & 1) != 0);
    return read.template get<T>(place_among_read<Pass, S>, lane);
  }
  template <class T>
  SINTER_WORD compute_type<T> literal(compute_type<T> x) const {
    return x;
  }
  template <int Each>
    requires(Each == words_of<Pass>)
  SINTER_WORD const std::uint32_t* words() const {
    return this->drawn + lane * Each;
  }
  template <int O, class T>
  SINTER_WORD void put(compute_type<T> x) const {
    written.set(O, lane, x);
  }
  template <int O, class T>
  SINTER_WORD void accumulate(compute_type<T> x) const {
    written.set(O, lane, x);
  }
};

/// Runs a formula on a chunk: reads all it needs, computes, writes all results. Frame says where they lie, as map_frame
/// and group_body's item do. Unrolled, so that `lane` is a constant and the machine's arrays are registers.
template <class Machine, class Pass, class Frame, class Sums = gathers_nothing>
SINTER_WORD void run_chunk(Machine& m, const Pass& formula, const Frame& frame, index_t row, index_t column,
                           const Sums& sums = {}) {
  using inputs = held_inputs<Pass>;
  static_assert(Pass::input_types::count == Pass::inputs && Pass::output_types::count == Pass::outputs);
  constexpr int lanes = Machine::lanes;
  addresses<std::max(1, inputs::count)> in;
  addresses<std::max(1, Pass::outputs)> out;
  m.first = frame.find(row, column, in, out);
  const index_t left = frame.row_length() - column;
  const int valid = left < lanes ? static_cast<int>(left) : lanes;
  const std::uint64_t whole = valid == lanes ? frame.whole_inputs : 0,
                      overwritten = valid == lanes ? frame.overwritten_outputs : 0;
  if constexpr (inputs::count > 0) {
    if constexpr (Frame::shared && inputs::registers <= most_read_at_once)
      m.read = read_shared<lanes, types_read<Pass>>(in, whole, valid, frame.in);
    else m.read = read_operands<lanes>(types_read<Pass>{}, in, whole, valid, frame.in);
  }
  if constexpr (words_of<Pass> > 0) formula.k.draw(m.first, m.drawn);
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) {
    m.lane = i;
    formula(m);
  }
  const auto write = [&]<class... T>(type_list<T...>) SINTER_INLINE_LAMBDA {
    int s = 0;
    const auto write_one = [&]<class U>() SINTER_INLINE_LAMBDA {
      chunk<compute_type<U>, lanes> c;
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) c.value[i] = m.written.template get<compute_type<U>>(s, i);
      const bool is_overwritten = (overwritten >> s & 1) != 0;
      if constexpr (Frame::shared) write_shared<U, lanes>(c, out.of[s], is_overwritten, valid, frame.out[s], sums);
      else write_operand<U, lanes>(c, out.of[s], is_overwritten, valid, frame.out[s], sums);
      ++s;
    };
    (write_one.template operator()<T>(), ...);
  };
  write(typename Pass::output_types{});
}

/// What a pass reads and writes, as the host prepares it: all but its formula. An output that repeats is not written by
/// map_body.
struct pass_operands {
  int inputs, outputs;
  pass_axes axes;  ///< inputs, then outputs
  int size[pass_axes::most];
  bool add[sinter::detail::max_operands];
  bool wide[sinter::detail::max_operands] = {};

  // Not inlined, as the constructors of frames: every statement would compile it again.
  [[gnu::noinline]] pass_operands(const index_t* shape, int rank, const leaf_ref* leaves, int leaf_count,
                                  const sink_ref* sinks, int sink_count)
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
      for (int d = 0; d < axes.rank; ++d)
        repeated[s] = repeated[s] || (axes.strides[inputs + s][d] == 0 && axes.shape[d] != 1);
      any = any || repeated[s];
    }
    return any;
  }

  /// Where operand s lies, as a kernel with `lanes` is told of it. Its axes are coalesced.
  [[gnu::noinline]] operand_place place(int s, int lanes) const {
    operand_place to{};
    to.sum = -1;
    to.data = axes.data[s];
    to.step = axes.step(s) * size[s];
    to.whole =
        axes.step(s) == 1 &&
        reinterpret_cast<std::uintptr_t>(to.data) % static_cast<std::uintptr_t>(std::min(size[s] * lanes, 16)) == 0;
    for (int d = 0; d + 1 < axes.rank; ++d) to.whole = to.whole && axes.strides[s][d] % lanes == 0;
    if (s >= inputs) {
      to.add = add[s - inputs];
      to.wide = wide[s - inputs];
    }
    return to;
  }
  /// Where those inputs lie that the bits of `read` name, and all outputs; which lie whole, and which outputs are
  /// overwritten. Strides go where `room` of each operand follow each other.
  [[gnu::noinline]] void place_all(std::uint64_t read, int lanes, operand_place* in, operand_place* out,
                                   std::uint64_t& whole, std::uint64_t& overwritten, index_t* in_strides,
                                   index_t* out_strides, int room) const {
    whole = overwritten = 0;
    for (int s = 0, to = 0; s < inputs; ++s) {
      if ((read >> s & 1) == 0) continue;
      in[to] = place(s, lanes);
      axes.copy_strides(s, in_strides + to * room, size[s]);
      whole |= std::uint64_t{in[to].whole} << to;
      ++to;
    }
    for (int s = 0; s < outputs; ++s) {
      out[s] = place(inputs + s, lanes);
      axes.copy_strides(inputs + s, out_strides + s * room, size[inputs + s]);
      overwritten |= std::uint64_t{out[s].overwritten()} << s;
    }
  }
};

/// The chunks of a pass, in rows, of which the numbers have at most Most axes.
template <int Most>
struct chunk_space {
  static constexpr int room = index_space<Most>::room;
  index_space<Most> space;
  index_t index_stride[std::size_t{room}] = {};  ///< of the row-major index of an element, along the outer axes
  index_t chunks_per_row = 0;
  divider by_chunks = {};
  bool narrow = true;  ///< the chunks' numbers fit the dividers

  [[gnu::noinline]] chunk_space(const pass_axes& axes, int lanes) : space(axes.template space<Most>()) {
    for (int d = 0; d < space.outer_axes; ++d) index_stride[d] = axes.index[d];
    chunks_per_row = (space.inner + lanes - 1) / lanes;
    narrow = chunks() < (index_t{1} << 31);
    if (narrow && chunks_per_row > 0) by_chunks = divider(static_cast<std::uint32_t>(chunks_per_row));
  }
  SINTER_WORD index_t chunks() const { return space.rows * chunks_per_row; }
};

/// What a kernel is told of a pass beside its formula. Passes that read and write as many operands, of as many axes,
/// share it.
template <int Reads, int Outputs, int Lanes, int Most>
struct map_frame : chunk_space<Most> {
  static constexpr bool shared = true;  ///< by the kernels of a file, as are the functions that read and write there
  static constexpr int reads = Reads, outputs = Outputs, lanes = Lanes;
  using chunk_space<Most>::chunks, chunk_space<Most>::index_stride, chunk_space<Most>::room, chunk_space<Most>::space;

  operand_place in[std::size_t{reads > 0 ? reads : 1}];
  operand_place out[std::size_t{outputs > 0 ? outputs : 1}];
  index_t in_stride[(reads > 0 ? reads : 1) * room] = {}, out_stride[(outputs > 0 ? outputs : 1) * room] =
                                                              {};  ///< `room` of each operand
  std::uint64_t whole_inputs, overwritten_outputs;                 ///< a bit for each

  /// The axes of p are coalesced.
  map_frame(const pass_operands& p, std::uint64_t inputs_read) : chunk_space<Most>(p.axes, lanes) {
    p.place_all(inputs_read, lanes, in, out, whole_inputs, overwritten_outputs, in_stride, out_stride, room);
  }

  launch_shape launch() const { return {blocks_for(chunks(), block_threads), 0}; }

  SINTER_WORD index_t row_length() const { return space.inner; }
  /// Finds a row's column in each operand; its row-major index.
  template <int In, int Out>
  SINTER_WORD index_t find(index_t row, index_t column, addresses<In>& to_in, addresses<Out>& to_out) const {
    index_t index = column;
    for (int s = 0; s < reads; ++s) to_in.of[s] = in[s].data + column * in[s].step;
    for (int s = 0; s < outputs; ++s) to_out.of[s] = out[s].data + column * out[s].step;
    if (space.rows > 1)
      each_coordinate(space, row, [&](int d, index_t i) {
        for (int s = 0; s < reads; ++s) to_in.of[s] += i * in_stride[s * room + d];
        for (int s = 0; s < outputs; ++s) to_out.of[s] += i * out_stride[s * room + d];
        index += i * index_stride[d];
      });
    return index;
  }
};

/// Over at most Axes axes.
template <class Pass, int Axes>
using frame_of = map_frame<reads_of<Pass>, Pass::outputs, lanes_of<Pass>, outer_axes_of(Axes)>;

template <class Pass, int Axes>
struct map_body : frame_of<Pass, Axes> {
  using frame = frame_of<Pass, Axes>;
  /// A thread that holds little can do with 64 registers, one that computes eight elements with 80; told nothing, ptxas
  /// keeps where all operands lie in more, from chunk to chunk. One that holds much takes as many as it can.
  static constexpr int blocks_at_once = holds_much<Pass>                                      ? 1
                                        : registers_held<Pass> > (frame::lanes > 4 ? 30 : 36) ? 2
                                        : frame::lanes > 4                                    ? 3
                                                                                              : 4;
  Pass pass;

  map_body(const Pass& formula, const pass_operands& p) : frame(p, Pass::inputs_read), pass(formula) {}

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
      lane_machine<Pass> m;
      run_chunk(m, pass, static_cast<const frame&>(*this), row, column * frame::lanes);
    }
  }
};

}  // namespace sinter::cuda_impl
