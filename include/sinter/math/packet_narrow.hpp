// sinter/math/packet_narrow.hpp: reading and writing elements of any type as lanes of the type they are computed in.
#pragma once

#include "sinter/core/types.hpp"
#include "sinter/math/packet_cast.hpp"
#include "sinter/math/packet_masks.hpp"
#include "sinter/math/packet_operators.hpp"

namespace sinter::math {

namespace detail {

// The scalar conversions of core/half.hpp in lanes; an instruction where the target has one.

template <int L>
SINTER_INLINE simd<std::int32_t, L> widened_bits(const void* from) {
  return simd<std::int32_t, L>(
      convert<typename simd<std::int32_t, L>::registers>(load<registers<std::int16_t, L>>(from)));
}

template <int L>
SINTER_INLINE simd<std::int16_t, L> low_bits(simd<std::int32_t, L> x) {
  return simd<std::int16_t, L>(convert<typename simd<std::int16_t, L>::registers>(x.r));
}

template <int L>
SINTER_INLINE simd<float, L> from_bfloat16(const void* from) {
  return bit_cast<float>(shift_left<16>(widened_bits<L>(from)));
}

template <int L>
SINTER_INLINE simd<std::int16_t, L> to_bfloat16(simd<float, L> x) {
  using I = simd<std::int32_t, L>;
  const I all = bit_cast<std::int32_t>(x);
  const I rounded = all + I(0x7fff) + (shift_right<16>(all) & I(1));
  return low_bits(shift_right<16>(select(isnan(x), all | I(0x400000), rounded)));
}

template <int L>
SINTER_INLINE simd<float, L> from_half(const void* from) {
#ifdef EIGEN_VECTORIZE_AVX512
  if constexpr (L == 16)
    return simd<float, L>(
        registers<float, L>{_mm512_maskz_cvtph_ps(0xffff, _mm256_loadu_si256(static_cast<const __m256i*>(from)))});
#endif
#if defined(__F16C__) && defined(EIGEN_VECTORIZE_AVX)
  if constexpr (L == 8 && native_lanes >= 8)
    return simd<float, L>(registers<float, L>{_mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(from)))});
#endif
  using I = simd<std::int32_t, L>;
  const I bits = widened_bits<L>(from), sign = bits & I(std::int32_t(0x80000000u));
  const I rest = shift_left<13>(bits & I(0x7fff)), exponent = rest & I(0x7c00 << 13);
  const I normal = rest + select(exponent == I(0x7c00 << 13), I(224 << 23), I(112 << 23));
  const auto tiny = bit_cast<float>(rest + I(113 << 23)) - 0x1p-14f;
  return bit_cast<float>(sign | select(exponent == I(0), bit_cast<std::int32_t>(tiny), normal));
}

template <int L>
SINTER_INLINE simd<std::int16_t, L> to_half(simd<float, L> x) {
#ifdef EIGEN_VECTORIZE_AVX512
  if constexpr (L == 16) {
    simd<std::int16_t, L> y;
    const __m256i bits = _mm512_maskz_cvtps_ph(0xffff, x.r.v, _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(&y, &bits, sizeof bits);
    return y;
  }
#endif
#if defined(__F16C__) && defined(EIGEN_VECTORIZE_AVX)
  if constexpr (L == 8 && native_lanes >= 8) {
    simd<std::int16_t, L> y;
    const __m128i bits = _mm256_cvtps_ph(x.r.v, _MM_FROUND_TO_NEAREST_INT);
    std::memcpy(&y, &bits, sizeof bits);
    return y;
  }
#endif
  using I = simd<std::int32_t, L>;
  const I all = bit_cast<std::int32_t>(x), size = all & I(0x7fffffff);
  const I sign = shift_right<16>(all) & I(0x8000);
  const I tiny = bit_cast<std::int32_t>(bit_cast<float>(size) + 0.5f) - I(0x3f000000);
  const I normal = shift_right<13>(size - I(112 << 23) + I(0xfff) + (shift_right<13>(size) & I(1)));
  const I finite = select(size < I(0x38800000), tiny, select(size < I(0x47800000), normal, I(0x7c00)));
  const I not_a_number = I(0x7e00) | (shift_right<13>(size) & I(0x3ff));
  return low_bits(sign | select(size > I(0x7f800000), not_a_number, finite));
}

template <narrow_element T, int L>
SINTER_INLINE simd<std::int16_t, L> narrowed(simd<float, L> x) {
  if constexpr (std::is_same_v<T, half>) return to_half(x);
  else return to_bfloat16(x);
}

template <narrow_element T, int L>
SINTER_INLINE simd<float, L> widened(const void* from) {
  if constexpr (std::is_same_v<T, half>) return from_half<L>(from);
  else return from_bfloat16<L>(from);
}

}  // namespace detail

// L elements of type T, any element type, as lanes of compute_type<T>; and back, rounded.
template <int L = native_lanes, class T>
SINTER_INLINE simd<compute_type<T>, L> read(const T* from) {
  if constexpr (narrow_element<T>) return detail::widened<T, L>(from);
  else return simd<T, L>::load(from);
}
template <class T, int L>
SINTER_INLINE void write(T* to, simd<compute_type<T>, L> x) {
  if constexpr (narrow_element<T>) {
    const auto bits = detail::narrowed<T>(x);
    std::memcpy(static_cast<void*>(to), &bits.r, sizeof(T) * L);
  } else {
    x.store(to);
  }
}
// Past the caches where the target can; `to` is aligned to what is written.
template <class T, int L>
SINTER_INLINE void write_past_caches(T* to, simd<compute_type<T>, L> x) {
  if constexpr (narrow_element<T>) detail::stream(to, detail::narrowed<T>(x).r);
  else x.stream(to);
}

// x as a T would hold it.
template <narrow_element T, int L>
SINTER_INLINE simd<float, L> rounded(simd<float, L> x) {
  const auto bits = detail::narrowed<T>(x);
  return detail::widened<T, L>(&bits.r);
}

}  // namespace sinter::math
