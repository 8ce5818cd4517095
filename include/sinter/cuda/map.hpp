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

/// Runs a formula on each lane of a machine. Unrolled, so that `lane` is a constant and the machine's arrays are registers.
template <int Lanes, class Machine, class Pass>
SINTER_WORD void run_lanes(Machine& m, const Pass& formula) {
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

template <class Pass>
struct map_body {
  static constexpr int inputs = Pass::inputs, outputs = Pass::outputs, lanes = lanes_of<Pass>;

  Pass pass;
  index_space space;
  operand_table<inputs> in;
  operand_table<outputs> out;
  access_mode in_mode[operand_table<inputs>::size] = {};
  access_mode out_mode[operand_table<outputs>::size] = {};
  bool add[operand_table<outputs>::size] = {};
  bool wide[operand_table<outputs>::size] = {};  ///< a sum of narrow elements, gathered in float
  index_t index_stride[max_rank] = {};  ///< of the row-major index of an element, along the outer axes
  index_t chunks_per_row = 0;
  divider by_chunks = {};
  bool narrow = true;

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

    SINTER_WORD explicit machine(const Body& b) : body(b) {}

    template <int S, class T>
    SINTER_WORD compute_type<T> load() const {
      if (lane == 0) fetch<S, T>();
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
      const T* const p = reinterpret_cast<const T*>(body.in.data[S]) + in_at[S];
      if (body.in_mode[S] == access_mode::whole_chunks && valid == lanes) {
        const auto c = *reinterpret_cast<const chunk<T, lanes>*>(p);
        SINTER_UNROLL
        for (int i = 0; i < lanes; ++i) read[S][i] = pack<T>(c.value[i]);
      } else {
        const index_t step = body.in.step[S];
        SINTER_UNROLL
        for (int i = 0; i < lanes; ++i) read[S][i] = pack<T>(p[(i < valid ? i : 0) * step]);  // no branch for each lane
      }
    }
    template <int O, class T>
    SINTER_WORD void flush() const {
      T* const p = reinterpret_cast<T*>(body.out.data[O]) + out_at[O];
      if (body.out_mode[O] == access_mode::whole_chunks && valid == lanes) {
        auto& to = *reinterpret_cast<chunk<T, lanes>*>(p);
        chunk<T, lanes> c{};
        if (body.add[O]) c = to;
        SINTER_UNROLL
        for (int i = 0; i < lanes; ++i) combine<O>(c.value[i], unpack<compute_type<T>>(written[O][i]));
        to = c;
      } else {
        SINTER_UNROLL
        for (int i = 0; i < lanes; ++i) {
          if (i < valid) combine<O>(p[i * body.out.step[O]], unpack<compute_type<T>>(written[O][i]));
        }
      }
    }
    template <int O, class T>
    SINTER_WORD void combine(T& to, compute_type<T> x) const {
      if constexpr (floating_element<T>) to = body.add[O] ? to + x : x;
      else to = x;
    }
  };

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t stride = g.blocks() * g.threads();
    const index_t chunks = space.rows * chunks_per_row;
    for (index_t c = g.block() * g.threads() + g.thread(); c < chunks; c += stride) {
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

/// Can operand s be read in whole chunks of `lanes` elements of `size` bytes?
template <int lanes, int N>
access_mode mode_of(const pass_axes<N>& axes, int s, int size) {
  const int last = axes.rank - 1;
  const index_t step = last >= 0 ? axes.strides[s][last] : 0;
  const std::uintptr_t bytes = static_cast<std::uintptr_t>(size * lanes < 16 ? size * lanes : 16);
  bool aligned = step == 1 && reinterpret_cast<std::uintptr_t>(axes.data[s]) % bytes == 0;
  for (int d = 0; d < last; ++d) aligned = aligned && axes.strides[s][d] % lanes == 0;
  return aligned ? access_mode::whole_chunks : access_mode::strided;
}

/// Prepares a pass. The axes hold its inputs, then its outputs; sizes are those of their elements. An output that repeats is
/// not written by map_body.
template <class Pass>
map_body<Pass> prepare_map(const Pass& pass, pass_axes<Pass::inputs + Pass::outputs> axes, const int* in_size, const int* out_size, const bool* add) {
  constexpr int lanes = lanes_of<Pass>;
  axes.coalesce();
  map_body<Pass> body{pass, axes.space(), axes.template table<Pass::inputs>(0), axes.template table<Pass::outputs>(Pass::inputs)};
  for (int d = 0; d < body.space.outer_axes; ++d) body.index_stride[d] = axes.index[d];
  for (int s = 0; s < Pass::inputs; ++s) body.in_mode[s] = mode_of<lanes>(axes, s, in_size[s]);
  for (int s = 0; s < Pass::outputs; ++s) {
    body.out_mode[s] = mode_of<lanes>(axes, Pass::inputs + s, out_size[s]);
    body.add[s] = add[s];
    body.wide[s] = out_size[s] == sizeof(float);
  }
  body.chunks_per_row = (body.space.inner + lanes - 1) / lanes;
  const index_t chunks = body.space.rows * body.chunks_per_row;
  body.narrow = chunks < (index_t{1} << 31);
  if (body.narrow && body.chunks_per_row > 0) body.by_chunks = divider(static_cast<std::uint32_t>(body.chunks_per_row));
  return body;
}

template <class Pass>
launch_shape launch_of(const map_body<Pass>& body) {
  return {blocks_for(body.space.rows * body.chunks_per_row, block_threads), 0};
}

}  // namespace sinter::cuda_impl
