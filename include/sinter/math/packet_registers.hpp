// sinter/math/packet_registers.hpp: simd<T, L> and mask<T, L>: elements in vector registers, their loads and stores.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "sinter/math/inline.hpp"
#include "sinter/math/packet_eigen.hpp"
#include "sinter/math/scalar.hpp"
#include "sinter/math/vocabulary.hpp"

// Vector registers passed by value never cross a call here: everything is inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

static_assert(sizeof(Eigen::Index) == sizeof(std::int64_t),
              "sinter: EIGEN_DEFAULT_DENSE_INDEX_TYPE must have 64 bits, as the strides of tensors do");

namespace sinter::math {

namespace detail {

template <class T>
inline constexpr int eigen_lanes =
    Eigen::internal::unpacket_traits<typename Eigen::internal::packet_traits<T>::type>::size;

}  // namespace detail

// How many floats the widest vector register holds. A simd of any element type has this many lanes unless told
// otherwise, so that float, int and bool operands of one expression go in step.
inline constexpr int native_lanes = detail::eigen_lanes<float> > 1 ? detail::eigen_lanes<float> : 4;

namespace detail {

// A bool is held as a byte 0 or 1, as it lies in memory; a mask lane as an integer of its element's size, all ones or
// 0.
template <class T>
using lane_t = std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T>;
template <int Bytes>
using int_of = std::conditional_t<
    Bytes == 1, std::int8_t,
    std::conditional_t<Bytes == 2, std::int16_t, std::conditional_t<Bytes == 4, std::int32_t, std::int64_t>>>;
template <class T>
using mask_lane_t = int_of<sizeof(T)>;

// Eigen's packet of exactly L elements where it has one. Its integer packets lack comparison, division, minimum and
// maximum on AVX and AVX-512, so integers use the compilers' own vector types.
template <class T, int L>
using eigen_packet = typename Eigen::internal::find_best_packet<T, L>::type;
template <class T, int L>
inline constexpr bool has_eigen_packet = false;
template <real T, int L>
inline constexpr bool has_eigen_packet<T, L> = L > 1 &&
                                               int(Eigen::internal::unpacket_traits<eigen_packet<T, L>>::size) == L;

template <class T, int L>
struct vector_of {
  typedef T type __attribute__((vector_size(sizeof(T) * L)));
};
template <class T, int L>
  requires has_eigen_packet<T, L>
struct vector_of<T, L> {
  using type = eigen_packet<T, L>;
};
template <class T, int L>
using vector_t = typename vector_of<T, L>::type;

// L elements: one register, or two halves where one register does not hold them.
template <class T, int L>
struct registers {
  static_assert(L > 0 && (L & (L - 1)) == 0, "sinter::math: the number of lanes is a power of two");
  using element = T;
  static constexpr int lanes = L;
  static constexpr bool single = true;
  vector_t<T, L> v;
};
template <class T, int L>
  requires(L > 1 && sizeof(T) * L > sizeof(float) * native_lanes)
struct registers<T, L> {
  using element = T;
  using half = registers<T, L / 2>;
  static constexpr int lanes = L;
  static constexpr bool single = false;
  half lo, hi;
};

// Applies Op::run<T, L>(v...), T and L those of the first operand, register by register.
template <class Op, class R, class A, class... B>
SINTER_INLINE R map(const A& a, const B&... b) {
  if constexpr (R::single) return R{(decltype(R::v))Op::template run<typename A::element, A::lanes>(a.v, b.v...)};
  else return R{map<Op, typename R::half>(a.lo, b.lo...), map<Op, typename R::half>(a.hi, b.hi...)};
}

template <class R>
SINTER_INLINE R splat(typename R::element x) {
  if constexpr (R::single) {
    using P = decltype(R::v);
    return R{x - P{}};
  } else {
    const auto half = splat<typename R::half>(x);
    return R{half, half};
  }
}

template <class R>
SINTER_INLINE R load(const void* from) {
  R r;
  std::memcpy(&r, from, sizeof(R));
  return r;
}

// Writes past the caches where the target can; `to` is aligned to a register.
template <class R>
SINTER_INLINE void stream(void* to, const R& r) {
  if constexpr (!R::single) {
    stream(to, r.lo);
    stream(static_cast<char*>(to) + sizeof(r.lo), r.hi);
  } else {
#ifdef EIGEN_VECTORIZE_AVX512
    if constexpr (sizeof(R) == 64) return _mm512_stream_si512(static_cast<__m512i*>(to), (__m512i)r.v);
#endif
#ifdef EIGEN_VECTORIZE_AVX
    if constexpr (sizeof(R) == 32) return _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)r.v);
#endif
#ifdef EIGEN_VECTORIZE_SSE
    if constexpr (sizeof(R) == 16) return _mm_stream_si128(static_cast<__m128i*>(to), (__m128i)r.v);
#endif
    std::memcpy(to, &r, sizeof(R));
  }
}

}  // namespace detail

