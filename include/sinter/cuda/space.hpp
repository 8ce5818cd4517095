// sinter/cuda/space.hpp: where the elements of a pass lie: index spaces, operands, and division by a constant.
//
// Kernel bodies are plain functions of a grid G, which says who calls: g.block(), g.blocks(), g.thread(), g.threads(),
// g.sync(), g.any(is), which meets as g.sync() does and is true if it is for one of the block's threads, g.shared<T>()
// and g.add(to, n), which no other thread disturbs; g.take(counter), which adds 1 in the same way and says what was
// there; g.arrives_last(counter, n), true in the last of n blocks to ask, which then reads with g.fresh(p) what the
// others have written, and leaves the counter at 0 as it was; g.copy_ahead(to, from), which begins to copy a multiple
// of 16 bytes from memory to what a block shares, and g.finish_copies(), after which the thread may read what it has
// begun to copy. On a GPU that is device_grid (launch.hpp); the tests call the same bodies on the host.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "sinter/core/memory_format.hpp"
#include "sinter/core/view.hpp"
#include "sinter/expr/backend.hpp"

namespace sinter::cuda_impl {

using sinter::detail::leaf_ref;
using sinter::detail::sink_ref;

/// Called with its counter in a loop that seldom goes round, which a GPU's compiler would unroll all the same: `#pragma
/// unroll 1` gets lost where the body has branches. A counter that it cannot follow it leaves alone.
SINTER_WORD void keep_loop([[maybe_unused]] int& counter) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) asm("" : "+r"(counter));
#endif
}
SINTER_WORD void keep_loop([[maybe_unused]] index_t& counter) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) asm("" : "+l"(counter));
#endif
}

/// What the backend asks of a GPU; gpu.hpp says how CUDA does it, and the tests how a host does.
///   memory()                       its arena
///   launch(work, body, shape)      runs a body of at most most_parameters bytes on a grid, after all that was started
///                                  before; launch_on() starts larger ones, see spill.hpp
///   copy_to_host(to, from, bytes), copy_from_host(...), copy_from_device<From>(...)
///   gemm<T, To>(product)           see product.hpp
///   convolutions()                 a library that convolves in place of Sinter's kernels, or no_convolutions
///   sort(pairs, n, bits)           sorts them as pairs.hpp says, or is false and has done nothing
///   folds()                        a library that folds rows in place of Sinter's kernels, or no_folds
///   synchronize(), launches()      waits for all that was started; counts the kernels among it
///   arrivals()                     counters for arrives_last, all 0 between kernels; as many as max_arrivals
///   place_of(p)                    a memory_place: where the memory at an address lies
///   fault(), fault_address()       an index_fault, as the host sees it and as kernels do; see index_fault.hpp
///   record(f)                      what f would start, as a recording with run() and kernels(); see graph.hpp
template <device D>
struct gpu;

/// No library folds rows: each function does nothing and returns false.
struct no_folds {
  /// reduce<R>(work, source, results, n, put): results rows of n elements each, folded by R, to put.
  template <class R>
  bool reduce(const auto&...) const {
    return false;
  }
  /// scan<R>(work, source, rows, n, out): the folds up to each element, to out.
  template <class R>
  bool scan(const auto&...) const {
    return false;
  }
  /// count(work, source, n, bins, counts): how often each number in [0, bins) is among n elements.
  bool count(const auto&...) const { return false; }
};

/// Where the memory at an address lies, seen from a device.
struct memory_place {
  std::string name;        ///< such as "host memory", "that of GPU 1"; empty: it is the device's own
  std::string to_wrap_as;  ///< the device whose wrap() takes it
};

/// Threads of a block, for every kernel.
inline constexpr int block_threads = 256;

/// How many blocks keep a GPU busy, where more would leave more to be added up at the end.
inline constexpr index_t enough_blocks = 1024;
inline constexpr index_t max_arrivals = enough_blocks + 1;

/// Division of numbers below 2^31 by a constant, as a multiplication and a shift. Granlund, Montgomery, "Division by
/// invariant integers using multiplication", 1994.
struct divider {
  std::uint32_t multiplier = 1;
  std::uint32_t shift = 0;

  constexpr divider() = default;
  constexpr explicit divider(std::uint32_t d) {
    while ((std::uint64_t{1} << shift) < d) ++shift;
    multiplier = static_cast<std::uint32_t>((std::uint64_t{1} << 32) * ((std::uint64_t{1} << shift) - d) / d + 1);
  }
  SINTER_WORD std::uint32_t operator()(std::uint32_t n) const {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(n) * multiplier >> 32) + n) >> shift;
  }
};

