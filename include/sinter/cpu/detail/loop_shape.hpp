// sinter/cpu/detail/loop_shape.hpp: an index space with its operands, and the kernel function that runs on it.
#pragma once

#include "sinter/core/memory_format.hpp"
#include "sinter/core/platform.hpp"
#include "sinter/expr/kernel.hpp"
#include "sinter/math/packet.hpp"

namespace sinter::cpu_impl {

using sinter::detail::max_operands;
using sinter::detail::pass_of;

inline constexpr int lanes = math::native_lanes;

/// What remains to be done with the values of a row: value = (what was read - shift) * scale - rest.
struct row_end {
  double shift = 0, scale = 1, rest = 0;
};

/// What a kernel function runs on: whole vectors only.
struct kernel_args {
  index_t n = 0;      ///< elements to compute, a multiple of `lanes`
  index_t first = 0;  ///< row-major index of the first of them
  const void* const* in = nullptr;
  const index_t* in_mask = nullptr;
  const int* in_size = nullptr;
  void* const* out = nullptr;
  const index_t* out_mask = nullptr;
  const int* out_size = nullptr;
  const bool* out_add = nullptr;
  bool stream = false;            ///< results go past the cache
  bool plain = false;             ///< so they do, no mask is 0, and nothing is added to what is there
  const row_end* made = nullptr;  ///< of the operands that kernel::made stands for
};
using kernel_fn = void (*)(const void* plan, const kernel_args&);

/// Results larger than this bypass the cache: they will not be read again before they would have left it.
inline constexpr index_t stream_bytes = index_t{8} << 20;

/// Without initial values: arrays of as many as a pass may have at most stand where parts of results are finished.
struct operand {
  char* data;
  index_t strides[max_rank];  ///< in elements
  int size;
  bool add;
};

/// Bytes that hold one vector of any element type.
inline constexpr int vector_bytes = lanes * 8;

struct loop {
  int rank = 0;
  index_t shape[max_rank] = {};
  int inputs = 0;
  int outputs = 0;
  operand* in = nullptr;   ///< `inputs` of them, owned by the caller; preparing the loop rewrites their strides
  operand* out = nullptr;  ///< `outputs` of them
  kernel_fn fn = nullptr;
  const void* plan = nullptr;

  index_t numel() const {
    index_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
};

/// Puts the axes into the order in which the operands lie in memory, results first. For a loop whose elements are not
/// counted.
SINTER_SHARED void order_by_memory(loop& l);

SINTER_SHARED void coalesce(loop& l);

namespace detail {

/// Calls f(offset in elements, step, count) for the runs along the last axis that cover [begin, begin + n).
template <class F>
void walk(const loop& l, const index_t* strides, index_t begin, index_t n, F&& f) {
  if (l.rank == 0) {
    f(index_t{0}, index_t{0}, index_t{1});
    return;
  }
  index_t coordinate[max_rank];
  index_t rest = begin;
  for (int d = l.rank - 1; d >= 0; --d) {
    coordinate[d] = rest % l.shape[d];
    rest /= l.shape[d];
  }
  const int last = l.rank - 1;
  while (n > 0) {
    index_t offset = 0;
    for (int d = 0; d <= last; ++d) offset += coordinate[d] * strides[d];
    const index_t left = l.shape[last] - coordinate[last];
    const index_t run = left < n ? left : n;
    f(offset, strides[last], run);
    n -= run;
    coordinate[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      if (++coordinate[d] < l.shape[d]) break;
      coordinate[d] = 0;
    }
  }
}

/// Per-thread memory, one block per Use (0: staged operands, 1: a row, 2: partial sums); grows to the largest request.
template <int Use>
char* scratch(std::size_t bytes) {
  struct buffer {
    char* data = nullptr;
    std::size_t size = 0;
    ~buffer() { sinter::detail::give_aligned(data); }
  };
  static thread_local buffer b;
  if (b.size < bytes) {
    sinter::detail::give_aligned(b.data);
    b.size = (bytes + 4095) / 4096 * 4096;
    b.data = static_cast<char*>(sinter::detail::take_aligned(4096, b.size));
    if (b.data == nullptr) {
      b.size = 0;
      sinter::detail::refuse<out_of_memory>({"cpu: out of memory for a staging buffer of ", bytes, " bytes"});
    }
  }
  return b.data;
}

/// The first of outputs [0, s] that has the place of output s: two uses of a leaf add to one gradient, hence to one
/// copy of it.
template <class Place>
int first_at(const Place& place, int s) {
  for (int i = 0; i < s; ++i)
    if (place(i) == place(s)) return i;
  return s;
}

/// Runs a kernel on the n < lanes elements from number `at` of its operands on, through padded copies: every element
/// takes the same arithmetic.
SINTER_SHARED void run_tail(kernel_fn fn, const void* plan, const kernel_args& a, int inputs, int outputs, index_t at,
                            index_t n);

#if SINTER_DEFINES

SINTER_SHARED void run_tail(kernel_fn fn, const void* plan, const kernel_args& a, int inputs, int outputs, index_t at,
                            index_t n) {
  alignas(64) char in_pad[max_operands][vector_bytes];
  alignas(64) char out_pad[max_operands][vector_bytes];
  const void* in[max_operands];
  void* out[max_operands];
  index_t out_mask[max_operands];
  for (int s = 0; s < inputs; ++s) {
    in[s] = a.in[s];
    if (a.in_mask[s] == 0) continue;
    std::memset(in_pad[s], 0, vector_bytes);
    std::memcpy(in_pad[s], static_cast<const char*>(a.in[s]) + at * a.in_size[s],
                static_cast<std::size_t>(n * a.in_size[s]));
    in[s] = in_pad[s];
  }
  const auto place = [&](int s) { return static_cast<char*>(a.out[s]) + (at & a.out_mask[s]) * a.out_size[s]; };
  for (int s = 0; s < outputs; ++s) {
    const int first = first_at(place, s);
    out[s] = out_pad[first];
    out_mask[s] = -1;
    if (first < s || !a.out_add[s]) continue;
    std::memset(out_pad[s], 0, vector_bytes);
    std::memcpy(out_pad[s], place(s), static_cast<std::size_t>(n * a.out_size[s]));
  }
  fn(plan, {lanes, a.first + at, in, a.in_mask, a.in_size, out, out_mask, a.out_size, a.out_add, false, false, a.made});
  for (int s = 0; s < outputs; ++s) std::memcpy(place(s), out[s], static_cast<std::size_t>(n * a.out_size[s]));
}

#endif  // SINTER_DEFINES

}  // namespace detail

#if SINTER_DEFINES

SINTER_SHARED void order_by_memory(loop& l) {
  const int n = l.inputs + l.outputs;
  if (l.rank < 2 || n < 1) return;
  index_t* strides[2 * max_operands];
  for (int s = 0; s < n; ++s) strides[s] = s < l.outputs ? l.out[s].strides : l.in[s - l.outputs].strides;
  int order[max_rank];
  if (!sinter::detail::memory_order(l.shape, l.rank, n, strides, order)) return;
  for (int s = 0; s < n; ++s) sinter::detail::reorder_axes(order, l.rank, strides[s]);
  sinter::detail::reorder_axes(order, l.rank, l.shape);
}

SINTER_SHARED void coalesce(loop& l) {
  l.rank = sinter::detail::coalesce_axes(l.shape, l.rank, l.inputs + l.outputs, [&l](int s) {
    return s < l.inputs ? l.in[s].strides : l.out[s - l.inputs].strides;
  });
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl
