// sinter/cpu/detail/conv_patches.hpp: the matrix of patches that a convolution multiplies, packed piece by piece.
//
// Row r of that matrix belongs to one result pixel; its columns are (tap, channel). It is never stored: the panels and
// strips that the product reads are copied from the image just before they are used.
#pragma once

#include <cstring>

#include "sinter/cpu/detail/conv_shape.hpp"
#include "sinter/cpu/detail/gemm_kernel.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// Columns of the matrix of patches that are packed at a time, at most.
template <class T>
inline constexpr index_t patch_block = 1536 / static_cast<index_t>(sizeof(T));

/// What stands for the elements outside of the image.
inline constexpr index_t zero_line_length = 2048;
template <class T>
alignas(64) inline constexpr T zero_line[std::size_t{zero_line_length}] = {};

/// Copies elements that lie side by side; `to` is not read, and nothing behind the last element is touched.
template <class T>
SINTER_INLINE void copy_elements(T* to, const T* from, index_t count) {
  namespace ei = Eigen::internal;
  using packet = typename transposing<T>::packet;
  constexpr index_t lanes = transposing<T>::lanes;
  index_t i = 0;
  for (; i + lanes <= count; i += lanes) ei::pstoreu(to + i, ei::ploadu<packet>(from + i));
  if (i == count) return;
  if (count >= lanes) return ei::pstoreu(to + count - lanes, ei::ploadu<packet>(from + count - lanes));
  for (; i < count; ++i) to[i] = from[i];
}

template <class T>
SINTER_INLINE void add_elements(T* to, const T* from, index_t count) {
  namespace ei = Eigen::internal;
  using packet = typename transposing<T>::packet;
  constexpr index_t lanes = transposing<T>::lanes;
  index_t i = 0;
  for (; i + lanes <= count; i += lanes)
    ei::pstoreu(to + i, ei::padd(ei::ploadu<packet>(to + i), ei::ploadu<packet>(from + i)));
  for (; i < count; ++i) to[i] += from[i];
}

/// (lines, k) -> (k, width): dst[k * width + line]; see pack_across, which this repeats for lines anywhere.
template <class T>
void pack_lines(T* dst, index_t width, const T* const* lines, index_t k_count) {
  namespace ei = Eigen::internal;
  using packet = typename transposing<T>::packet;
  constexpr int lanes = transposing<T>::lanes;
  const index_t last_block = (width - 1) / lanes * lanes;
  index_t k = 0;
  for (; k + lanes <= k_count; k += lanes) {
    for (index_t line = last_block; line >= 0; line -= lanes) {
      ei::PacketBlock<packet, lanes> block;
      for (int i = 0; i < lanes; ++i)
        block.packet[i] = line + i < width ? ei::ploadu<packet>(lines[line + i] + k) : ei::pset1<packet>(T(0));
      ei::ptranspose(block);
      for (int i = 0; i < lanes; ++i) ei::pstoreu(dst + (k + i) * width + line, block.packet[i]);
    }
  }
  for (; k < k_count; ++k)
    for (index_t line = 0; line < width; ++line) dst[k * width + line] = lines[line][k];
}

/// A result pixel: where its patch begins, as if the image went on outside, and the taps that meet the image.
struct patch_line {
  index_t base;
  index_range taps[3];
  bool whole;  ///< all taps meet the image
};

/// The image of one group as a matrix of patches.
template <class T>
struct patches {
  const T* data;
  index_t batch, channels, pixel_stride, image_stride, axis_stride[3];
  conv_axis axes[3];
  bool joined;  ///< the taps of the last axis follow one another, as its pixels do

  patches(const T* image, index_t images, index_t all_channels, index_t group_channels, const conv_axis* of)
      : data(image), batch(images), channels(group_channels), pixel_stride(all_channels), axes{of[0], of[1], of[2]} {
    axis_stride[2] = pixel_stride;
    axis_stride[1] = axis_stride[2] * axes[2].in;
    axis_stride[0] = axis_stride[1] * axes[1].in;
    image_stride = axis_stride[0] * axes[0].in;
    joined = axes[2].taps == 1 || (axes[2].dilation == 1 && channels == pixel_stride);
  }

  index_t pixels() const { return axes[0].out * axes[1].out * axes[2].out; }
  index_t rows() const { return batch * pixels(); }
  index_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  index_t columns() const { return taps() * channels; }

  /// Elements of a patch that lie side by side in the image: those of a tap, or of a row of taps.
  index_t segment() const { return joined ? axes[2].taps * channels : channels; }

