// sinter/core/view.hpp: the index arithmetic of views, free of element type, rank and device.
#pragma once

#include <string>

#include "sinter/core/shape.hpp"

namespace sinter::detail {

[[noreturn]] inline void refuse_undefined(const char* op) {
  refuse<shape_error>({op, ": the tensor is empty (default constructed); assign a value to it first"});
}

/// Restricts one axis to begin, begin+step, ... before end; returns the offset in elements. Negative begin and end
/// count from the end of the axis.
inline index_t slice_axis(index_t* shape, index_t* strides, int rank, index_t axis, index_t begin, index_t end,
                          index_t step) {
  const int a = checked_axis("slice", axis, rank);
  const index_t n = shape[a];
  const index_t b = begin < 0 ? begin + n : begin;
  const index_t e = end < 0 ? end + n : end;
  if (step < 1) refuse<value_error>({"slice: step ", step, " must be at least 1; flip() reverses an axis"});
  if (b < 0 || e > n || b > e)
    refuse<index_error>(
        {"slice: range [", begin, ", ", end, ") does not lie within axis ", a, " of shape ", shape_piece{shape, rank}});
  shape[a] = e > b ? (e - b - 1) / step + 1 : 0;
  const index_t offset = b * strides[a];
  if (shape[a] > 1) strides[a] *= step;
  return offset;
}

/// Replaces two axes by one behind the others: the diagonal at which b counts `diagonal` more than a. Returns the
/// offset in elements.
SINTER_SHARED index_t diagonal_axes(index_t* shape, index_t* strides, int rank, index_t diagonal, index_t axis_a,
                                    index_t axis_b);
#if SINTER_DEFINES
SINTER_SHARED index_t diagonal_axes(index_t* shape, index_t* strides, int rank, index_t diagonal, index_t axis_a,
                                    index_t axis_b) {
  const int a = checked_axis("diagonal", axis_a, rank), b = checked_axis("diagonal", axis_b, rank);
  if (a == b) refuse<index_error>({"diagonal: axis ", a, " is named twice"});
  const index_t rows = shape[a] + (diagonal < 0 ? diagonal : 0), columns = shape[b] - (diagonal > 0 ? diagonal : 0);
  const index_t length = rows < columns ? rows : columns, step = strides[a] + strides[b];
  const index_t offset = length <= 0 ? 0 : diagonal < 0 ? -diagonal * strides[a] : diagonal * strides[b];
  int to = 0;
  for (int i = 0; i < rank; ++i) {
    if (i == a || i == b) continue;
    shape[to] = shape[i];
    strides[to++] = strides[i];
  }
  shape[to] = length < 0 ? 0 : length;
  strides[to] = step;
  return offset;
}
#endif

/// Of shape and strides with room for one more axis: the axis counts windows of `size` elements, a new last one the
/// elements of a window.
SINTER_SHARED void unfold_axes(index_t* shape, index_t* strides, int rank, index_t axis, index_t size, index_t step);
#if SINTER_DEFINES
SINTER_SHARED void unfold_axes(index_t* shape, index_t* strides, int rank, index_t axis, index_t size, index_t step) {
  const int a = checked_axis("unfold", axis, rank);
  if (size < 0) refuse<value_error>({"unfold: windows of ", size, " elements; they must be of 0 or more"});
  if (step < 1) refuse<value_error>({"unfold: step ", step, " must be at least 1"});
  if (size > shape[a])
    refuse<shape_error>(
        {"unfold: a window of ", size, " elements is larger than axis ", a, " of shape ", shape_piece{shape, rank}});
  shape[rank] = size;
  strides[rank] = strides[a];
  shape[a] = (shape[a] - size) / step + 1;
  strides[a] *= step;
}
#endif

/// Offset of index `i` (negative from the end) on an axis.
inline index_t select_offset(const index_t* shape, const index_t* strides, int rank, int axis, index_t i) {
  const index_t n = shape[axis];
  if (i < -n || i >= n)
    refuse<index_error>(
        {"select: index ", i, " is out of range for axis ", axis, " of shape ", shape_piece{shape, rank}});
  return (i < 0 ? i + n : i) * strides[axis];
}

/// Resolves one extent of -1 in a reshape of n elements and checks the product.
SINTER_SHARED void resolve_reshape(index_t n, index_t* shape, int rank, shape_piece from);

/// Strides that show the same elements in another shape without a copy; false when there are none.
SINTER_SHARED bool reshape_strides(const index_t* shape, const index_t* strides, int rank, const index_t* to,
                                   index_t* to_strides, int to_rank);

/// True when axis i of `order` names every axis once; resolves negative axes.
SINTER_SHARED void checked_permutation(index_t* order, int rank);

/// Strides of a broadcast view: 0 where an extent of 1 (or a missing axis) is repeated.
inline void broadcast_strides(const index_t* shape, const index_t* strides, int rank, const index_t* out_shape,
                              index_t* out, int out_rank) {
  for (int i = 0; i < out_rank; ++i) {
    const int s = i - (out_rank - rank);
    out[i] = s < 0 || (shape[s] == 1 && out_shape[i] != 1) ? 0 : strides[s];
  }
}

/// True when the elements lie densely in row-major order.
inline bool is_row_major(const index_t* shape, const index_t* strides, int rank) {
  for (int i = 0; i < rank; ++i)
    if (shape[i] == 0) return true;
  index_t step = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != step) return false;
    step *= shape[i];
  }
  return true;
}