template <class T, int L = native_lanes>
struct simd {
  using element = T;
  using registers = detail::registers<detail::lane_t<T>, L>;
  static constexpr int lanes = L;
  // What load_aligned, store_aligned and stream ask of the pointer.
  static constexpr int alignment = alignof(registers);
  // float or double, in one register.
  static constexpr bool is_real_register = real<T> && registers::single;

  registers r;

  simd() = default;
  SINTER_INLINE explicit simd(registers x) : r(x) {}
  // c, converted to T, in every lane.
  template <arithmetic C>
  SINTER_INLINE explicit simd(C c) : r(detail::splat<registers>(static_cast<detail::lane_t<T>>(static_cast<T>(c)))) {}

  SINTER_INLINE static simd load(const T* from) { return simd(detail::load<registers>(from)); }
  SINTER_INLINE static simd load_aligned(const T* from) {
    return simd(detail::load<registers>(__builtin_assume_aligned(from, alignment)));
  }
  // The first n elements (0 <= n <= L), zero in the other lanes; reads nothing past them.
  SINTER_INLINE static simd load_partial(const T* from, int n) {
    alignas(alignment) T lane[std::size_t{L}] = {};
    std::memcpy(lane, from, static_cast<std::size_t>(n) * sizeof(T));
    return load_aligned(lane);
  }

  SINTER_INLINE void store(T* to) const { std::memcpy(to, &r, sizeof(T) * L); }
  SINTER_INLINE void store_aligned(T* to) const {
    std::memcpy(__builtin_assume_aligned(to, alignment), &r, sizeof(T) * L);
  }
  SINTER_INLINE void stream(T* to) const { detail::stream(to, r); }
  SINTER_INLINE void store_partial(T* to, int n) const {
    alignas(alignment) T lane[std::size_t{L}];
    store_aligned(lane);
    std::memcpy(to, lane, static_cast<std::size_t>(n) * sizeof(T));
  }

  SINTER_INLINE T operator[](int lane) const {
    T all[std::size_t{L}];
    store(all);
    return all[lane];
  }
};

// What comparing simd<T, L> gives: each lane all ones or zero, as wide as T.
template <class T, int L = native_lanes>
struct mask {
  using registers = detail::registers<detail::mask_lane_t<T>, L>;
  static constexpr int lanes = L;

  registers r;

  mask() = default;
  SINTER_INLINE explicit mask(registers x) : r(x) {}
  SINTER_INLINE explicit mask(bool b) : r(detail::splat<registers>(static_cast<detail::mask_lane_t<T>>(-int(b)))) {}

  SINTER_INLINE static mask load(const bool* from);
  SINTER_INLINE void store(bool* to) const;
  SINTER_INLINE bool operator[](int lane) const {
    detail::mask_lane_t<T> all[std::size_t{L}];
    std::memcpy(all, &r, sizeof(all));
    return all[lane] != 0;
  }
};

}  // namespace sinter::math

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
