// sinter/core/shape.hpp: extents, strides, and the shape algebra of views and broadcasting.
#pragma once

#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "sinter/core/as_written.hpp"
#include "sinter/core/error.hpp"
#include "sinter/core/types.hpp"

namespace sinter {

/// R extents (or strides), outermost first. R = 0 is the shape of a scalar.
template <int R>
struct extents {
  static_assert(R >= 0 && R <= max_rank, "sinter: a tensor has rank 0 to 8");
  index_t values[std::size_t{R > 0 ? R : 1}] = {};

  static constexpr int rank = R;
  constexpr index_t& operator[](int axis) { return values[axis]; }
  constexpr index_t operator[](int axis) const { return values[axis]; }
  constexpr const index_t* begin() const { return values; }
  constexpr const index_t* end() const { return values + R; }
  constexpr index_t* begin() { return values; }
  constexpr index_t* end() { return values + R; }
  constexpr const index_t* data() const { return values; }
  static constexpr int size() { return R; }
  constexpr bool operator==(const extents& other) const {
    for (int i = 0; i < R; ++i)
      if (values[i] != other.values[i]) return false;
    return true;
  }
  /// For `auto [rows, columns] = x.shape();`.
  template <std::size_t I>
  constexpr index_t get() const {
    return values[I];
  }
  /// Number of elements: the product of the extents, 1 for rank 0.
  constexpr index_t numel() const {
    std::uint64_t n = 1;  // beside an extent of 0 the others may be any
    for (int i = 0; i < R; ++i) n *= static_cast<std::uint64_t>(values[i]);
    return static_cast<index_t>(n);
  }
};

namespace detail {

inline std::string shape_text(const index_t* shape, int rank) { return joined({shape_piece{shape, rank}}); }

template <int R>
std::string shape_text(const extents<R>& shape) {
  return shape_text(shape.data(), R);
}

template <std::size_t R>
constexpr extents<int{R}> to_extents(const index_t (&list)[R]) {
  extents<int{R}> e;
  const index_t* const from = as_written(&list[0]);
  for (int i = 0; i < int{R}; ++i) e[i] = from[i];
  return e;
}

/// Strides, in elements, of a dense row-major tensor.
constexpr void row_major_strides(const index_t* shape, int rank, index_t* strides) {
  index_t step = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = step;
    step = static_cast<index_t>(static_cast<std::uint64_t>(step) *
                                static_cast<std::uint64_t>(shape[d]));  // see extents::numel
  }
}

template <int R>
constexpr extents<R> row_major_strides(const extents<R>& shape) {
  extents<R> strides;
  row_major_strides(shape.data(), R, strides.values);
  return strides;
}

/// Removes extents of 1 and merges neighbouring axes that every operand walks as one; returns the rank that is left.
/// strides_of(s) points to the strides of operand s, which are rewritten like the shape.
template <class F>
constexpr int coalesce_axes(index_t* shape, int rank, int operands, const F& strides_of) {
  int r = 0;
  const auto move = [&](int to, int from) {
    shape[to] = shape[from];
    for (int s = 0; s < operands; ++s) strides_of(s)[to] = strides_of(s)[from];
  };
  for (int d = 0; d < rank; ++d) {
    if (shape[d] == 1) continue;
    bool merge = r > 0;
    for (int s = 0; merge && s < operands; ++s) merge = strides_of(s)[r - 1] == strides_of(s)[d] * shape[d];
    if (merge) {
      const index_t outer = shape[r - 1];
      move(r - 1, d);
      shape[r - 1] *= outer;
    } else {
      move(r, d);
      ++r;
    }
  }
  return r;
}

/// Puts axis order[d] at place d.
constexpr void reorder_axes(const int* order, int rank, index_t* values) {
  index_t old[max_rank] = {};
  for (int d = 0; d < rank; ++d) old[d] = values[d];
  for (int d = 0; d < rank; ++d) values[d] = old[order[d]];
}

/// What a reduction folds, its axes in the order kept, reduced, kept; each group counts as one axis.
struct fold_shape {
  index_t outer = 1, reduced = 1, inner = 1;
};

/// The axes as three: those before `axis`, itself, those after it.
inline fold_shape around_axis(const index_t* shape, int rank, int axis) {
  fold_shape s;
  for (int d = 0; d < rank; ++d) (d < axis ? s.outer : d == axis ? s.reduced : s.inner) *= shape[d];
  return s;
}

/// Checks extents before an allocation: none negative, and a product of bytes that fits the address space.
SINTER_SHARED index_t checked_numel(const char* op, const index_t* shape, int rank, std::size_t element_size);

/// The error of checked_axis.
[[noreturn]] SINTER_SHARED_COLD void refuse_axis(const char* op, index_t axis, int rank);
/// Maps axis in [-rank, rank) to [0, rank); throws index_error otherwise.
inline int checked_axis(const char* op, index_t axis, int rank) {
  if (axis < -rank || axis >= rank) refuse_axis(op, axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

/// Merges `shape` into `out` (rank out_rank >= rank) by NumPy's rule: aligned at the last axis, extents equal or 1.
SINTER_SHARED bool broadcast_into(index_t* out, int out_rank, const index_t* shape, int rank);

template <int R>
constexpr extents<R> ones_extents() {
  extents<R> e;
  for (int i = 0; i < R; ++i) e[i] = 1;
  return e;
}

/// Errors: shape_error for more elements than can be counted; views can show as many.
inline void check_countable(const char* op, const index_t* shape, int rank) {
  double n = 1;
  for (int i = 0; i < rank; ++i) n *= static_cast<double>(shape[i]);
  if (!(n < 9e18))
    refuse<shape_error>({op, ": shape ", shape_piece{shape, rank}, " has more elements than can be counted"});
}

/// Writes the broadcast shape of a and b, which has the larger rank, to `out`, or throws shape_error.
SINTER_SHARED void broadcast_shapes_into(index_t* out, const char* op, shape_piece a, shape_piece b);

/// (A) x (B) => the broadcast shape of both, or shape_error.
template <int A, int B>
extents<(A > B ? A : B)> broadcast_shapes(const char* op, const extents<A>& a, const extents<B>& b) {
  extents<(A > B ? A : B)> out;
  broadcast_shapes_into(out.values, op, {a.values, A}, {b.values, B});
  return out;
}

#if SINTER_DEFINES
SINTER_SHARED_COLD void refuse_axis(const char* op, index_t axis, int rank) {
  refuse<index_error>({op, ": axis ", axis, " is out of range for rank ", rank,
                       rank > 0 ? joined({"; use -", rank, " to ", rank - 1}) : ""});
}

SINTER_SHARED index_t checked_numel(const char* op, const index_t* shape, int rank, std::size_t element_size) {
  index_t n = 1;
  bool zero = false;
  for (int i = 0; i < rank; ++i) {
    if (shape[i] < 0) refuse<shape_error>({op, ": negative extent in shape ", shape_piece{shape, rank}});
    zero = zero || shape[i] == 0;
  }
  if (zero) return 0;
  const index_t limit = std::numeric_limits<index_t>::max() / static_cast<index_t>(element_size) / 2;
  for (int i = 0; i < rank; ++i) {
    if (shape[i] > limit / n)
      refuse<shape_error>({op, ": shape ", shape_piece{shape, rank}, " has more elements than can be addressed"});
    n *= shape[i];
  }
  return n;
}

SINTER_SHARED void broadcast_shapes_into(index_t* out, const char* op, shape_piece a, shape_piece b) {
  const int rank = a.rank > b.rank ? a.rank : b.rank;
  for (int i = 0; i < rank; ++i) out[i] = 1;
  if (!broadcast_into(out, rank, a.extents, a.rank) || !broadcast_into(out, rank, b.extents, b.rank))
    refuse<shape_error>(
        {op, ": shapes ", a, " and ", b, " do not broadcast; aligned at the last axis, extents must be equal or 1"});
  check_countable(op, out, rank);
}

SINTER_SHARED bool broadcast_into(index_t* out, int out_rank, const index_t* shape, int rank) {
  for (int i = 0; i < rank; ++i) {
    index_t& o = out[out_rank - rank + i];
    const index_t s = shape[i];
    if (o == s || s == 1) continue;
    if (o != 1) return false;
    o = s;
  }
  return true;
}

#endif  // SINTER_DEFINES

}  // namespace detail
}  // namespace sinter

template <int R>
struct std::tuple_size<sinter::extents<R>> : std::integral_constant<std::size_t, std::size_t{R}> {};
template <std::size_t I, int R>
struct std::tuple_element<I, sinter::extents<R>> {
  using type = sinter::index_t;
};