/// The outer axes of a tensor, all but its last one.
constexpr int outer_axes_of(int rank) { return rank > 1 ? rank - 1 : 0; }

/// Rows of `inner` elements, in row-major order of the outer axes, of which there are at most Most.
template <int Most>
struct index_space {
  static constexpr int room = Most > 0 ? Most : 1;
  int outer_axes = 0;
  bool narrow = true;           ///< row numbers fit the dividers
  bool narrow_elements = true;  ///< so do element numbers
  index_t inner = 1;
  index_t rows = 1;
  index_t extent[std::size_t{room}] = {};
  divider by[std::size_t{room}];
  divider by_inner;
};

/// One operand of each kind: its first element, its step along the inner axis and its strides along the outer ones.
template <int N, int Most>
struct operand_table {
  static constexpr int size = N > 0 ? N : 1;
  char* data[std::size_t{size}] = {};
  index_t step[std::size_t{size}] = {};
  index_t stride[std::size_t{size}][std::size_t{index_space<Most>::room}] = {};
};

/// n / d, by multiplication where n fits.
SINTER_WORD index_t quotient(index_t n, index_t d, const divider& by, bool fits) {
  return fits ? static_cast<index_t>(by(static_cast<std::uint32_t>(n))) : n / d;
}

/// Calls f(axis, coordinate) for the outer axes of row number `row`: without a loop, as there are at most Most; axes
/// that were joined with others, which all threads agree on, are left out.
template <int Most, class F>
SINTER_WORD void each_coordinate(const index_space<Most>& space, index_t row, const F& f) {
  SINTER_UNROLL
  for (int d = Most - 1; d >= 0; --d) {
    if (d >= space.outer_axes) continue;
    const index_t rest = d > 0 ? quotient(row, space.extent[d], space.by[d], space.narrow) : 0;
    f(d, row - rest * space.extent[d]);
    row = rest;
  }
}

/// Adds to at[s], in elements, where row number `row` of each operand begins.
template <int N, int Most>
SINTER_WORD void add_row(const index_space<Most>& space, const operand_table<N, Most>& operands, index_t row,
                         index_t* at) {
  each_coordinate(space, row, [&](int d, index_t i) {
    for (int s = 0; s < N; ++s) at[s] += i * operands.stride[s][d];
  });
}

/// The axes of a pass while it is prepared, with the strides of all its operands. They are counted at run time: what
/// the host does before a launch is compiled once, not for every statement.
struct pass_axes {
  static constexpr int most = 2 * sinter::detail::max_operands;
  int rank = 0;
  int operands;
  index_t shape[max_rank] = {};
  index_t index[max_rank] = {};  ///< strides of the row-major index of an element
  char* data[most];
  index_t strides[most][max_rank];

  explicit pass_axes(int count) : operands(count) {
    std::fill_n(data, operands, nullptr);
    std::fill_n(strides[0], operands * max_rank, index_t{0});
  }
  pass_axes(const index_t* extents, int extent_count, int count) : pass_axes(count) {
    rank = extent_count;
    for (int d = 0; d < rank; ++d) shape[d] = extents[d];
    sinter::detail::row_major_strides(shape, rank, index);
  }
  pass_axes(const pass_axes& other) { *this = other; }
  /// Copies the operands that there are.
  pass_axes& operator=(const pass_axes& other) {
    rank = other.rank;
    operands = other.operands;
    std::copy_n(other.shape, max_rank, shape);
    std::copy_n(other.index, max_rank, index);
    std::copy_n(other.data, operands, data);
    std::copy_n(other.strides[0], operands * max_rank, strides[0]);
    return *this;
  }

  void bind(int s, const leaf_ref& leaf) {
    data[s] = static_cast<char*>(leaf.data);
    sinter::detail::broadcast_strides(leaf.shape, leaf.strides, leaf.rank, shape, strides[s], rank);
  }
  void bind(int s, const sink_ref& sink) {
    data[s] = static_cast<char*>(sink.data);
    for (int d = 0; d < rank; ++d) strides[s][d] = sink.strides[d];
  }
  void bind_dense(int s, void* memory) {
    data[s] = static_cast<char*>(memory);
    sinter::detail::row_major_strides(shape, rank, strides[s]);
  }

