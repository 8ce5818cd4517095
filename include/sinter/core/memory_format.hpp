// sinter/core/memory_format.hpp: the order in which the axes of a dense tensor lie in memory.
#pragma once

#include <utility>

#include "sinter/core/shape.hpp"

namespace sinter {

/// How the axes of a dense tensor lie in memory. The shape is the same in both: (N, C, ...).
enum class memory_format {
  contiguous,    ///< row-major: the last axis is the inner one
  channels_last  ///< axis 1 is the inner one: images lie pixel by pixel; of rank 3, 4 and 5
};
inline constexpr memory_format channels_last = memory_format::channels_last;

namespace detail {

/// Lists the axes from the largest stride to the smallest. The first operand decides which of two axes comes first; if
/// one of its strides is 0 or both are equal, the next operand does; if none decides, they keep their order. Axes of
/// extent 1 stay where they are. This is the rule of PyTorch's TensorIterator. True if an axis moved.
SINTER_SHARED bool memory_order(const index_t* shape, int rank, int operands, const index_t* const* strides,
                                int* order);

/// Reorders axes to (kept, reduced) where the last axis is reduced, else to (kept, reduced, kept); also where more
/// operands lie side by side along the last axis that is kept, as in the sums of a transposed matrix. The reduced axes
/// are ordered as the operands lie in memory, so that dense operands are read from front to back. With `by_shape` they
/// keep the order of the shape: folds whose result depends on the index of a value need it.
SINTER_SHARED fold_shape order_axes(index_t* shape, int rank, int operands, index_t* const* strides,
                                    const bool* reduced, bool by_shape);

/// Strides of a dense tensor whose axes lie in memory in this order, outermost first.
inline void dense_strides(const index_t* shape, int rank, const int* order, index_t* strides) {
  index_t step = 1;
  for (int k = rank - 1; k >= 0; --k) {
    strides[order[k]] = step;
    step *= shape[order[k]];
  }
}

/// Dense strides for `shape` in the memory order of a tensor of that shape.
SINTER_SHARED void dense_strides_like(const index_t* shape, const index_t* strides, int rank, index_t* dense);
template <int R>
extents<R> dense_strides_like(const extents<R>& shape, const extents<R>& strides) {
  extents<R> dense;
  dense_strides_like(shape.data(), strides.data(), R, dense.values);
  return dense;
}

/// Do these strides show the same elements at the same places?
SINTER_SHARED bool are_same_strides(const index_t* shape, const index_t* a, const index_t* b, int rank);
template <int R>
bool are_same_strides(const extents<R>& shape, const extents<R>& a, const extents<R>& b) {
  return are_same_strides(shape.data(), a.data(), b.data(), R);
}

/// Strides of a dense tensor of `shape` in a format.
template <int R>
extents<R> strides_in(memory_format f, const extents<R>& shape) {
  extents<R> strides;
  int order[max_rank] = {};
  for (int d = 0; d < R; ++d) order[d] = d;
  if constexpr (R >= 2) {
    if (f == memory_format::channels_last) {
      for (int k = 1; k + 1 < R; ++k) order[k] = k + 1;
      order[R - 1] = 1;
    }
  }
  dense_strides(shape.data(), R, order, strides.values);
  return strides;
}

#if SINTER_DEFINES

SINTER_SHARED bool memory_order(const index_t* shape, int rank, int operands, const index_t* const* strides,
                                int* order) {
  const auto distance = [](index_t stride) { return stride < 0 ? -stride : stride; };
  const auto is_closer = [&](int a, int b) {
    for (int s = 0; s < operands; ++s) {
      const index_t p = distance(strides[s][a]), q = distance(strides[s][b]);
      if (p != 0 && q != 0 && p != q) return p < q;
    }
    return false;
  };
  bool moved = false;
  for (int d = 0; d < rank; ++d) {
    order[d] = d;
    if (shape[d] == 1) continue;
    int at = d;
    for (int k = d - 1; k >= 0; --k) {
      if (shape[order[k]] == 1) continue;
      if (!is_closer(order[k], d)) break;
      order[at] = order[k];
      order[k] = d;
      at = k;
      moved = true;
    }
  }
  return moved;
}

SINTER_SHARED fold_shape order_axes(index_t* shape, int rank, int operands, index_t* const* strides,
                                    const bool* reduced, bool by_shape) {
  int last = rank - 1;
  while (last >= 0 && shape[last] == 1) --last;
  int tail = rank;  // axes from here on are kept and stay last
  if (last >= 0 && !reduced[last]) {
    tail = last + 1;
    while (tail > 0 && !reduced[tail - 1]) --tail;
  }
  int column = -1;
  if (last >= 0 && reduced[last]) {
    constexpr index_t shortest = 32;
    int kept = last - 1;
    while (kept >= 0 && (reduced[kept] || shape[kept] == 1)) --kept;
    int nearer = 0;
    for (int i = 0; kept >= 0 && i < operands; ++i) {
      const auto is_strided = [stride = strides[i]](int d) { return stride[d] < -1 || stride[d] > 1; };
      nearer += int{is_strided(last)} - int{is_strided(kept)};
    }
    if (nearer > 0 && shape[kept] >= shortest) column = kept;
  }
  const auto is_inner = [&](int d) { return d >= tail || d == column; };
  int order[max_rank], in_turn[max_rank] = {};
  if (by_shape)
    for (int d = 0; d < rank; ++d) in_turn[d] = d;
  else memory_order(shape, rank, operands, strides, in_turn);
  int n = 0;
  fold_shape s;
  for (int d = 0; d < rank; ++d)
    if (!is_inner(d) && !reduced[d]) order[n++] = d, s.outer *= shape[d];
  for (int k = 0; k < rank; ++k)
    if (const int d = in_turn[k]; !is_inner(d) && reduced[d]) order[n++] = d, s.reduced *= shape[d];
  for (int d = 0; d < rank; ++d)
    if (is_inner(d)) order[n++] = d, (reduced[d] ? s.reduced : s.inner) *= shape[d];
  reorder_axes(order, rank, shape);
  for (int i = 0; i < operands; ++i) reorder_axes(order, rank, strides[i]);
  return s;
}

SINTER_SHARED void dense_strides_like(const index_t* shape, const index_t* strides, int rank, index_t* dense) {
  int order[max_rank] = {};
  if (rank < 2 || !memory_order(shape, rank, 1, &strides, order)) row_major_strides(shape, rank, dense);
  else dense_strides(shape, rank, order, dense);
}
SINTER_SHARED bool are_same_strides(const index_t* shape, const index_t* a, const index_t* b, int rank) {
  bool same = true, empty = false;
  for (int d = 0; d < rank; ++d) {
    same = same && (shape[d] == 1 || a[d] == b[d]);
    empty = empty || shape[d] == 0;
  }
  return same || empty;
}

#endif  // SINTER_DEFINES

}  // namespace detail
}  // namespace sinter
