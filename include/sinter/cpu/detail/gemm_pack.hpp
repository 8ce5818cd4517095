// sinter/cpu/detail/gemm_pack.hpp: copies strips of a matrix into the order in which the kernels read them.
#pragma once

#include <type_traits>

#include "sinter/core/types.hpp"
#include "sinter/math/packet_eigen.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// A strip: `lines` rows of A, or columns of B, each with an element per step of k. From its first line on the matrix
/// has `readable` lines.
template <class T>
struct strip_source {
  const T* data;
  index_t line_stride, k_stride;
  index_t lines, readable;
};

// Transpositions are done in packets of at most 32 bytes: g++ 12 warns about Eigen's for 64.
template <class T>
struct transposing {
  using whole = typename Eigen::internal::packet_traits<T>::type;
  using half = typename Eigen::internal::unpacket_traits<whole>::half;
  using packet = std::conditional_t<(sizeof(whole) > 32), half, whole>;
  static constexpr int lanes = Eigen::internal::unpacket_traits<packet>::size;
};

#ifdef EIGEN_VECTORIZE_AVX512
/// dst[k * width + i] = first[i * stride + k], 16 by 16. Reading a quarter of a line into its place costs no shuffle;
/// what remains is to turn squares of 4 by 4 within the quarters of a register. A line is read as a whole, as lines a
/// power of two apart displace each other in the cache.
SINTER_INLINE void pack_square(float* dst, index_t width, const float* first, index_t stride) {
  const float *const fifth = first + 4 * stride, *const ninth = first + 8 * stride,
                     *const thirteenth = first + 12 * stride;
  const auto read = [&](index_t at) SINTER_INLINE_LAMBDA {
    __m512 r = _mm512_castps128_ps512(_mm_loadu_ps(first + at));
    r = _mm512_insertf32x4(r, _mm_loadu_ps(fifth + at), 1);
    r = _mm512_insertf32x4(r, _mm_loadu_ps(ninth + at), 2);
    return _mm512_insertf32x4(r, _mm_loadu_ps(thirteenth + at), 3);
  };
  // The masked forms are the same instructions; g++ 12 warns of the others' undefined source.
  const auto turn = [width](float* to, __m512 a, __m512 b, __m512 c, __m512 d) SINTER_INLINE_LAMBDA {
    const __m512d ab = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(0xffff, a, b));
    const __m512d cd = _mm512_castps_pd(_mm512_maskz_unpacklo_ps(0xffff, c, d));
    const __m512d ab_high = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(0xffff, a, b));
    const __m512d cd_high = _mm512_castps_pd(_mm512_maskz_unpackhi_ps(0xffff, c, d));
    _mm512_storeu_ps(to, _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, ab, cd)));
    _mm512_storeu_ps(to + width, _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, ab, cd)));
    _mm512_storeu_ps(to + 2 * width, _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, ab_high, cd_high)));
    _mm512_storeu_ps(to + 3 * width, _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, ab_high, cd_high)));
  };
  const index_t two = 2 * stride, three = 3 * stride;
  const __m512 a[] = {read(0), read(4), read(8), read(12)};
  const __m512 b[] = {read(stride), read(stride + 4), read(stride + 8), read(stride + 12)};
  const __m512 c[] = {read(two), read(two + 4), read(two + 8), read(two + 12)};
  const __m512 d[] = {read(three), read(three + 4), read(three + 8), read(three + 12)};
  turn(dst, a[0], b[0], c[0], d[0]);
  turn(dst + 4 * width, a[1], b[1], c[1], d[1]);
  turn(dst + 8 * width, a[2], b[2], c[2], d[2]);
  turn(dst + 12 * width, a[3], b[3], c[3], d[3]);
}

/// Does the first steps of pack_across in squares, where 16 lines can be read for each; returns their number.
inline index_t pack_squares(float* dst, index_t width, const strip_source<float>& s, index_t k_count) {
  const index_t last_block = (width - 1) / 16 * 16;
  if (s.lines != width || s.readable < last_block + 16) return 0;
  index_t k = 0;
  for (; k + 16 <= k_count; k += 16)
    for (index_t block = last_block; block >= 0; block -= 16)
      pack_square(dst + k * width + block, width, s.data + block * s.line_stride + k, s.line_stride);
  return k;
}
#endif
template <class T>
index_t pack_squares(T*, index_t, const strip_source<T>&, index_t) {
  return 0;
}

