// sinter/cpu/detail/loop_copies.hpp: copies between an operand with any strides and the linear arrays of a kernel.
#pragma once

#include <cstring>

#include "sinter/core/types.hpp"
#include "sinter/math/packet.hpp"

namespace sinter::cpu_impl::detail {

template <class Word>
void copy_strided(char* to, index_t to_step, const char* from, index_t from_step, index_t n) {
  auto* t = reinterpret_cast<Word*>(to);
  const auto* f = reinterpret_cast<const Word*>(from);
  if (from_step == 0) {
    const Word v = *f;
    for (index_t i = 0; i < n; ++i) t[i * to_step] = v;
  } else {
    for (index_t i = 0; i < n; ++i) t[i * to_step] = f[i * from_step];
  }
}

SINTER_SHARED void copy_strided(char* to, index_t to_step, const char* from, index_t from_step, index_t n, int size);

/// Copies a tile, h rows of w elements one after the other, from where it stands with these strides, or back to there.
/// Where rows stand side by side there, each line of cache is touched once.
template <class Word, bool Back>
void copy_tile(char* tile, char* there, index_t h, index_t w, index_t row_step, index_t step) {
  auto* const t = reinterpret_cast<Word*>(tile);
  auto* const m = reinterpret_cast<Word*>(there);
  const auto move = [](Word& in_tile, Word& outside) {
    if constexpr (Back) outside = in_tile;
    else in_tile = outside;
  };
  if (row_step != 1) {
    for (index_t r = 0; r < h; ++r)
      for (index_t c = 0; c < w; ++c) move(t[r * w + c], m[r * row_step + c * step]);
    return;
  }
  index_t r = 0;
  for (; r + 16 <= h; r += 16) {
    for (index_t c = 0; c < w; ++c) {
      SINTER_UNROLL
      for (index_t i = 0; i < 16; ++i) move(t[(r + i) * w + c], m[r + i + c * step]);
    }
  }
  for (; r < h; ++r)
    for (index_t c = 0; c < w; ++c) move(t[r * w + c], m[r + c * step]);
}

template <bool Back>
void copy_tile(char* tile, char* there, index_t h, index_t w, index_t row_step, index_t step, int size) {
  switch (size) {
    case 1:
      return copy_tile<std::uint8_t, Back>(tile, there, h, w, row_step, step);
    case 2:
      return copy_tile<std::uint16_t, Back>(tile, there, h, w, row_step, step);
    case 4:
      return copy_tile<std::uint32_t, Back>(tile, there, h, w, row_step, step);
    default:
      return copy_tile<std::uint64_t, Back>(tile, there, h, w, row_step, step);
  }
}

template <class T>
void add_strided(char* to, index_t step, const char* from, index_t n) {
  auto* t = reinterpret_cast<T*>(to);
  const auto* f = reinterpret_cast<const T*>(from);
  if (step == 0) {
    double sum = 0;
    for (index_t i = 0; i < n; ++i) sum += static_cast<double>(f[i]);
    *t += static_cast<T>(sum);
    return;
  }
  for (index_t i = 0; i < n; ++i) t[i * step] += f[i];
}

// Only gradients are summed; those of narrow elements are gathered in float.
inline void add_strided(char* to, index_t step, const char* from, index_t n, int size) {
  if (size == 4) add_strided<float>(to, step, from, n);
  else add_strided<double>(to, step, from, n);
}

#if SINTER_DEFINES

SINTER_SHARED void copy_strided(char* to, index_t to_step, const char* from, index_t from_step, index_t n, int size) {
  if (to_step == 1 && from_step == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n * size));
    return;
  }
  switch (size) {
    case 1:
      return copy_strided<std::uint8_t>(to, to_step, from, from_step, n);
    case 2:
      return copy_strided<std::uint16_t>(to, to_step, from, from_step, n);
    case 4:
      return copy_strided<std::uint32_t>(to, to_step, from, from_step, n);
    default:
      return copy_strided<std::uint64_t>(to, to_step, from, from_step, n);
  }
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl::detail