  /// A segment by its taps; for joined taps tap[2] is 0.
  struct place {
    index_t tap[3], offset;
  };
  index_t segments() const { return joined ? axes[0].taps * axes[1].taps : taps(); }
  place segment_place(index_t s) const {
    const index_t across = joined ? 1 : axes[2].taps;
    place p{{s / across / axes[1].taps, s / across % axes[1].taps, s % across}, 0};
    for (int a = 0; a < 3; ++a) p.offset += p.tap[a] * axes[a].dilation * axis_stride[a];
    return p;
  }

  /// Elements [from, from + count) of a segment, where they are, or assembled in `stage`; count is at
  /// most zero_line_length.
  const T* piece(const patch_line& line, const place& p, index_t from, index_t count, T* stage) const {
    const index_t at = line.base + p.offset + from;
    if (line.whole) return data + at;
    if (!line.taps[0].holds(p.tap[0]) || !line.taps[1].holds(p.tap[1])) return zero_line<T>;
    if (!joined) return line.taps[2].holds(p.tap[2]) ? data + at : zero_line<T>;
    const index_t lower = line.taps[2].begin * channels - from, upper = line.taps[2].end * channels - from;
    const index_t begin = lower > 0 ? lower : 0, end = smaller(upper, count);
    if (begin >= end) return zero_line<T>;
    if (begin == 0 && end == count) return data + at;
    for (index_t i = 0; i < begin; ++i) stage[i] = T(0);
    copy_elements(stage + begin, data + at + begin, end - begin);
    for (index_t i = end; i < count; ++i) stage[i] = T(0);
    return stage;
  }
};

/// Goes through the rows of the matrix of patches.
template <class T>
class patch_walk {
 public:
  patch_walk(const patches<T>& of, index_t row) : of_(of) {
    o_[2] = row % of.axes[2].out;
    o_[1] = row / of.axes[2].out % of.axes[1].out;
    o_[0] = row / (of.axes[2].out * of.axes[1].out) % of.axes[0].out;
    image_ = row / of.pixels();
    enter_line();
  }

  index_t image() const { return image_; }
  index_t at(int axis) const { return o_[axis]; }

  patch_line line() const {
    patch_line l;
    l.taps[0] = taps_[0];
    l.taps[1] = taps_[1];
    l.taps[2] = of_.axes[2].taps_inside(o_[2]);
    l.base = base_ + of_.axes[2].at(o_[2], 0) * of_.axis_stride[2];
    l.whole = whole_ && l.taps[2].end - l.taps[2].begin == of_.axes[2].taps;
    return l;
  }

  /// The rest of this line of pixels begins here, and is passed by skip.
  index_t left_in_line() const { return of_.axes[2].out - o_[2]; }
  index_t line_base() const { return base_; }
  bool meets(index_t tap0, index_t tap1) const { return taps_[0].holds(tap0) && taps_[1].holds(tap1); }

  void skip(index_t pixels) {
    o_[2] += pixels;
    if (o_[2] < of_.axes[2].out) return;
    o_[2] = 0;
    if (++o_[1] == of_.axes[1].out) {
      o_[1] = 0;
      if (++o_[0] == of_.axes[0].out) {
        o_[0] = 0;
        ++image_;
      }
    }
    enter_line();
  }

 private:
  void enter_line() {
    base_ = image_ * of_.image_stride;
    whole_ = true;
    for (int a = 0; a < 2; ++a) {
      taps_[a] = of_.axes[a].taps_inside(o_[a]);
      base_ += of_.axes[a].at(o_[a], 0) * of_.axis_stride[a];
      whole_ = whole_ && taps_[a].end - taps_[a].begin == of_.axes[a].taps;
    }
  }

  const patches<T>& of_;
  index_t image_ = 0, o_[3], base_ = 0;
  index_range taps_[2];
  bool whole_ = true;
};

/// Calls f(segment, from, count, at) for the pieces of segments that make up columns [begin, end) of the matrix of
/// patches; `at` counts from begin.
template <class T, class F>
SINTER_INLINE void for_pieces(const patches<T>& p, index_t begin, index_t end, F&& f) {
  if (begin >= end) return;
  const index_t length = p.segment();
  index_t s = begin / length, from = begin % length;
  for (index_t k = begin; k < end; ++s, from = 0) {
    const index_t count = smaller(length - from, end - k);
    f(s, from, count, k - begin);
    k += count;
  }
}

