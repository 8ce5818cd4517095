// sinter/cpu/detail/gemm_pack.hpp: copies a strip of a matrix into the order in which the kernels read it.
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
  index_t k = 0;
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
      for (index_t line = 0; line < padded; line += lanes)
        ei::pstoreu(dst + k * width + line, ei::ploadu<packet>(s.data + k * s.k_stride + line));
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

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
