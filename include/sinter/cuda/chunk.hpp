// sinter/cuda/chunk.hpp: neighbouring elements that a thread reads or writes together, in accesses of 16 bytes where
// they lie so.
#pragma once

#include <algorithm>
#include <bit>

#include "sinter/cuda/space.hpp"

namespace sinter::cuda_impl {

using sinter::detail::kernel::type_list;

template <class T, int lanes>
struct alignas(sizeof(T) * lanes < 16 ? sizeof(T) * lanes : 16) chunk {
  T value[std::size_t{lanes}];
};

/// What a thread holds of operands with elements T: of each, its lanes, in words that any of them fits.
template <class Types, int Lanes>
struct held;
template <class... T, int Lanes>
struct alignas(16) held<type_list<T...>, Lanes> {
  static constexpr int count = sizeof...(T), lanes = Lanes;
  using word = sinter::detail::bits_of_size<std::max({std::size_t{1}, sizeof(T)...})>;
  static constexpr int registers = static_cast<int>(sizeof(word)) * lanes / 4 * count;
  word of[std::size_t{count > 0 ? count : 1}][std::size_t{lanes}];

  template <class V>
  SINTER_WORD V get(int s, int lane) const {
    return std::bit_cast<V>(static_cast<sinter::detail::bits_of<V>>(of[s][lane]));
  }
  template <class V>
  SINTER_WORD void set(int s, int lane, V x) {
    of[s][lane] = std::bit_cast<sinter::detail::bits_of<V>>(x);
  }
};

/// Registers in which functions that kernels share hand over what they read, at most.
inline constexpr int most_read_at_once = 64;

/// Says that p points to the memory of the GPU, or to what it sees as such; a function that kernels share does not
/// know.
template <class T>
SINTER_WORD T* in_memory(T* p) {
#if defined(__CUDA_ARCH__)
  __builtin_assume(__isGlobal(p));
#endif
  return p;
}

/// The element i steps of that many bytes behind p.
template <class T>
SINTER_WORD T* behind(T* p, index_t i, index_t step) {
  using bytes = std::conditional_t<std::is_const_v<T>, const char, char>;
  return in_memory(reinterpret_cast<T*>(reinterpret_cast<bytes*>(p) + i * step));
}
/// Neighbours from p on, where not all are valid, or they do not lie side by side.
template <class T, int lanes>
SINTER_WORD_NOINLINE chunk<T, lanes> read_out_of_line(const T* p, int valid, index_t step) {
  chunk<T, lanes> c{};
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) c.value[i] = *behind(p, i < valid ? i : 0, step);  // no branch for each lane
  return c;
}
template <class T, int lanes>
SINTER_WORD chunk<T, lanes> read_chunk(const T* p, bool whole, int valid, index_t step) {
  if (whole) return *reinterpret_cast<const chunk<T, lanes>*>(in_memory(p));
  return read_out_of_line<T, lanes>(p, valid, step);
}
template <class T, int lanes>
SINTER_WORD void write_whole(T* p, const chunk<compute_type<T>, lanes>& c) {
  chunk<T, lanes> to;
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) to.value[i] = static_cast<T>(c.value[i]);
  *reinterpret_cast<chunk<T, lanes>*>(in_memory(p)) = to;
}
/// Writes c from p on, or adds it to what is there.
template <class T, int lanes>
SINTER_WORD void write_chunk(T* p, bool whole, int valid, index_t step, bool add, chunk<compute_type<T>, lanes> c) {
  if constexpr (floating_element<T>) {
    if (add) {
      const chunk<T, lanes> old = read_chunk<T, lanes>(p, whole, valid, step);
      SINTER_UNROLL
      for (int i = 0; i < lanes; ++i) c.value[i] += static_cast<compute_type<T>>(old.value[i]);
    }
  }
  if (whole) return write_whole(p, c);
  SINTER_UNROLL
  for (int i = 0; i < lanes; ++i) {
    if (i < valid) *behind(p, i, step) = static_cast<T>(c.value[i]);
  }
}

/// Where an operand lies, in bytes, and what becomes of it; the strides along the outer axes are kept elsewhere.
struct operand_place {
  char* data;
  index_t step;  ///< along the inner axis
  bool whole;    ///< read and written in whole chunks, but for the last of a row
  bool add;      ///< to what is there
  bool wide;     ///< holds float though its elements are narrow: terms that are folded later
  int sum;       ///< the number of the sum that it is a term of, unless below 0

  /// Is nothing done but to overwrite whole chunks?
  bool overwritten() const { return whole && !add && !wide && sum < 0; }
};

}  // namespace sinter::cuda_impl
