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

/// Runs a formula on each lane of a machine. Unrolled, so that `lane` is a constant and the machine's arrays are registers. What
/// is read is asked for first: a call in between, as of a division's rare cases, would keep the compiler from it.
template <int Lanes, class Machine, class Pass>
SINTER_WORD void run_lanes(Machine& m, const Pass& formula) {
  if constexpr (Machine::fetches_first) formula.fetch(m);
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

// What does not lie side by side is seldom read or written: by functions that all kernels share.
template <class T, int lanes>
SINTER_WORD_APART chunk<T, lanes> read_apart(const T* p, int valid, index_t step) {
  chunk<T, lanes> c{};
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) c.value[i] = p[(i < valid ? i : 0) * step];  // no branch for each lane
  return c;
}
template <class T, int lanes>
SINTER_WORD_APART void write_apart(T* p, int valid, index_t step, chunk<T, lanes> c) {
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) {
    if (i < valid) p[i * step] = c.value[i];
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

  pass_operands(const index_t* shape, int rank, const leaf_ref* leaves, int leaf_count, const sink_ref* sinks, int sink_count)
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
  bool find_repeated(bool* repeated) const {
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

template <class Pass>
struct map_body : chunk_space {
  static constexpr int inputs = Pass::inputs, outputs = Pass::outputs, lanes = lanes_of<Pass>;

  Pass pass;
  operand_table<inputs> in;
  operand_table<outputs> out;
  access_mode in_mode[operand_table<inputs>::size] = {};
  access_mode out_mode[operand_table<outputs>::size] = {};
  bool add[operand_table<outputs>::size] = {};
  bool wide[operand_table<outputs>::size] = {};  ///< a sum of narrow elements, gathered in float

  /// The axes of p are coalesced.
  map_body(const Pass& formula, const pass_operands& p)
      : chunk_space(p.axes, lanes), pass(formula), in(p.axes.table<inputs>(0)), out(p.axes.table<outputs>(inputs)) {
    for (int s = 0; s < inputs; ++s) in_mode[s] = p.mode(s, lanes);
    for (int s = 0; s < outputs; ++s) {
      out_mode[s] = p.mode(inputs + s, lanes);
      add[s] = p.add[s];
      wide[s] = p.size[inputs + s] == sizeof(float);
    }
  }

  launch_shape launch() const { return {blocks_for(chunks(), block_threads), 0}; }

  /// The machine of expr/kernel.hpp at one lane of a chunk. Lane 0 reads the chunk, the last one writes it. Body says where
  /// the operands lie.
  template <class Body>
  struct machine {
    const Body& body;
    int lane = 0;
    int valid = lanes;
    index_t index_of_chunk = 0;
    index_t in_at[operand_table<inputs>::size] = {};
    index_t out_at[operand_table<outputs>::size] = {};
    mutable std::uint64_t read[operand_table<inputs>::size][lanes] = {};
    mutable std::uint64_t written[operand_table<outputs>::size][lanes] = {};

    static constexpr bool fetches_first = requires(const machine& m) { Pass::fetch(m); };

    SINTER_WORD explicit machine(const Body& b) : body(b) {}

    template <int S, class T>
    SINTER_WORD compute_type<T> load() const {
      if (!fetches_first && lane == 0) fetch<S, T>();
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
        if (body.wide[O]) return flush<O, float>();
      }
      flush<O, T>();
    }

    template <int S, class T>
    SINTER_WORD void fetch() const {
      const auto c = read_chunk(reinterpret_cast<const T*>(body.in.data[S]) + in_at[S], body.in_mode[S], body.in.step[S]);
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) read[S][i] = pack<T>(c.value[i]);
    }
    template <int O, class T>
    SINTER_WORD void flush() const {
      T* const p = reinterpret_cast<T*>(body.out.data[O]) + out_at[O];
      chunk<T, lanes> c{};
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) c.value[i] = unpack<compute_type<T>>(written[O][i]);
      if constexpr (floating_element<T>) {
        if (body.add[O]) {
          const auto old = read_chunk<T>(p, body.out_mode[O], body.out.step[O]);
          SINTER_UNROLL
          for (int i = 0; i < lanes; ++i) c.value[i] = old.value[i] + unpack<compute_type<T>>(written[O][i]);
        }
      }
      if (is_whole(body.out_mode[O])) {
        *reinterpret_cast<chunk<T, lanes>*>(p) = c;
      } else {
        write_apart(p, valid, body.out.step[O], c);
      }
    }

    SINTER_WORD bool is_whole(access_mode mode) const { return mode == access_mode::whole_chunks && valid == lanes; }
    template <class T>
    SINTER_WORD chunk<T, lanes> read_chunk(const T* p, access_mode mode, index_t step) const {
      if (is_whole(mode)) return *reinterpret_cast<const chunk<T, lanes>*>(p);
      return read_apart<T, lanes>(p, valid, step);
    }
  };

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t stride = g.blocks() * g.threads();
    const index_t n = chunks();
    for (index_t c = g.block() * g.threads() + g.thread(); c < n; c += stride) {
      index_t row = 0, column = c;
      if (space.rows > 1) {
        row = quotient(c, chunks_per_row, by_chunks, narrow);
        column = c - row * chunks_per_row;
      }
      machine<map_body> m(*this);
      place(m, row, column * lanes);
      run_lanes<lanes>(m, pass);
    }
  }

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

}  // namespace sinter::cuda_impl
