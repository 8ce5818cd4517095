// sinter/cpu/detail/gemm_pack.hpp: copies a strip of a matrix into the order in which the kernels read it.
#pragma once

#include <Eigen/Core>

#include "sinter/core/types.hpp"

namespace sinter::cpu_impl::detail {

/// A strip: `lines` rows of A, or columns of B, each with an element per step of k.
template <class T>
struct strip_source {
  const T* data;
  index_t line_stride, k_stride;
  int lines;
};

// (lines, k) -> (k, width): dst[k * width + line], lines up to `width` filled with zeros. Whole packets are stored, in
// an order in which whatever spills over the width of one k is overwritten by its owner later; so dst needs room for a
// packet more.
template <class T>
void pack_across(T* dst, int width, strip_source<T> s, index_t k_count) {
  namespace ei = Eigen::internal;
  using packet = typename ei::packet_traits<T>::type;
  constexpr int lanes = ei::unpacket_traits<packet>::size;
  const int last_block = (width - 1) / lanes * lanes;
  index_t k = 0;
  for (; k + lanes <= k_count; k += lanes) {
    for (int line = last_block; line >= 0; line -= lanes) {
      ei::PacketBlock<packet, lanes> block;
      const T* source = s.data + line * s.line_stride + k;
      if (line + lanes <= s.lines) {
        for (int i = 0; i < lanes; ++i) {
          block.packet[i] = ei::ploadu<packet>(source + i * s.line_stride);
        }
      } else {
        for (int i = 0; i < lanes; ++i)
          block.packet[i] = line + i < s.lines ? ei::ploadu<packet>(source + i * s.line_stride) : ei::pset1<packet>(T(0));
      }
      ei::ptranspose(block);
      for (int i = 0; i < lanes; ++i) ei::pstoreu(dst + (k + i) * width + line, block.packet[i]);
    }
  }
  for (; k < k_count; ++k)
    for (int line = 0; line < width; ++line)
      dst[k * width + line] = line < s.lines ? s.data[line * s.line_stride + k] : T(0);
}

inline constexpr index_t steps_along = 8;

// The same for lines that lie side by side. Callers pack strips side by side a few steps of k at a time, so that whole
// rows are read; the rows of the next few steps are fetched meanwhile. `readable` lines exist from the strip's first on, though only s.lines
// belong to it.
template <class T>
void pack_along(T* dst, int width, strip_source<T> s, index_t k_count, index_t readable) {
  namespace ei = Eigen::internal;
  using packet = typename ei::packet_traits<T>::type;
  constexpr int lanes = ei::unpacket_traits<packet>::size;
  const int padded = (width + lanes - 1) / lanes * lanes;
  if (s.lines == width && readable >= padded) {
    for (index_t k = 0; k < k_count; ++k)
      for (int line = 0; line < padded; line += lanes) {
        __builtin_prefetch(s.data + (k + steps_along) * s.k_stride + line);
        ei::pstoreu(dst + k * width + line, ei::ploadu<packet>(s.data + k * s.k_stride + line));
      }
  } else {
    for (index_t k = 0; k < k_count; ++k)
      for (int line = 0; line < width; ++line)
        dst[k * width + line] = line < s.lines ? s.data[k * s.k_stride + line] : T(0);
  }
}

template <class T>
void pack_strip(T* dst, int width, strip_source<T> s, index_t k_count, index_t readable) {
  if (s.k_stride == 1) return pack_across(dst, width, s, k_count);
  if (s.line_stride == 1) return pack_along(dst, width, s, k_count, readable);
  for (index_t k = 0; k < k_count; ++k)
    for (int line = 0; line < width; ++line)
      dst[k * width + line] = line < s.lines ? s.data[line * s.line_stride + k * s.k_stride] : T(0);
}

}  // namespace sinter::cpu_impl::detail