/// Packs columns [begin, end) of some rows as (k, width), the rows up to `width` filled with zeros. `stage` has room
/// for width * (end - begin) elements, `dst` for a packet more than that.
template <class T>
void pack_patch_panel(const patches<T>& p, const patch_line* rows, index_t count, index_t width, index_t begin,
                      index_t end, T* dst, T* stage) {
  constexpr index_t short_segment = 64;
  const T* lines[std::size_t{tile_shape<T>::max_rows}];
  const index_t length = end - begin;
  if (p.segment() < short_segment && length > p.segment()) {
    // Copied together first: transposing short pieces costs more.
    for (index_t i = 0; i < count; ++i) {
      T* const to = stage + i * length;
      for_pieces(p, begin, end, [&](index_t s, index_t from, index_t n, index_t at) {
        const T* const x = p.piece(rows[i], p.segment_place(s), from, n, to + at);
        if (x != to + at) copy_elements(to + at, x, n);
      });
      lines[i] = to;
    }
    for (index_t i = count; i < width; ++i) lines[i] = zero_line<T>;
    return pack_lines(dst, width, lines, length);
  }
  for_pieces(p, begin, end, [&](index_t s, index_t from, index_t n, index_t at) {
    const auto place = p.segment_place(s);
    for (index_t i = 0; i < width; ++i)
      lines[i] = i < count ? p.piece(rows[i], place, from, n, stage + i * length) : zero_line<T>;
    pack_lines(dst + at * width, width, lines, n);
  });
}

/// Where a tap of each of `rows` pixels from `row` on lies in the image, or -1 outside of it.
template <class T>
void find_pixels(const patches<T>& p, index_t row, index_t rows, const index_t* tap, index_t* to) {
  const conv_axis& last = p.axes[2];
  patch_walk<T> walk(p, row);
  const index_t offset =
      tap[0] * p.axes[0].dilation * p.axis_stride[0] + tap[1] * p.axes[1].dilation * p.axis_stride[1];
  for (index_t left = rows; left > 0;) {
    const index_t first = walk.at(2), run = smaller(left, walk.left_in_line());
    const index_range inside = walk.meets(tap[0], tap[1]) ? last.results_inside(tap[2], tap[2], first, first + run)
                                                          : index_range{first, first};
    index_t at = walk.line_base() + offset + last.at(inside.begin, tap[2]) * p.axis_stride[2];
    for (index_t o = first; o < inside.begin; ++o) *to++ = -1;
    for (index_t o = inside.begin; o < inside.end; ++o, at += last.step * p.axis_stride[2]) *to++ = at;
    for (index_t o = inside.end; o < first + run; ++o) *to++ = -1;
    left -= run;
    walk.skip(run);
  }
}

/// Packs `width` elements of each pixel as (row, width).
template <class T>
void pack_pixels(const T* data, const index_t* pixels, index_t rows, index_t width, T* dst) {
  using packet = typename tile_shape<T>::packet;
  constexpr index_t lanes = tile_shape<T>::lanes;
  for (index_t i = 0; i < rows; ++i, dst += width) {
    const T* const from = pixels[i] >= 0 ? data + pixels[i] : zero_line<T>;
    for (index_t j = 0; j < width; j += lanes)
      Eigen::internal::pstore(dst + j, Eigen::internal::ploadu<packet>(from + j));
  }
}

/// Packs columns [begin, end) of `rows` rows from `row` on as (row, width), the columns up to `width` filled with
/// zeros.
template <class T>
void pack_patch_strip(const patches<T>& p, index_t row, index_t rows, index_t begin, index_t end, index_t width,
                      T* dst) {
  const conv_axis& last = p.axes[2];
  const index_t pixel_step = last.step * p.axis_stride[2];
  for_pieces(p, begin, end, [&](index_t s, index_t from, index_t n, index_t at) {
    const auto place = p.segment_place(s);
    const index_t low = p.joined ? from / p.channels : place.tap[2];
    const index_t high = p.joined ? (from + n - 1) / p.channels : place.tap[2];
    T* to = dst + at;
    patch_walk<T> walk(p, row);
    const auto copy_one = [&] {
      const T* const x = p.piece(walk.line(), place, from, n, to);
      if (x != to) copy_elements(to, x, n);
      to += width;
      walk.skip(1);
    };
    for (index_t left = rows; left > 0;) {
      const index_t first = walk.at(2), run = smaller(left, walk.left_in_line());
      left -= run;
      if (!walk.meets(place.tap[0], place.tap[1])) {
        for (index_t i = 0; i < run; ++i, to += width) copy_elements(to, zero_line<T>, n);
        walk.skip(run);
        continue;
      }
      const index_range inside = last.results_inside(low, high, first, first + run);
      index_t o = first;
      for (; o < inside.begin; ++o) copy_one();
      if (inside.begin < inside.end) {
        const T* x = p.data + (walk.line_base() + last.at(o, 0) * p.axis_stride[2] + place.offset + from);
        const index_t pixels = inside.end - inside.begin;
        for (index_t i = 0; i < pixels; ++i, to += width) copy_elements(to, x + i * pixel_step, n);
        o += pixels;
        walk.skip(pixels);
      }
      for (; o < first + run; ++o) copy_one();
    }
  });
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = end - begin; j < width; ++j) dst[i * width + j] = T(0);
}

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
