// sinter/math/packet_functions.hpp: exponentials, logarithms, hyperbolic and error functions of simd.
#pragma once

#include "sinter/math/packet_masks.hpp"
#include "sinter/math/packet_operators.hpp"
#include "sinter/math/packet_target.hpp"

// float: minimax polynomials fitted for these headers (Remez exchange in 60 digits; the script stands beside the
// tests); the bound at each is its relative error before rounding. They hold without a fused multiply-add too. Other
// element types go lane by lane to the scalar word.
namespace sinter::math {

namespace detail {

// c0 + c1 x + c2 x^2 + ...
template <class V, class... C>
SINTER_INLINE V polynomial(V x, double c0, C... rest) {
  if constexpr (sizeof...(C) == 0) return constant<V>(c0);
  else return fma(polynomial(x, rest...), x, constant<V>(c0));
}

template <int L>
using floats = simd<float, L>;
template <int L>
using ints = simd<std::int32_t, L>;

// 1.5 2^23: adding it rounds to an integer, found in the low bits of the sum.
inline constexpr float rounder = 12582912.f;
inline constexpr float log2_e = 1.44269504088896341f;
// ln 2 = high + low, high of 14 bits: n high is exact for |n| < 2^10.
inline constexpr float ln2_high = 0.693115234375f;
inline constexpr float ln2_low = 3.19461832987e-05f;

// 2^n where `shifted` = rounder + 127 + n, n in [-126, 127].
template <int L>
SINTER_INLINE floats<L> power_of_two(floats<L> shifted) {
  return bit_cast<float>(shift_left<23>(bit_cast<std::int32_t>(shifted)));
}

// a 2^n with gradual underflow and overflow, where `shifted` = rounder + n, n in [-252, 254].
template <int L>
SINTER_INLINE floats<L> scale(floats<L> a, [[maybe_unused]] floats<L> shifted) {
#ifdef EIGEN_VECTORIZE_AVX512
  if constexpr (fills_avx512<float, L>()) return lanewise<lane_scale>(a, shifted - rounder);
#endif
  const auto bits = bit_cast<std::int32_t>(shifted);
  const auto n = bits - bit_cast<std::int32_t>(floats<L>(rounder));
  const auto half = shift_right<1>(n);
  const auto first = bit_cast<float>(shift_left<23>(half + std::int32_t(127)));
  const auto second = bit_cast<float>(shift_left<23>(n - half + std::int32_t(127)));
  return a * first * second;
}

// x = n ln 2 + r, |r| <= ln 2 / 2; x in [-150, 130]. shifted = rounder + Add + n.
template <int L>
struct reduced {
  floats<L> shifted, r;
};
template <int Add = 0, int L>
SINTER_INLINE reduced<L> reduce_by_ln2(floats<L> x) {
  const auto shifted = fma(x, floats<L>(log2_e), floats<L>(rounder + Add));
  const auto n = shifted - (rounder + Add);
  return {shifted, fma(n, floats<L>(-ln2_low), fma(n, floats<L>(-ln2_high), x))};
}

// e^r - 1 for |r| <= ln 2 / 2, relative error 2^-31.8.
template <int L>
SINTER_INLINE floats<L> expm1_small(floats<L> r) {
  const auto q = polynomial(r, 0x1.0p-1, 0x1.555554p-3, 0x1.5554aap-5, 0x1.11118ep-7, 0x1.6d78d8p-10, 0x1.a0332ep-13);
  return fma(q, r * r, r);
}

// e^r for |r| <= ln 2 / 2, 2^-28.2.
template <int L>
SINTER_INLINE floats<L> exp_small(floats<L> r) {
  const auto q = polynomial(r, 0x1.fffffcp-2, 0x1.55548ap-3, 0x1.555916p-5, 0x1.123fc6p-7, 0x1.6a1a70p-10);
  return fma(q, r * r, r) + 1.f;
}

template <int L>
SINTER_INLINE floats<L> exp_float(floats<L> x) {
  const auto [shifted, r] = reduce_by_ln2(min(max(x, -105.f), 90.f));
  return scale(exp_small(r), shifted);
}

template <int L>
SINTER_INLINE floats<L> exp2_float(floats<L> x) {
  const auto clamped = min(max(x, -151.f), 129.f);
  const auto shifted = clamped + rounder;
  const auto r = (clamped - (shifted - rounder)) * 0.693147180559945309f;
  return scale(exp_small(r), shifted);
}

template <int L>
SINTER_INLINE floats<L> expm1_float(floats<L> x) {
  const auto [shifted, r] = reduce_by_ln2<126>(min(max(x, -18.f), 89.f));
  const auto half = power_of_two(shifted);  // of 2^n, which may be 2^128
  const auto result = fma(half, expm1_small(r), half - 0.5f);
  return copysign(result + result, x);
}

// 2^-24 / (2^-24 + 2^-24 e^-x): the factor leaves e^-x finite where the result is smallest. Above 18 it rounds to 1.
template <int L>
SINTER_INLINE floats<L> sigmoid_float(floats<L> x) {
  constexpr float shift = rounder + 127 - 24;
  const auto a = min(max(x, -104.f), 18.f);
  const auto shifted = fma(a, floats<L>(-log2_e), floats<L>(shift));
  const auto n = shifted - shift;
  const auto r = fma(n, floats<L>(ln2_low), fma(n, floats<L>(ln2_high), a));  // -a = n ln 2 - r
  const auto e = polynomial(r, 1, -1, 0x1.fffffcp-2, -0x1.55548ap-3, 0x1.555916p-5, -0x1.123fc6p-7, 0x1.6a1a70p-10);
  const floats<L> unit(0x1.0p-24f);
  return unit / fma(power_of_two(shifted), e, unit);
}

// a = |x|, e^2a - 1 = 2 t, tanh a = t / (t + 1): for a > 0 errors of t fade where tanh nears 1. a = n ln 2 / 2 + s;
// (e^2s - 1) / 2 to 2^-26.1. Above 9.02 it rounds to 1.
template <int L>
SINTER_INLINE floats<L> tanh_float(floats<L> x) {
  constexpr float shift = rounder + 127;
  const auto sign = bit_cast<std::int32_t>(x) & ints<L>(std::numeric_limits<std::int32_t>::min());
  const auto a = min(bit_cast<float>(bit_cast<std::int32_t>(x) ^ sign), 9.02f);
  const auto shifted = fma(a, floats<L>(2 * log2_e), floats<L>(shift));
  const auto s = fma(shifted - shift, floats<L>(-0.346573590279972655f), a);
  const auto q = polynomial(s, 0x1.fffffep-1, 0x1.5554aap-1, 0x1.555680p-2, 0x1.122d00p-3, 0x1.6beb2ep-5);
  const auto power = power_of_two(shifted);
  const auto t = fma(power, fma(q, s * s, s), fma(power, floats<L>(0.5f), floats<L>(-0.5f)));
  return bit_cast<float>(bit_cast<std::int32_t>(t / (t + 1.f)) | sign);
}

// ln(1 + f) + e ln 2 for |f| <= 1/3; (ln(1 + f) - f) / f^2 to 2^-27.7 of ln(1 + f).
template <int L>
SINTER_INLINE floats<L> log_of(floats<L> f, floats<L> e) {
  const auto q = polynomial(f, -0x1.0p-1, 0x1.555502p-2, -0x1.fffe84p-3, 0x1.99d1fcp-3, -0x1.55a762p-3, 0x1.1ebdbep-3,
                            -0x1.f25c48p-4, 0x1.1ed4d0p-3, -0x1.09358ep-3);
  const auto tail = fma(e, floats<L>(ln2_low), q * (f * f));
  return fma(e, floats<L>(ln2_high), tail + f);
}

// For u > 0 normal: the exponent field of 2^e, e such that u 2^-e lies in [2/3, 4/3).
template <int L>
SINTER_INLINE ints<L> exponent_field(floats<L> u) {
  const auto bits = bit_cast<std::int32_t>(u) - bit_cast<std::int32_t>(floats<L>(0x1.555556p-1f));
  return bits & ints<L>(std::int32_t(0xff800000u));
}

// `finite` where 0 < u < inf; -inf at 0, NaN below, and u itself (inf or NaN) elsewhere.
template <int L>
SINTER_INLINE floats<L> log_special(floats<L> u, floats<L> finite) {
  using limits = std::numeric_limits<float>;
  const auto upper = select(u < limits::infinity(), finite, u);
  const auto positive = select(u < 0.f, floats<L>(limits::quiet_NaN()), upper);
  return select(u == 0.f, floats<L>(-limits::infinity()), positive);
}

// f and e of x = (1 + f) 2^e.
template <int L>
struct significand {
  floats<L> f, e;
};
template <int L>
SINTER_INLINE significand<L> split(floats<L> x) {
  const auto tiny = x < std::numeric_limits<float>::min();
  const auto normal = select(tiny, x * 8388608.f, x);
  const auto field = exponent_field(normal);
  const auto m = bit_cast<float>(bit_cast<std::int32_t>(normal) - field);
  const auto e = cast<float>(shift_right<23>(field)) + select(tiny, floats<L>(-23.f), floats<L>(0.f));
  return {m - 1.f, e};
}

template <int L>
SINTER_INLINE floats<L> log_float(floats<L> x) {
  const auto [f, e] = split(x);
  return log_special(x, log_of(f, e));
}

// log_b x = e log_b 2 + log_b(1 + f).
template <int L>
SINTER_INLINE floats<L> log2_float(floats<L> x) {
  const auto [f, e] = split(x);
  return log_special(x, fma(log_of(f, floats<L>(0.f)), floats<L>(log2_e), e));
}
template <int L>
SINTER_INLINE floats<L> log10_float(floats<L> x) {
  const auto [f, e] = split(x);
  // log10 2 = 0x1.344p-2 + 0x1.3509f8p-18: e times the first is exact.
  const auto fraction = log_of(f, floats<L>(0.f)) * 0.434294481903251828f;
  return log_special(x, fma(e, floats<L>(0x1.344p-2f), fma(e, floats<L>(0x1.3509f8p-18f), fraction)));
}

// 1 + x = (1 + f) 2^e with f = x 2^-e + (2^-e - 1), where e = 0 near 0, so that nothing of x is lost.
template <int L>
SINTER_INLINE floats<L> log1p_float(floats<L> x) {
  const auto u = x + 1.f;
  const auto field = exponent_field(u);
  const auto scaled = bit_cast<float>(bit_cast<std::int32_t>(x) - field);
  const auto four = bit_cast<float>(bit_cast<std::int32_t>(floats<L>(4.f)) - field);
  const auto f = scaled + fma(four, floats<L>(0.25f), floats<L>(-1.f));
  const auto e = cast<float>(shift_right<23>(field));
  return log_special(u, select(x == 0.f, x, log_of(f, e)));
}

// |x| < 1: x + x P(x^2), 2^-29.6; above: 1 - exp(-Q(|x|)), 2^-29.8; from 3.93 on erf rounds to 1.
template <int L>
SINTER_INLINE floats<L> erf_float(floats<L> x) {
  const auto t = min(abs(x), 3.95f);
  const auto z = t * t;
  const auto p = polynomial(z, 0x1.06eba8p-3, -0x1.81273ep-2, 0x1.ce2cf4p-4, -0x1.b7f8dcp-6, 0x1.540416p-8,
                            -0x1.a3ea9ap-11, 0x1.494686p-14);
  const auto q = polynomial(t, 0x1.63e098p-12, 0x1.208978p+0, 0x1.46b92ap-1, 0x1.a65f10p-4, -0x1.65e144p-6,
                            0x1.8284fep-9, -0x1.871f8ap-13);
  const auto [shifted, r] = reduce_by_ln2<127>(-q);
  const auto power = power_of_two(shifted);
  const auto above = 1.f - power * exp_small(r);
  return copysign(select(t < 1.f, fma(t, p, t), above), x);
}

// erfc a = (1 - s) P(s) e^(-a^2) with s = a / (a + 2), 2^-25.5, for a = |x| up to 10.2, where it rounds to 0. a^2 = h +
// l, h of the upper 12 bits of a and exact, so that the exponent loses nothing; |l| < 0.05. erfc(-a) = 2 - erfc a.
template <int L>
SINTER_INLINE floats<L> erfc_float(floats<L> x) {
  const auto a = min(abs(x), 10.2f);
  const auto upper = bit_cast<float>(bit_cast<std::int32_t>(a) & ints<L>(std::int32_t(0xfffff000u)));
  const auto t = 2.f / (a + 2.f);
  const auto p = polynomial(a * t * 0.5f, 0x1.0p+0, -0x1.41baa6p+0, 0x1.f205a6p-2, 0x1.b516eep-3, -0x1.c390f8p-4,
                            -0x1.b03726p-5, -0x1.6f319ep-4, 0x1.e48d02p-4, -0x1.e8af5ep-7, -0x1.7edbacp-7);
  const auto [shifted, r] = reduce_by_ln2(-(upper * upper));
  const auto tail = t * p * scale(exp_small(r - (a - upper) * (a + upper)), shifted);
  return select(x < 0.f, 2.f - tail, tail);
}

}  // namespace detail

#define SINTER_FLOAT_OR_BY_LANE(word)                                          \
  template <class T, int L>                                                    \
  SINTER_INLINE simd<T, L> word(simd<T, L> x) {                                \
    if constexpr (std::is_same_v<T, float>) return detail::word##_float(x);    \
    else return detail::each_lane<T, L>([](T a) { return math::word(a); }, x); \
  }
SINTER_FLOAT_OR_BY_LANE(exp)
SINTER_FLOAT_OR_BY_LANE(exp2)
SINTER_FLOAT_OR_BY_LANE(expm1)
SINTER_FLOAT_OR_BY_LANE(log)
SINTER_FLOAT_OR_BY_LANE(log2)
SINTER_FLOAT_OR_BY_LANE(log10)
SINTER_FLOAT_OR_BY_LANE(log1p)
SINTER_FLOAT_OR_BY_LANE(sigmoid)
SINTER_FLOAT_OR_BY_LANE(tanh)
SINTER_FLOAT_OR_BY_LANE(erf)
SINTER_FLOAT_OR_BY_LANE(erfc)
#undef SINTER_FLOAT_OR_BY_LANE

#define SINTER_BY_LANE(word)                                              \
  template <class T, int L>                                               \
  SINTER_INLINE simd<T, L> word(simd<T, L> x) {                           \
    return detail::each_lane<T, L>([](T a) { return math::word(a); }, x); \
  }
SINTER_BY_LANE(cbrt)
SINTER_BY_LANE(asin)
SINTER_BY_LANE(acos)
SINTER_BY_LANE(atan)
SINTER_BY_LANE(sinh)
SINTER_BY_LANE(cosh)
#undef SINTER_BY_LANE

template <class T, int L>
SINTER_INLINE simd<T, L> pow(simd<T, L> a, simd<T, L> b) {
  return detail::each_lane<T, L>([](T x, T y) { return math::pow(x, y); }, a, b);
}

}  // namespace sinter::math
