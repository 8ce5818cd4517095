// sinter/core/view.hpp: the index arithmetic of views, free of element type, rank and device.
#pragma once

#include <string>

#include "sinter/core/shape.hpp"

namespace sinter::detail {

[[noreturn]] inline void refuse_undefined(const char* op) {
  throw shape_error(std::string(op) + ": the tensor is empty (default constructed); assign a value to it first");
}

/// Restricts one axis to begin, begin+step, ... before end; returns the offset in elements. Negative begin and end
/// count from the end of the axis.
inline index_t slice_axis(index_t* shape, index_t* strides, int rank, index_t axis, index_t begin, index_t end, index_t step) {
  const int a = checked_axis("slice", axis, rank);
  const index_t n = shape[a];
  const index_t b = begin < 0 ? begin + n : begin;
  const index_t e = end < 0 ? end + n : end;
  if (step < 1) throw value_error("slice: step " + std::to_string(step) + " must be at least 1; flip() reverses an axis");
  if (b < 0 || e > n || b > e)
    throw index_error("slice: range [" + std::to_string(begin) + ", " + std::to_string(end) + ") does not lie within axis " +
                      std::to_string(a) + " of shape " + shape_text(shape, rank));
  shape[a] = e > b ? (e - b - 1) / step + 1 : 0;
  const index_t offset = b * strides[a];
  if (shape[a] > 1) strides[a] *= step;
  return offset;
}

/// Offset of index `i` (negative from the end) on an axis.
inline index_t select_offset(const index_t* shape, const index_t* strides, int rank, int axis, index_t i) {
  const index_t n = shape[axis];
  if (i < -n || i >= n)
    throw index_error("select: index " + std::to_string(i) + " is out of range for axis " + std::to_string(axis) + " of shape " +
                      shape_text(shape, rank));
  return (i < 0 ? i + n : i) * strides[axis];
}

/// Resolves one extent of -1 in a reshape of n elements and checks the product.
inline void resolve_reshape(index_t n, index_t* shape, int rank, const std::string& from) {
  int unknown = -1;
  index_t known = 1;
  for (int i = 0; i < rank; ++i) {
    if (shape[i] == -1 && unknown < 0) unknown = i;
    else if (shape[i] < 0) throw shape_error("reshape: shape " + shape_text(shape, rank) + " has a negative extent (only one may be -1)");
    else if (known > 0 && shape[i] > std::numeric_limits<index_t>::max() / known) known = -1;
    else if (known >= 0) known *= shape[i];
  }
  const std::string target = shape_text(shape, rank);
  if (unknown >= 0 && known > 0 && n % known == 0) {
    shape[unknown] = n / known;
    known = n;
  }
  if (known != n || (unknown >= 0 && shape[unknown] < 0))
    throw shape_error("reshape: " + from + " with " + std::to_string(n) + " elements does not fit " + target);
}

/// Strides that show the same elements in another shape without a copy; false when there are none.
inline bool reshape_strides(const index_t* shape, const index_t* strides, int rank, const index_t* to, index_t* to_strides, int to_rank) {
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

/// True when axis i of `order` names every axis once; resolves negative axes.
inline void checked_permutation(index_t* order, int rank) {
  bool seen[max_rank] = {};
  const std::string text = shape_text(order, rank);
  for (int i = 0; i < rank; ++i) {
    const int a = checked_axis("permute", order[i], rank);
    if (seen[a]) throw value_error("permute: " + text + " names an axis twice");
    seen[a] = true;
    order[i] = a;
  }
}

/// Strides of a broadcast view: 0 where an extent of 1 (or a missing axis) is repeated.
inline void broadcast_strides(const index_t* shape, const index_t* strides, int rank, const index_t* out_shape, index_t* out, int out_rank) {
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

}  // namespace sinter::detail