#if SINTER_DEFINES

SINTER_SHARED void resolve_reshape(index_t n, index_t* shape, int rank, shape_piece from) {
  int unknown = -1;
  index_t known = 1;
  for (int i = 0; i < rank; ++i) {
    if (shape[i] == -1 && unknown < 0) unknown = i;
    else if (shape[i] < 0)
      refuse<shape_error>({"reshape: shape ", shape_piece{shape, rank}, " has a negative extent (only one may be -1)"});
    else if (known > 0 && shape[i] > std::numeric_limits<index_t>::max() / known) known = -1;
    else if (known >= 0) known *= shape[i];
  }
  if (unknown >= 0 && known > 0 && n % known == 0) {
    shape[unknown] = n / known;
    known = n;
  }
  if (known != n || (unknown >= 0 && shape[unknown] < 0))
    refuse<shape_error>({"reshape: ", from, " with ", n, " elements does not fit ", shape_piece{shape, rank}});
}

SINTER_SHARED bool reshape_strides(const index_t* shape, const index_t* strides, int rank, const index_t* to,
                                   index_t* to_strides, int to_rank) {
  index_t n = 1;
  for (int i = 0; i < rank; ++i) n *= shape[i];
  if (n == 0) {
    index_t step = 1;
    for (int i = to_rank - 1; i >= 0; --i) {
      to_strides[i] = step;
      step *= to[i] > 0 ? to[i] : 1;
    }
    return true;
  }
  int i = rank - 1;
  int j = to_rank - 1;
  while (i >= 0) {
    // A run of source axes that is dense among itself maps onto a run of target axes with the same product.
    const index_t run_stride = strides[i];
    index_t run = shape[i];
    while (i > 0 && (shape[i - 1] == 1 || run == 1 || strides[i - 1] == run * run_stride)) {
      if (run == 1 && shape[i - 1] != 1) break;
      --i;
      run *= shape[i];
    }
    if (run == 1 && i > 0) {
      --i;
      continue;
    }
    index_t step = run_stride;
    index_t filled = 1;
    while (j >= 0 && (filled < run || to[j] == 1)) {
      to_strides[j] = step;
      step *= to[j];
      filled *= to[j];
      --j;
    }
    if (filled != run) return false;
    --i;
  }
  for (; j >= 0; --j) to_strides[j] = 1;
  return true;
}

SINTER_SHARED void checked_permutation(index_t* order, int rank) {
  bool seen[max_rank] = {};
  index_t given[max_rank] = {};
  for (int i = 0; i < rank; ++i) given[i] = order[i];
  for (int i = 0; i < rank; ++i) {
    const int a = checked_axis("permute", order[i], rank);
    if (seen[a]) refuse<value_error>({"permute: ", shape_piece{given, rank}, " names an axis twice"});
    seen[a] = true;
    order[i] = a;
  }
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
