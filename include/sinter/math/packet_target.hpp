// sinter/math/packet_target.hpp: the few lane functions that are one instruction on some targets.
#pragma once

#include "sinter/math/packet_registers.hpp"

namespace sinter::math::detail {

#ifdef EIGEN_VECTORIZE_SSE4_1
inline constexpr bool has_rounding_instruction = true;
#else
inline constexpr bool has_rounding_instruction = false;
#endif

#ifdef EIGEN_VECTORIZE_AVX512
// The zero-masking forms, with a full mask, are the same instructions; g++ 12 warns of the unmasked ones' undefined
// source.
#define SINTER_AVX512(name, ps, pd)                           \
  SINTER_INLINE __m512 avx512_##name(__m512 a) { return ps; } \
  SINTER_INLINE __m512d avx512_##name(__m512d a) { return pd; }
#define SINTER_AVX512_BINARY(name)                                                                          \
  SINTER_INLINE __m512 avx512_##name(__m512 a, __m512 b) { return _mm512_maskz_##name##_ps(0xffff, a, b); } \
  SINTER_INLINE __m512d avx512_##name(__m512d a, __m512d b) { return _mm512_maskz_##name##_pd(0xff, a, b); }
SINTER_AVX512(sqrt, _mm512_maskz_sqrt_ps(0xffff, a), _mm512_maskz_sqrt_pd(0xff, a))
SINTER_AVX512(round, _mm512_maskz_roundscale_ps(0xffff, a, 8), _mm512_maskz_roundscale_pd(0xff, a, 8))
SINTER_AVX512(floor, _mm512_maskz_roundscale_ps(0xffff, a, 9), _mm512_maskz_roundscale_pd(0xff, a, 9))
SINTER_AVX512(ceil, _mm512_maskz_roundscale_ps(0xffff, a, 10), _mm512_maskz_roundscale_pd(0xff, a, 10))
SINTER_AVX512(trunc, _mm512_maskz_roundscale_ps(0xffff, a, 11), _mm512_maskz_roundscale_pd(0xff, a, 11))
SINTER_AVX512_BINARY(min)
SINTER_AVX512_BINARY(max)
SINTER_AVX512_BINARY(scalef)
#undef SINTER_AVX512
#undef SINTER_AVX512_BINARY
#endif

template <class T, int L>
SINTER_INLINE constexpr bool fills_avx512() {
#ifdef EIGEN_VECTORIZE_AVX512
  return real<T> && sizeof(T) * L == 64;
#else
  return false;
#endif
}

#ifdef EIGEN_VECTORIZE_AVX512
#define SINTER_IF_AVX512(call) \
  if constexpr (fills_avx512<T, L>()) return call;
#else
#define SINTER_IF_AVX512(call)
#endif

#define SINTER_LANE_ROUND(name, eigen, word, avx512)                   \
  struct name {                                                        \
    template <class T, int L>                                          \
    SINTER_INLINE static vector_t<T, L> run(const vector_t<T, L>& a) { \
      SINTER_IF_AVX512(avx512(a))                                      \
      if constexpr (has_eigen_packet<T, L>) {                          \
        return Eigen::internal::eigen<vector_t<T, L>>(a);              \
      } else {                                                         \
        vector_t<T, L> result = a;                                     \
        for (int i = 0; i < L; ++i) result[i] = math::word(T(a[i]));   \
        return result;                                                 \
      }                                                                \
    }                                                                  \
  };
SINTER_LANE_ROUND(lane_floor, pfloor, floor, avx512_floor)
SINTER_LANE_ROUND(lane_ceil, pceil, ceil, avx512_ceil)
SINTER_LANE_ROUND(lane_round, print, round, avx512_round)
#undef SINTER_LANE_ROUND

// Where a or b is NaN, the result is a on x86, and NaN on other targets. The caller puts in NaN where b is NaN, which
// costs nothing where b is a constant.
#define SINTER_LANE_EXTREME(name, eigen, op, avx512)                                             \
  struct name {                                                                                  \
    template <class T, int L>                                                                    \
    SINTER_INLINE static vector_t<T, L> run(const vector_t<T, L>& a, const vector_t<T, L>& b) {  \
      SINTER_IF_AVX512(avx512(b, a))                                                             \
      if constexpr (has_eigen_packet<T, L>) return Eigen::internal::eigen<vector_t<T, L>>(a, b); \
      else return b op a ? b : a;                                                                \
    }                                                                                            \
  };
SINTER_LANE_EXTREME(lane_min, pmin, <, avx512_min)
SINTER_LANE_EXTREME(lane_max, pmax, >, avx512_max)
#undef SINTER_LANE_EXTREME

struct lane_fma {
  template <class T, int L>
  SINTER_INLINE static vector_t<T, L> run(const vector_t<T, L>& a, const vector_t<T, L>& b, const vector_t<T, L>& c) {
#ifdef EIGEN_VECTORIZE_FMA  // Eigen's pmadd is inline assembly under clang
    constexpr bool is_float = std::is_same_v<T, float>;
    if constexpr (sizeof(a) == 32 && is_float) return _mm256_fmadd_ps(a, b, c);
    if constexpr (sizeof(a) == 32 && !is_float) return _mm256_fmadd_pd(a, b, c);
#endif
    if constexpr (has_eigen_packet<T, L>) return Eigen::internal::pmadd<vector_t<T, L>>(a, b, c);
    else return a * b + c;
  }
};

// Eigen's psqrt is an approximation under EIGEN_FAST_MATH, its default; the instruction is correctly rounded.
struct lane_sqrt {
  template <class T, int L>
  SINTER_INLINE static vector_t<T, L> run(const vector_t<T, L>& a) {
    [[maybe_unused]] constexpr bool is_float = std::is_same_v<T, float>;
    SINTER_IF_AVX512(avx512_sqrt(a))
#ifdef EIGEN_VECTORIZE_AVX
    if constexpr (sizeof(a) == 32 && is_float) return _mm256_sqrt_ps(a);
    if constexpr (sizeof(a) == 32 && !is_float) return _mm256_sqrt_pd(a);
#endif
#ifdef EIGEN_VECTORIZE_SSE
    if constexpr (sizeof(a) == 16 && is_float) return _mm_sqrt_ps(a);
    if constexpr (sizeof(a) == 16 && !is_float) return _mm_sqrt_pd(a);
#endif
    vector_t<T, L> result = a;
    for (int i = 0; i < L; ++i) result[i] = std::sqrt(a[i]);
    return result;
  }
};

#ifdef EIGEN_VECTORIZE_AVX512
// a 2^n, n integral.
struct lane_scale {
  template <class T, int L>
  SINTER_INLINE static vector_t<T, L> run(const vector_t<T, L>& a, const vector_t<T, L>& n) {
    return avx512_scalef(a, n);
  }
};
#endif
#undef SINTER_IF_AVX512

}  // namespace sinter::math::detail
