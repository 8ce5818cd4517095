// sinter/math/packet_cast.hpp: conversion between element types, and between masks of different width.
#pragma once

#include "sinter/math/packet_registers.hpp"

namespace sinter::math {

namespace detail {

#ifdef __CUDACC__  // nvcc's front end does not expand a pack in a builtin's arguments
template <class T, int L>
struct two_halves {
  vector_t<T, L> lo, hi;
};
template <int First, int N, class T, int L>
SINTER_INLINE registers<T, N> part(const registers<T, L>& r) {
  two_halves<T, N> halves;
  std::memcpy(&halves, &r, sizeof(r));
  return registers<T, N>{First == 0 ? halves.lo : halves.hi};
}
template <class T, int L>
SINTER_INLINE registers<T, 2 * L> join(const registers<T, L>& lo, const registers<T, L>& hi) {
  const two_halves<T, L> halves{lo.v, hi.v};
  registers<T, 2 * L> r;
  std::memcpy(&r, &halves, sizeof(r));
  return r;
}
#else
template <int First, class T, int L, int... I>
SINTER_INLINE auto shuffle_part(const registers<T, L>& r, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(r.v, r.v, (First + I)...);
}
template <int First, int N, class T, int L>
SINTER_INLINE registers<T, N> part(const registers<T, L>& r) {
  return registers<T, N>{(vector_t<T, N>)shuffle_part<First>(r, std::make_integer_sequence<int, N>{})};
}
template <class T, int L, int... I>
SINTER_INLINE registers<T, 2 * L> shuffle_join(const registers<T, L>& lo, const registers<T, L>& hi,
                                               std::integer_sequence<int, I...>) {
  return registers<T, 2 * L>{(vector_t<T, 2 * L>)__builtin_shufflevector(lo.v, hi.v, I...)};
}
template <class T, int L>
SINTER_INLINE registers<T, 2 * L> join(const registers<T, L>& lo, const registers<T, L>& hi) {
  return shuffle_join(lo, hi, std::make_integer_sequence<int, 2 * L>{});
}
#endif

template <class T, int L>
SINTER_INLINE registers<T, L / 2> low_half(const registers<T, L>& r) {
  if constexpr (registers<T, L>::single) return part<0, L / 2>(r);
  else return r.lo;
}
template <class T, int L>
SINTER_INLINE registers<T, L / 2> high_half(const registers<T, L>& r) {
  if constexpr (registers<T, L>::single) return part<L / 2, L / 2>(r);
  else return r.hi;
}

#if defined(EIGEN_VECTORIZE_AVX2)
/// Bytes as integers of 32 bits. g++ 12 takes the vector apart for the built-in conversion.
template <class T, int L>
inline constexpr bool widens_at_once = sizeof(T) == 1 && !std::is_same_v<T, bool> &&
#if defined(EIGEN_VECTORIZE_AVX512)
                                       (L == 16 || L == 8);
#else
                                       L == 8;
#endif
template <class R, class T, int L>
SINTER_INLINE R widen_bytes(const registers<T, L>& x) {
  constexpr bool is_signed = std::is_signed_v<T>;
#if defined(EIGEN_VECTORIZE_AVX512)
  if constexpr (L == 16) {
    const auto all = (__m128i)x.v;
    constexpr __mmask16 every = 0xffff;  // without a mask g++ 12 warns that what is not used has no value
    return R{
        (decltype(R::v))(is_signed ? _mm512_maskz_cvtepi8_epi32(every, all) : _mm512_maskz_cvtepu8_epi32(every, all))};
  }
#endif
  if constexpr (L == 8) {
    std::int64_t word = 0;
    std::memcpy(&word, &x, sizeof word);
    const __m128i low = _mm_cvtsi64_si128(word);
    return R{(decltype(R::v))(is_signed ? _mm256_cvtepi8_epi32(low) : _mm256_cvtepu8_epi32(low))};
  }
}
#endif

// Value conversion, the value being in the target's range; masks convert as the signed integers they are.
template <class R, class T, int L>
SINTER_INLINE R convert(const registers<T, L>& x) {
  using To = typename R::element;
  if constexpr (std::is_same_v<To, T>) {
    return x;
  } else if constexpr (real<T> && !real<To> && sizeof(To) < 4) {
    return convert<R>(convert<registers<std::int32_t, L>>(x));
  } else if constexpr (real<To> && !real<T> && sizeof(T) < 4) {
    return convert<R>(convert<registers<std::int32_t, L>>(x));
#if defined(EIGEN_VECTORIZE_AVX2)
  } else if constexpr (std::is_same_v<To, std::int32_t> && R::single && registers<T, L>::single &&
                       widens_at_once<T, L>) {
    return widen_bytes<R>(x);
#endif
  } else if constexpr (R::single && registers<T, L>::single) {
    return R{(decltype(R::v))__builtin_convertvector(x.v, decltype(R::v))};
  } else {
    const auto lo = convert<registers<To, L / 2>>(low_half(x));
    const auto hi = convert<registers<To, L / 2>>(high_half(x));
    if constexpr (R::single) return join(lo, hi);
    else return R{lo, hi};
  }
}

template <class To>
struct lane_reinterpret {
  template <class T, int L>
  SINTER_INLINE static auto run(const vector_t<T, L>& a) {
    return (vector_t<To, L>)a;
  }
};

// Whether any lane of a mask is set.
template <class T, int L>
SINTER_INLINE bool any_bit(const registers<T, L>& r) {
  constexpr int bytes = sizeof(T) * L;
  if constexpr (!registers<T, L>::single) {
    return any_bit(r.lo) || any_bit(r.hi);
  } else {
#ifdef EIGEN_VECTORIZE_AVX512
    if constexpr (bytes == 64) return _mm512_test_epi64_mask((__m512i)r.v, (__m512i)r.v) != 0;
#endif
#ifdef EIGEN_VECTORIZE_AVX
    if constexpr (bytes == 32) return _mm256_testz_si256((__m256i)r.v, (__m256i)r.v) == 0;
#endif
#ifdef EIGEN_VECTORIZE_SSE
    if constexpr (bytes == 16) return _mm_movemask_epi8((__m128i)r.v) != 0;
#endif
    if constexpr (bytes > 8) {
      return any_bit(low_half(r)) || any_bit(high_half(r));
    } else {
      std::uint64_t word = 0;
      std::memcpy(&word, &r, bytes);
      return word != 0;
    }
  }
}

}  // namespace detail

template <class To, class From, int L>
SINTER_INLINE simd<To, L> bit_cast(simd<From, L> x) {
  using Lane = detail::lane_t<To>;
  static_assert(sizeof(To) == sizeof(From), "sinter::math::bit_cast: element types of different size");
  return simd<To, L>(detail::map<detail::lane_reinterpret<Lane>, typename simd<To, L>::registers>(x.r));
}

template <class To, class From, int L>
SINTER_INLINE simd<To, L> cast(mask<From, L> m) {
  const auto byte = detail::convert<detail::registers<std::int8_t, L>>(m.r);
  const auto flag = bit_cast<bool>(simd<std::int8_t, L>(byte) & simd<std::int8_t, L>(1));
  if constexpr (std::is_same_v<To, bool>) return flag;
  else return cast<To>(flag);
}

template <class To, class From, int L>
SINTER_INLINE simd<To, L> cast(simd<From, L> x) {
  using R = typename simd<To, L>::registers;
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<To, bool>) {
    return cast<bool>(x != simd<From, L>(0));
  } else if constexpr (real<From> && integer<To>) {
    using limits = std::numeric_limits<To>;
    constexpr From above = From(limits::max() / 2 + 1) * From(2);
    constexpr From least = From(limits::min());
    const auto too_high = x >= above;
    const auto too_low = x <= least;
    const auto inside = select(logical_and(x<above, x> least), x, simd<From, L>(0));
    const simd<To, L> value(detail::convert<R>(inside.r));
    return select(too_high, simd<To, L>(limits::max()), select(too_low, simd<To, L>(limits::min()), value));
  } else {
    return simd<To, L>(detail::convert<R>(x.r));
  }
}

