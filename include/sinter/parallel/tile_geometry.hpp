// sinter/parallel/tile_geometry.hpp: which elements the tiles of an image own, and which of them a layer reads.
#pragma once

#include <algorithm>

#include "sinter/core/shape.hpp"
#include "sinter/parallel/even_parts.hpp"

namespace sinter::nn {

/// How the window of a layer moves along one axis of an image: result o reads the elements o * stride - before to
/// o * stride - before + reach - 1. What lies outside of the image is padding.
struct tile_window {
  index_t reach = 1;   ///< from the first tap to the last, both included: dilation * (kernel - 1) + 1
  index_t stride = 1;  ///< from one window to the next
  index_t before = 0;  ///< the padding in front of the image; negative where the image is cut there
};

/// The windows of rows and of columns.
struct tile_windows {
  tile_window rows, columns;
};

namespace detail {

/// The elements begin, ..., end - 1 of an axis.
struct tile_interval {
  index_t begin = 0, end = 0;
  constexpr index_t size() const { return end - begin; }
  constexpr bool operator==(const tile_interval&) const = default;
};
constexpr tile_interval common(const tile_interval& a, const tile_interval& b) {
  const index_t begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// What part number `part` owns of n elements; see begin_of_part().
constexpr tile_interval owned(index_t n, int parts, int part) {
  using sinter::detail::begin_of_part;
  return {begin_of_part(n, parts, part), begin_of_part(n, parts, index_t{part} + 1)};
}

/// What the results `out` read, padding included: none for no results. A window without padding that moves over these
/// elements gives exactly the results `out`.
constexpr tile_interval needed(const tile_window& w, const tile_interval& out) {
  const index_t begin = out.begin * w.stride - w.before;
  if (out.size() == 0) return {begin, begin};
  return {begin, (out.end - 1) * w.stride - w.before + w.reach};
}

/// A rectangle of an image: owned by a tile, or read by one.
struct tile_area {
  tile_interval rows, columns;
  constexpr bool empty() const { return rows.size() == 0 || columns.size() == 0; }
  constexpr bool operator==(const tile_area&) const = default;
};
constexpr tile_area common(const tile_area& a, const tile_area& b) {
  return {common(a.rows, b.rows), common(a.columns, b.columns)};
}

/// The elements of x (N,C,H,W), which shows the area `all`, in the area `part` of it.
template <class X>
X area_of(const X& x, const tile_area& all, const tile_area& part) {
  return x.slice(2, part.rows.begin - all.rows.begin, part.rows.end - all.rows.begin)
      .slice(3, part.columns.begin - all.columns.begin, part.columns.end - all.columns.begin);
}

}  // namespace detail
}  // namespace sinter::nn