  /// Puts the axes into the order in which the operands lie in memory, those from number `first` on before the others.
  /// For a pass whose elements are not counted.
  void order_by_memory(int first) {
    const index_t* in_turn[most];
    for (int s = 0; s < operands; ++s) in_turn[s] = strides[(s + first) % operands];
    int order[max_rank];
    if (rank < 2 || !sinter::detail::memory_order(shape, rank, operands, in_turn, order)) return;
    for (int s = 0; s < operands; ++s) sinter::detail::reorder_axes(order, rank, strides[s]);
    sinter::detail::reorder_axes(order, rank, shape);
    sinter::detail::row_major_strides(shape, rank, index);
  }

  void coalesce() {
    rank = sinter::detail::coalesce_axes(shape, rank, operands + 1,
                                         [this](int s) { return s < operands ? strides[s] : index; });
  }

  /// Puts the outer axes along which operand `s` does not repeat before the other ones.
  void bring_forward(int s) {
    int order[max_rank], to = 0;
    for (const bool repeats : {false, true})
      for (int d = 0; d + 1 < rank; ++d)
        if ((strides[s][d] == 0) == repeats) order[to++] = d;
    sinter::detail::reorder_axes(order, to, shape);
    sinter::detail::reorder_axes(order, to, index);
    for (int i = 0; i < operands; ++i) sinter::detail::reorder_axes(order, to, strides[i]);
  }

  /// The step of operand s along the inner axis.
  index_t step(int s) const { return rank > 0 ? strides[s][rank - 1] : 0; }

  index_t inner() const { return rank > 0 ? shape[rank - 1] : 1; }

  /// The last axis is the inner one, behind at most Most others.
  template <int Most>
  index_space<Most> space() const {
    if (rank > Most + 1) throw std::logic_error("sinter: a kernel has no room for so many axes");
    index_space<Most> s;
    s.inner = inner();
    s.outer_axes = rank > 0 ? rank - 1 : 0;
    for (int d = 0; d < s.outer_axes; ++d) {
      s.extent[d] = shape[d];
      s.rows *= shape[d];
    }
    constexpr index_t fits = index_t{1} << 31;
    s.narrow = s.rows < fits;
    s.narrow_elements = s.inner < fits && s.rows * s.inner < fits;
    if (s.narrow_elements && s.inner > 0) s.by_inner = divider(static_cast<std::uint32_t>(s.inner));
    for (int d = 0; d < s.outer_axes; ++d)
      s.by[d] = s.narrow && shape[d] > 0 ? divider(static_cast<std::uint32_t>(shape[d])) : divider();
    return s;
  }

  /// Operands [begin, begin + Count).
  template <int Count, int Most>
  operand_table<Count, Most> table(int begin) const {
    operand_table<Count, Most> t;
    for (int s = 0; s < Count; ++s) {
      t.data[s] = data[begin + s];
      t.step[s] = step(begin + s);
      copy_strides(begin + s, t.stride[s]);
    }
    return t;
  }
  /// The strides of operand s along the outer axes, times `unit`.
  void copy_strides(int s, index_t* to, index_t unit = 1) const {
    for (int d = 0; d + 1 < rank; ++d) to[d] = strides[s][d] * unit;
  }
};

/// The shared memory that a launch may ask for: as it is, and where the kernel is told before (start() in launch.hpp
/// does), which GPUs from sm_75 on accept. The rest of 48 and 64 KiB is for what kernels declare themselves.
inline constexpr std::size_t usual_shared_bytes = 47 * 1024, most_shared_bytes = 63 * 1024;

/// What a kernel does, as errors name it, and over which shape.
struct work {
  const char* what;
  const index_t* shape = nullptr;
  int rank = 0;

  work(const char* name) : what(name) {}
  work(const char* name, const index_t* over, int axes) : what(name), shape(over), rank(axes) {}
  template <int R>
  work(const char* name, const extents<R>& over) : work(name, over.data(), R) {}

  SINTER_COLD std::string text() const {
    return sinter::detail::joined(
        {"'", what, "'", shape != nullptr ? " over shape " + sinter::detail::shape_text(shape, rank) : ""});
  }
};

/// What a launch needs beside its body.
struct launch_shape {
  index_t blocks = 0;
  std::size_t shared_bytes = 0;
};

/// A grid never has more blocks; the threads go on to further work instead.
inline constexpr index_t most_blocks = index_t{1} << 20;

/// Enough blocks for n pieces of work of which a block does `each` at a time.
constexpr index_t blocks_for(index_t n, index_t each = 1) {
  const index_t blocks = (n + each - 1) / each;
  return blocks < most_blocks ? blocks : most_blocks;
}

}  // namespace sinter::cuda_impl