namespace detail {

// Any condition as a mask, as wide as T's.
template <class T, class U, int L>
SINTER_INLINE mask<T, L> as_mask(const mask<U, L>& m) {
  return mask<T, L>(convert<typename mask<T, L>::registers>(m.r));
}
template <class T, class U, int L>
SINTER_INLINE mask<T, L> as_mask(const simd<U, L>& x) {
  if constexpr (std::is_same_v<U, bool>) {
    // 0 or 1 becomes 0 or -1.
    const auto byte = bit_cast<std::int8_t>(x);
    return as_mask<T>(mask<std::int8_t, L>((simd<std::int8_t, L>(0) - byte).r));
  } else {
    return as_mask<T>(x != simd<U, L>(0));
  }
}
template <class V>
struct condition_element;
template <class T, int L>
struct condition_element<simd<T, L>> {
  using type = T;
};
template <class T, int L>
struct condition_element<mask<T, L>> {
  using type = T;
};
template <class V>
using condition_element_t = typename condition_element<V>::type;

}  // namespace detail

template <class T, int L>
SINTER_INLINE mask<T, L> mask<T, L>::load(const bool* from) {
  return detail::as_mask<T>(simd<bool, L>::load(from));
}
template <class T, int L>
SINTER_INLINE void mask<T, L>::store(bool* to) const {
  cast<bool>(*this).store(to);
}

}  // namespace sinter::math
