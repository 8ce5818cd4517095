// sinter/cpu/detail/conv_panels.hpp: the rows of patches that a call of a kernel multiplies, and where results go.
#pragma once

#include <algorithm>
#include <type_traits>

#include "sinter/cpu/detail/conv_patches.hpp"

namespace sinter::cpu_impl::detail {

/// How many rows of patches a call of the kernel multiplies. Each needs registers for its sums and one for its address.
inline constexpr int segment_rows = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 6;

/// Where the rows of the product lie: row (n, o) at data + n * image + sum over axes d of o[d] * step[d].
template <class T>
struct result_rows {
  T* data;
  index_t image, step[3];
  index_t row_length;  ///< of the matrix that the epilogue works on; it divides all steps
  index_t offset;      ///< of `data` in that matrix

  /// Where the row of a walk's pixel begins, from `data` on.
  index_t at(const patch_walk<std::remove_const_t<T>>& walk) const {
    return walk.image() * image + walk.at(0) * step[0] + walk.at(1) * step[1] + walk.at(2) * step[2];
  }
};

/// Calls an epilogue for rows that are finished one after the other: once for those that follow one another.
template <class T>
struct finished_rows {
  const tile_epilogue& after;
  const result_rows<T>& of;
  index_t c0, c1;                 ///< columns
  index_t first = 0, behind = 0;  ///< where rows begin, from of.data

  void add(index_t at, index_t count) {
    if (at != behind) {
      run();
      first = at;
    }
    behind = at + count * of.row_length;
  }
  void run() {
    if (behind > first) after((of.offset + first) / of.row_length, (of.offset + behind) / of.row_length, c0, c1);
    first = behind;
  }
};

/// Rows that a call of the kernel multiplies.
struct patch_panel {
  index_t base[std::size_t{segment_rows}];     ///< of the patches, in the image
  index_t to[std::size_t{segment_rows}];       ///< of the result
  patch_line line[std::size_t{segment_rows}];  ///< not where all are whole and in one line of pixels
  index_t count;
  bool dense;    ///< all rows of the panel are there, and their results lie row_length apart: only to[0] is known
  bool whole;    ///< all taps of its rows lie in the image
  bool outside;  ///< no tap of any row meets the image
  bool in_line;  ///< dense, whole, and in one line of pixels: of `base`, only the first is known
};

/// The next `count` rows of a walk. Rows that are not there stand for the first one: they are computed, and not
/// written.
template <class T>
void find_lines(patch_walk<std::remove_const_t<T>>& walk, index_t count, const result_rows<T>& c, patch_panel& p) {
  p.count = count;
  p.whole = p.outside = true;
  p.dense = count == segment_rows;
  const index_range whole = walk.whole_lines();
  p.in_line = p.dense && c.step[2] == c.row_length && walk.at(2) >= whole.begin && walk.at(2) + count <= whole.end;
  if (p.in_line) {
    p.outside = false;
    p.base[0] = walk.base_at(walk.at(2));
    p.to[0] = c.at(walk);
    return walk.skip(count);
  }
  for (index_t i = 0; i < count;) {
    const index_t run = smaller(count - i, walk.left_in_line()), o = walk.at(2);
    index_t to = c.at(walk), base = walk.base_at(o);
    const index_range inside = walk.whole_lines();
    const bool all_whole = run == count && o >= inside.begin && o + run <= inside.end;
    p.dense = p.dense && (run == 1 || c.step[2] == c.row_length) && (i == 0 || to - p.to[i - 1] == c.row_length);
    if (!all_whole)
      for (index_t j = 0; j < run; ++j) {
        p.line[i + j] = walk.line_at(o + j);
        p.whole = p.whole && p.line[i + j].whole;
        p.outside = p.outside && p.line[i + j].is_outside();
      }
    else p.outside = false;
    for (index_t j = 0; j < run; ++j, ++i, to += c.step[2], base += walk.along()) {
      p.to[i] = to;
      p.base[i] = base;
    }
    walk.skip(run);
  }
  for (index_t i = count; i < segment_rows; ++i) p.base[i] = p.base[0];
}

/// Has rows outside of the image, which cost nothing, lie in panels of their own; returns the end of the panels. There
/// are such rows where the padding is as wide as the kernel or wider.
inline patch_panel* gather_outside(patch_panel* begin, patch_panel* end) {
  const auto is_mixed = [](const patch_panel& p) {
    return !p.whole && !p.outside &&
           std::any_of(p.line, p.line + p.count, [](const patch_line& line) { return line.is_outside(); });
  };
  begin = std::find_if(begin, end, is_mixed);
  if (begin == end) return end;
  patch_panel kinds[2];  // rows that meet the image, and rows outside
  const auto clear = [](patch_panel& p, bool outside) {
    p.count = 0;
    p.dense = p.in_line = false;
    p.whole = !outside;
    p.outside = outside;
  };
  clear(kinds[0], false);
  clear(kinds[1], true);
  // Panels are written where others were read: a kind is written when it is full of rows that were read.
  patch_panel* to = begin;
  const auto write = [&](patch_panel& p) {
    for (index_t i = p.count; i < segment_rows; ++i) p.base[i] = p.base[0];
    *to++ = p;
    clear(p, p.outside);
  };
  for (const patch_panel* from = begin; from < end; ++from) {
    const patch_panel p = *from;
    if (!is_mixed(p)) {
      *to++ = p;
      continue;
    }
    for (index_t i = 0; i < p.count; ++i) {
      patch_panel& kind = kinds[p.line[i].is_outside()];
      kind.base[kind.count] = p.base[i];
      kind.to[kind.count] = p.to[i];
      kind.line[kind.count++] = p.line[i];
      kind.whole = kind.whole && p.line[i].whole;
      if (kind.count == segment_rows) write(kind);
    }
  }
  for (patch_panel& kind : kinds)
    if (kind.count > 0) write(kind);
  return to;
}

}  // namespace sinter::cpu_impl::detail