// (lines, k) -> (k, width): dst[k * width + line], lines up to `width` filled with zeros, for lines contiguous in k, of
// which a cache line's worth is read at a time. Whole packets are stored, in an order in which whatever spills over the
// width of one k is overwritten by its owner later; so dst needs room for a packet more.
template <class T>
void pack_across(T* dst, index_t width, strip_source<T> s, index_t k_count) {
  namespace ei = Eigen::internal;
  using packet = typename transposing<T>::packet;
  constexpr int lanes = transposing<T>::lanes, steps = 64 / sizeof(T);
  static_assert(steps % lanes == 0);
  const index_t last_block = (width - 1) / lanes * lanes;
  index_t k = pack_squares(dst, width, s, k_count);
  for (; k + steps <= k_count; k += steps) {
    for (index_t line = last_block; line >= 0; line -= lanes) {
      for (index_t at = k; at < k + steps; at += lanes) {
        ei::PacketBlock<packet, lanes> block;
        for (int i = 0; i < lanes; ++i)
          block.packet[i] = line + i < s.lines ? ei::ploadu<packet>(s.data + (line + i) * s.line_stride + at)
                                               : ei::pset1<packet>(T(0));
        ei::ptranspose(block);
        for (int i = 0; i < lanes; ++i) ei::pstoreu(dst + (at + i) * width + line, block.packet[i]);
      }
    }
  }
  for (; k < k_count; ++k)
    for (index_t line = 0; line < width; ++line)
      dst[k * width + line] = line < s.lines ? s.data[line * s.line_stride + k] : T(0);
}

// The same for lines that lie side by side.
template <class T>
void pack_along(T* dst, index_t width, strip_source<T> s, index_t k_count) {
  namespace ei = Eigen::internal;
  using packet = typename ei::packet_traits<T>::type;
  constexpr int lanes = ei::unpacket_traits<packet>::size;
  const index_t padded = (width + lanes - 1) / lanes * lanes;
  if (s.lines == width && s.readable >= padded) {
    for (index_t k = 0; k < k_count; ++k)
      for (index_t line = 0; line < padded; line += lanes) {
        const T* const from = s.data + k * s.k_stride + line;
        ei::pstoreu(dst + k * width + line, ei::ploadu<packet>(from));
        __builtin_prefetch(from + k_count * s.k_stride);
      }
  } else {
    for (index_t k = 0; k < k_count; ++k)
      for (index_t line = 0; line < width; ++line)
        dst[k * width + line] = line < s.lines ? s.data[k * s.k_stride + line] : T(0);
  }
}

template <class T>
void pack_strip(T* dst, index_t width, strip_source<T> s, index_t k_count) {
  if (s.k_stride == 1) return pack_across(dst, width, s, k_count);
  if (s.line_stride == 1) return pack_along(dst, width, s, k_count);
  for (index_t k = 0; k < k_count; ++k)
    for (index_t line = 0; line < width; ++line)
      dst[k * width + line] = line < s.lines ? s.data[line * s.line_stride + k * s.k_stride] : T(0);
}

/// Packs `strips` strips of columns of full width, the first at `from` and the others beside it; rows of the matrix lie
/// `row_step` apart. A row of all strips is read at once: they share its cache lines and its page.
template <class T>
void pack_strips(T* dst, index_t strips, const T* from, index_t row_step, index_t k_count) {
  namespace ei = Eigen::internal;
  using packet = typename ei::packet_traits<T>::type;
  constexpr index_t lanes = ei::unpacket_traits<packet>::size, width = 2 * lanes, rows_ahead = 8;
  for (index_t k = 0; k < k_count; ++k, from += row_step, dst += width) {
    T* to = dst;
    for (index_t s = 0; s < strips; ++s, to += width * k_count) {
      __builtin_prefetch(from + rows_ahead * row_step + s * width);
      ei::pstore(to, ei::ploadu<packet>(from + s * width));
      ei::pstore(to + lanes, ei::ploadu<packet>(from + s * width + lanes));
    }
  }
}

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
