// sinter/cpu/detail/conv_patches.hpp: the matrix of patches that a convolution multiplies, read piece by piece.
//
// Row r of that matrix belongs to one result pixel; its columns are (tap, channel). It is never stored: products with
// weights read it in the image, and the gradient of the weights copies a strip of it just before it is used.
#pragma once

#include <algorithm>
#include <cstring>

#include "sinter/cpu/detail/conv_shape.hpp"
#include "sinter/cpu/detail/gemm_kernel.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"
#include "sinter/cpu/detail/gemm_scratch.hpp"
#include "sinter/cpu/loop.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// Columns of the matrix of patches, or pixels of its transpose, in a block at most.
template <class T>
inline constexpr index_t patch_block = 1536 / static_cast<index_t>(sizeof(T));

/// Zeros, which stand for the elements outside of the image.
template <class T>
alignas(64) inline constexpr T zero_line[std::size_t{patch_block<T>}] = {};

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

/// The same in whole packets: elements behind the last one are read and written, less than a packet of them.
template <class T>
SINTER_INLINE void copy_beyond(T* to, const T* from, index_t count) {
  namespace ei = Eigen::internal;
  using packet = typename transposing<T>::packet;
  for (index_t i = 0; i < count; i += transposing<T>::lanes) ei::pstoreu(to + i, ei::ploadu<packet>(from + i));
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

/// A result pixel: where its patch begins, as if the image went on outside, and the taps that meet the image.
struct patch_line {
  index_t base;
  index_range taps[3];
  bool whole;  ///< all taps meet the image

  bool is_outside() const {
    return taps[0].begin >= taps[0].end || taps[1].begin >= taps[1].end || taps[2].begin >= taps[2].end;
  }
};

/// Columns of the matrix of patches that lie side by side in the image: of a tap, or of several taps of the last axis.
struct patch_piece {
  index_t tap[3];  ///< tap[2] is 0 where taps are joined
  index_t from;    ///< the first element of those of the tap, or of the row of taps
  index_t count;
  index_t offset;  ///< from the base of a line
};

/// Lines of pixels, counted through all images, and of each of them the same pixels.
struct pixel_box {
  index_range lines, pixels;
};

/// The image of one group as a matrix of patches.
template <class T>
struct patches {
  const T* data;  ///< null where the image is made; see holding
  conv_image<T> image;
  index_t batch, channels, pixel_stride, image_stride, axis_stride[3];
  conv_axis axes[3];
  bool joined;  ///< the taps of the last axis follow one another, as its pixels do

  patches(const conv_image<T>& read, index_t images, index_t all_channels, index_t group_channels, const conv_axis* of)
      : data(read.data),
        image(read),
        batch(images),
        channels(group_channels),
        pixel_stride(all_channels),
        axes{of[0], of[1], of[2]} {
    axis_stride[2] = pixel_stride;
    axis_stride[1] = axis_stride[2] * axes[2].in;
    axis_stride[0] = axis_stride[1] * axes[1].in;
    image_stride = axis_stride[0] * axes[0].in;
    joined = axes[2].taps == 1 || (axes[2].dilation == 1 && channels == pixel_stride);
  }

  /// Is there a function that makes the image, and no memory that holds it?
  bool is_made() const { return data == nullptr && image.make != nullptr; }

  index_t pixels() const { return axes[0].out * axes[1].out * axes[2].out; }
  index_t rows() const { return batch * pixels(); }
  index_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  index_t columns() const { return taps() * channels; }
  /// From a pixel's base to that of the next one in its line.
  index_t along() const { return axes[2].step * axis_stride[2]; }
  index_t tap_offset(int axis, index_t tap) const { return tap * axes[axis].dilation * axis_stride[axis]; }

  /// Is the matrix of patches the image itself?
  bool is_image() const { return axes[0].is_identity() && axes[1].is_identity() && axes[2].is_identity(); }

  /// The same patches, with some pixels of the image in memory: of this thread, until its next call, where the image is
  /// made. All channels are one group then, and axis 0 has one plane.
  patches holding(const pixel_box& box) const {
    if (!is_made() || batch * image_stride == 0) return *this;
    const index_t width = axes[2].in, first = box.lines.begin * width + box.pixels.begin, last = first + span(box);
    T* const to = scratch<T>(2, static_cast<std::size_t>((last - first) * pixel_stride));
    patches here = *this;
    here.data = to - first * pixel_stride;
    const auto make = [&](index_t begin, index_t end) {
      image.make(image.ctx, begin * pixel_stride, end * pixel_stride, to + (begin - first) * pixel_stride);
    };
    if (box.pixels.begin == 0 && box.pixels.end == width) make(first, last);
    else
      for (index_t l = box.lines.begin; l < box.lines.end; ++l)
        make(l * width + box.pixels.begin, l * width + box.pixels.end);
    return here;
  }
  /// Is there one channel, and does a result meet all planes of the image? The channels of `of_planes` are such planes.
  bool are_planes() const {
    return channels == 1 && pixel_stride == 1 && !is_made() && axes[0].out == 1 && axes[0].first == 0 &&
           axes[0].dilation == 1 && axes[0].taps == axes[0].in && taps() > 0;
  }
  /// The same patches, for rows [r0, r1) of one image, in a copy of what they meet of its planes, with zeros around: of
  /// this thread, until its next call. All taps lie in it. copy_beyond may read it.
  patches with_zeros_around(index_t r0, index_t r1) const {
    patches here = *this;
    const index_t line = axes[2].out, number = r0 / pixels(), last = r1 - 1;
    const index_range y = here.cut_axis(1, r0 / line % axes[1].out, last / line % axes[1].out);
    const bool one_line = r0 / line == last / line;
    const index_range x = here.cut_axis(2, one_line ? r0 % line : 0, one_line ? last % line : line - 1);
    const index_t width = x.end - x.begin, left = std::clamp(-x.begin, index_t{0}, width);
    const index_t right = std::clamp(x.end - axes[2].in, index_t{0}, width - left);
    here.axis_stride[1] = width;
    here.axis_stride[0] = width * (y.end - y.begin);
    here.image_stride = here.axis_stride[0] * axes[0].in;
    T* to = scratch<T>(2, static_cast<std::size_t>(here.image_stride + transposing<T>::lanes));
    here.data = to - number * here.image_stride;
    for (index_t plane = 0; plane < axes[0].in; ++plane)
      for (index_t i = y.begin; i < y.end; ++i, to += width) {
        const bool outside = i < 0 || i >= axes[1].in;
        std::fill_n(to, outside ? width : left, T(0));
        if (outside) continue;
        const index_t at = number * image_stride + plane * axis_stride[0] + i * axis_stride[1] + x.begin + left;
        copy_elements(to + left, data + at, width - left - right);
        std::fill_n(to + width - right, right, T(0));
      }
    return here;
  }
  /// Pixels from the first of a box to its last, those between its lines included.
  index_t span(const pixel_box& box) const {
    return (box.lines.end - 1 - box.lines.begin) * axes[2].in + box.pixels.end - box.pixels.begin;
  }
  /// Would `tasks` of which each holds about such a box make many pixels several times? Then the image is better made
  /// once, which takes memory for all of it.
  bool is_made_often(const pixel_box& box, index_t tasks) const {
    return is_made() && tasks * span(box) >= 2 * batch * axes[1].in * axes[2].in;
  }
  /// The pixels that rows [r0, r1) of the matrix meet; there is at least one row.
  pixel_box pixels_met(index_t r0, index_t r1) const {
    if (is_image()) return {{0, 1}, {r0, r1}};
    const auto line = [this](index_t row, bool last) {
      const index_t image_number = row / pixels(), o = row / axes[2].out % axes[1].out;
      return image_number * axes[1].in + axes[1].met(o, last);
    };
    const bool one_line = r0 / axes[2].out == (r1 - 1) / axes[2].out;
    return {{line(r0, false), line(r1 - 1, true) + 1},
            {one_line ? axes[2].met(r0 % axes[2].out, false) : 0,
             one_line ? axes[2].met((r1 - 1) % axes[2].out, true) + 1 : axes[2].in}};
  }

  /// Makes an axis begin and end at the elements that results o0 to o1 meet; these, counted as before.
  index_range cut_axis(int a, index_t o0, index_t o1) {
    const index_range met{axes[a].at(o0, 0), axes[a].at(o1, axes[a].taps - 1) + 1};
    axes[a].first -= met.begin;
    axes[a].in = met.end - met.begin;
    return met;
  }

  /// Elements of a patch that lie side by side in the image.
  index_t segment() const { return joined ? axes[2].taps * channels : channels; }
  index_t most_pieces(index_t columns_at_once) const { return segment() > 0 ? columns_at_once / segment() + 2 : 0; }

  /// Cuts columns [begin, end) into pieces, and returns their number.
  index_t cut(index_t begin, index_t end, patch_piece* to) const {
    patch_piece* const first = to;
    const index_t length = segment(), across = joined ? 1 : axes[2].taps;
    for (; begin < end; begin += to++->count) {
      const index_t s = begin / length;
      to->tap[0] = s / across / axes[1].taps;
      to->tap[1] = s / across % axes[1].taps;
      to->tap[2] = s % across;
      to->from = begin % length;
      to->count = smaller(length - to->from, end - begin);
      to->offset = to->from + tap_offset(0, to->tap[0]) + tap_offset(1, to->tap[1]) + tap_offset(2, to->tap[2]);
    }
    return to - first;
  }

  /// The elements of a piece, where they are, or assembled in `stage`; they are at most patch_block.
  const T* elements(const patch_line& line, const patch_piece& p, T* stage) const {
    const index_t at = line.base + p.offset;
    if (line.whole) return data + at;
    if (!line.taps[0].holds(p.tap[0]) || !line.taps[1].holds(p.tap[1])) return zero_line<T>;
    if (!joined) return line.taps[2].holds(p.tap[2]) ? data + at : zero_line<T>;
    const index_t lower = line.taps[2].begin * channels - p.from, upper = line.taps[2].end * channels - p.from;
    const index_t begin = lower > 0 ? lower : 0, end = smaller(upper, p.count);
    if (begin >= end) return zero_line<T>;
    if (begin == 0 && end == p.count) return data + at;
    for (index_t i = 0; i < begin; ++i) stage[i] = T(0);
    copy_elements(stage + begin, data + at + begin, end - begin);
    for (index_t i = end; i < p.count; ++i) stage[i] = T(0);
    return stage;
  }
};

/// Holds the whole image of `a`, which is made, in memory while this lives; where it is not `wanted`, does nothing.
template <class T>
class whole_image {
 public:
  whole_image(patches<T>& a, bool wanted, thread_pool& pool) : memory_(wanted ? a.batch * a.image_stride : 0) {
    if (!wanted) return;
    constexpr index_t at_once = 16384;
    const index_t count = a.batch * a.image_stride;
    pool.parallel_for(ceil_div(count, at_once), [&](index_t task) {
      const index_t begin = task * at_once, end = smaller(begin + at_once, count);
      a.image.make(a.image.ctx, begin, end, memory_.data() + begin);
    });
    a.data = memory_.data();
  }

 private:
  temporary_array<T> memory_;
};

/// Goes through the rows of the matrix of patches.
template <class T>
class patch_walk {
 public:
  patch_walk(const patches<T>& of, index_t row)
      : of_(of), inside_(of.axes[2].results_inside(0, of.axes[2].taps - 1, 0, of.axes[2].out)) {
    o_[2] = row % of.axes[2].out;
    o_[1] = row / of.axes[2].out % of.axes[1].out;
    o_[0] = row / (of.axes[2].out * of.axes[1].out) % of.axes[0].out;
    image_ = row / of.pixels();
    enter_line();
  }

  index_t image() const { return image_; }
  index_t at(int axis) const { return o_[axis]; }

  patch_line line() const { return line_at(o_[2]); }

  /// That of another pixel of this line of pixels.
  patch_line line_at(index_t o) const {
    const index_range taps = of_.axes[2].taps_inside(o);
    return {base_at(o), {taps_[0], taps_[1], taps}, whole_ && taps.end - taps.begin == of_.axes[2].taps};
  }

  index_t base_at(index_t o) const { return base_ + of_.axes[2].at(o, 0) * of_.axis_stride[2]; }
  index_t along() const { return of_.along(); }
  /// The pixels of this line of which all taps meet the image.
  index_range whole_lines() const { return whole_ ? inside_ : index_range{0, 0}; }

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
  index_range inside_;  ///< of a line whose other taps all meet the image
  index_t image_ = 0, o_[3], base_ = 0;
  index_range taps_[2];
  bool whole_ = true;
};

/// For each of `rows` pixels from `row` on: where the channels of its tap `number` lie, at zero_line outside of the
/// image.
template <class T>
void find_pixels(const patches<T>& p, index_t row, index_t rows, index_t number, const T** to) {
  const conv_axis& last = p.axes[2];
  const index_t tap[] = {number / last.taps / p.axes[1].taps, number / last.taps % p.axes[1].taps, number % last.taps};
  patch_walk<T> walk(p, row);
  const index_t offset =
      tap[0] * p.axes[0].dilation * p.axis_stride[0] + tap[1] * p.axes[1].dilation * p.axis_stride[1];
  for (index_t left = rows; left > 0;) {
    const index_t first = walk.at(2), run = smaller(left, walk.left_in_line());
    const index_range inside = walk.meets(tap[0], tap[1]) ? last.results_inside(tap[2], tap[2], first, first + run)
                                                          : index_range{first, first};
    index_t at = walk.line_base() + offset + last.at(inside.begin, tap[2]) * p.axis_stride[2];
    for (index_t o = first; o < inside.begin; ++o) *to++ = zero_line<T>;
    for (index_t o = inside.begin; o < inside.end; ++o, at += last.step * p.axis_stride[2]) *to++ = p.data + at;
    for (index_t o = inside.end; o < first + run; ++o) *to++ = zero_line<T>;
    left -= run;
    walk.skip(run);
  }
}

/// Packs the channels of each pixel from `channel` on as `strips` strips of full width, each as (row, width). A pixel
/// is read at once.
template <class T>
void pack_pixels(const T* const* pixels, index_t channel, index_t rows, index_t strips, T* dst) {
  using packet = typename tile_shape<T>::packet;
  constexpr index_t lanes = tile_shape<T>::lanes, width = tile_shape<T>::max_columns;
  for (index_t i = 0; i < rows; ++i) {
    const T* const from = pixels[i] != zero_line<T> ? pixels[i] + channel : pixels[i];
    for (index_t s = 0; s < strips; ++s) {
      __builtin_prefetch(from + (s + strips) * width, 0, 2);
      for (index_t j = 0; j < width; j += lanes)
        Eigen::internal::pstore(dst + (s * rows + i) * width + j,
                                Eigen::internal::ploadu<packet>(from + s * width + j));
    }
  }
}

/// Copies the columns of these pieces of `rows` rows from `row` on, `stride` apart, the columns up to that zeros.
template <class T>
void copy_patches(const patches<T>& p, index_t row, index_t rows, const patch_piece* pieces, index_t count,
                  index_t stride, T* dst) {
  patch_walk<T> walk(p, row);
  for (index_t i = 0; i < rows; ++i, walk.skip(1)) {
    const patch_line line = walk.line();
    T* const end = dst + stride;
    for (index_t j = 0; j < count; ++j) {
      const T* const x = p.elements(line, pieces[j], dst);
      if (x != dst) copy_elements(dst, x, pieces[j].count);
      dst += pieces[j].count;
    }
    while (dst < end) *dst++ = T(0);
  }
}

/// Copies columns [c0, c1) of such rows of p.are_planes(), of which `pieces` is room for a cut. What lies behind the
/// last row is written, less than a packet of it.
template <class T>
void copy_planes(const patches<T>& p, index_t row, index_t rows, index_t c0, index_t c1, patch_piece* pieces,
                 index_t stride, T* dst) {
  for (const index_t end = row + rows; row < end;) {
    index_t left = smaller(end, (row / p.pixels() + 1) * p.pixels()) - row;
    const patches<T> here = p.with_zeros_around(row, row + left);
    const patch_piece* const behind = pieces + here.cut(c0, c1, pieces);
    patch_walk<T> walk(here, row);
    for (row += left; left > 0;) {
      const index_t run = smaller(left, walk.left_in_line());
      const T* x = here.data + walk.base_at(walk.at(2));
      for (index_t i = 0; i < run; ++i, x += walk.along(), dst += stride) {
        T* to = dst;
        for (const patch_piece* piece = pieces; piece < behind; to += piece++->count)
          copy_beyond(to, x + piece->offset, piece->count);
        std::fill(to, dst + stride, T(0));
      }
      left -= run;
      walk.skip(run);
    }
  }
}

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
