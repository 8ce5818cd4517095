// sinter/math/scalar.hpp: the words for scalars, on the host and (under a CUDA compiler) in kernels.
#pragma once

#include <cmath>
#include <limits>

#include "sinter/math/vocabulary.hpp"

namespace sinter::math {

#define SINTER_STD_REAL(word) \
  template <real T>           \
  SINTER_WORD T word(T x) {   \
    return std::word(x);      \
  }
SINTER_STD_REAL(exp)
SINTER_STD_REAL(exp2)
SINTER_STD_REAL(expm1)
SINTER_STD_REAL(log)
SINTER_STD_REAL(log2)
SINTER_STD_REAL(log10)
SINTER_STD_REAL(log1p)
SINTER_STD_REAL(sqrt)
SINTER_STD_REAL(cbrt)
SINTER_STD_REAL(sin)
SINTER_STD_REAL(cos)
SINTER_STD_REAL(tan)
SINTER_STD_REAL(asin)
SINTER_STD_REAL(acos)
SINTER_STD_REAL(atan)
SINTER_STD_REAL(sinh)
SINTER_STD_REAL(cosh)
SINTER_STD_REAL(tanh)
SINTER_STD_REAL(erf)
SINTER_STD_REAL(erfc)
#undef SINTER_STD_REAL

/// 1 / (1 + e^-x)
template <real T>
SINTER_WORD T sigmoid(T x) {
  const T e = std::exp(-std::fabs(x));  // at most 1: no overflow on either side
  return (x < 0 ? e : T(1)) / (1 + e);
}

template <real T>
SINTER_WORD T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}

// On integers the rounding words are the identity.
#define SINTER_STD_ROUND(word, function)            \
  template <arithmetic T>                           \
  SINTER_WORD T word(T x) {                         \
    if constexpr (real<T>) return std::function(x); \
    else return x;                                  \
  }
SINTER_STD_ROUND(floor, floor)
SINTER_STD_ROUND(ceil, ceil)
SINTER_STD_ROUND(round, nearbyint)
SINTER_STD_ROUND(trunc, trunc)
#undef SINTER_STD_ROUND

namespace detail {

// Integer arithmetic that wraps where the language leaves overflow undefined.
template <class T>
using wrapping_t = std::conditional_t<(sizeof(T) < sizeof(unsigned)), unsigned,
                                      std::make_unsigned_t<std::conditional_t<integer<T>, T, int>>>;

template <arithmetic T>
SINTER_WORD T wrap_neg(T x) {
  if constexpr (integer<T>) return static_cast<T>(wrapping_t<T>(0) - static_cast<wrapping_t<T>>(x));
  else return static_cast<T>(-x);
}

template <arithmetic T>
SINTER_WORD T wrap_mul(T a, T b) {
  if constexpr (integer<T>) return static_cast<T>(static_cast<wrapping_t<T>>(a) * static_cast<wrapping_t<T>>(b));
  else return static_cast<T>(a * b);
}

template <arithmetic T>
SINTER_WORD T wrap_add(T a, T b) {
  if constexpr (integer<T>) return static_cast<T>(static_cast<wrapping_t<T>>(a) + static_cast<wrapping_t<T>>(b));
  else return static_cast<T>(a + b);
}

}  // namespace detail

template <arithmetic T>
SINTER_WORD T neg(T x) {
  return detail::wrap_neg(x);
}

template <arithmetic T>
SINTER_WORD T abs(T x) {
  if constexpr (real<T>) return std::fabs(x);
  else if constexpr (std::is_signed_v<T>) return x < 0 ? detail::wrap_neg(x) : x;
  else return x;
}

template <arithmetic T>
SINTER_WORD bool isnan([[maybe_unused]] T x) {
  if constexpr (real<T>) return x != x;
  else return false;
}

template <arithmetic T>
SINTER_WORD bool isinf([[maybe_unused]] T x) {
  if constexpr (real<T>) return std::fabs(x) == std::numeric_limits<T>::infinity();
  else return false;
}

template <arithmetic T>
SINTER_WORD bool isfinite([[maybe_unused]] T x) {
  if constexpr (real<T>) return std::fabs(x) <= std::numeric_limits<T>::max();
  else return true;
}

template <arithmetic T>
SINTER_WORD T sign(T x) {
  if constexpr (real<T>) return x != x ? x : static_cast<T>((x > T(0)) - (x < T(0)));
  else if constexpr (std::is_signed_v<T>) return static_cast<T>((x > T(0)) - (x < T(0)));
  else return static_cast<T>(x != T(0));
}

template <arithmetic T>
SINTER_WORD T min(T a, T b) {
  return (a < b || isnan(a)) ? a : b;
}

template <arithmetic T>
SINTER_WORD T max(T a, T b) {
  return (a > b || isnan(a)) ? a : b;
}

template <arithmetic T>
SINTER_WORD T fma(T a, T b, T c) {
#if defined(__FMA__) || defined(__CUDA_ARCH__) || defined(__ARM_FEATURE_FMA)
  if constexpr (real<T>) return std::fma(a, b, c);
#endif
  return detail::wrap_add(detail::wrap_mul(a, b), c);
}

template <arithmetic T>
SINTER_WORD T divide(T a, T b) {
  if constexpr (real<T>) {
    return a / b;
  } else if constexpr (std::is_same_v<T, bool>) {
    return a && b;
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return detail::wrap_neg(a);
    return static_cast<T>(a / b);
  }
}

template <arithmetic T>
SINTER_WORD T reciprocal(T x) {
  return divide(T(1), x);
}

template <arithmetic T>
SINTER_WORD T fmod(T a, T b) {
  if constexpr (real<T>) {
    return std::fmod(a, b);
  } else {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>)
      if (b == -1) return 0;
    return static_cast<T>(a % b);
  }
}

template <arithmetic T>
SINTER_WORD T remainder(T a, T b) {
  const T r = fmod(a, b);
  if constexpr (real<T>) {
    if (r == T(0)) return std::copysign(T(0), b);
    return (r < T(0)) != (b < T(0)) ? r + b : r;
  } else if constexpr (std::is_signed_v<T>) {
    return (r != 0 && (r < 0) != (b < 0)) ? static_cast<T>(r + b) : r;
  } else {
    return r;
  }
}

// Integers: by squaring, wrapping; a negative exponent gives the truncated value (0 unless a is 1 or -1).
template <arithmetic T>
SINTER_WORD T pow(T a, T b) {
  if constexpr (real<T>) {
    return std::pow(a, b);
  } else if constexpr (std::is_same_v<T, bool>) {
    return a || !b;
  } else {
    if constexpr (std::is_signed_v<T>)
      if (b < 0) return a == 1 ? T(1) : a == -1 ? static_cast<T>(b % 2 == 0 ? 1 : -1) : T(0);
    T result = 1;
    for (; b > 0; b = static_cast<T>(b / 2)) {
      if (b % 2 != 0) result = detail::wrap_mul(result, a);
      a = detail::wrap_mul(a, a);
    }
    return result;
  }
}

// The magnitude of x with the sign of s.
template <real T>
SINTER_WORD T copysign(T x, T s) {
  return std::copysign(x, s);
}

// a shifted by the constant N; a right shift of a signed number keeps the sign.
template <int N, integer T>
SINTER_WORD T shift_left(T a) {
  return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) << N);
}
template <int N, integer T>
SINTER_WORD T shift_right(T a) {
  return static_cast<T>(a >> N);
}

template <arithmetic T>
SINTER_WORD T select(bool m, T a, T b) {
  return m ? a : b;
}

template <arithmetic A, arithmetic B>
SINTER_WORD bool logical_and(A a, B b) {
  return a != A(0) && b != B(0);
}
template <arithmetic A, arithmetic B>
SINTER_WORD bool logical_or(A a, B b) {
  return a != A(0) || b != B(0);
}
template <arithmetic A, arithmetic B>
SINTER_WORD bool logical_xor(A a, B b) {
  return (a != A(0)) != (b != B(0));
}
template <arithmetic A>
SINTER_WORD bool logical_not(A a) {
  return a == A(0);
}
SINTER_WORD bool any(bool a) { return a; }
SINTER_WORD bool all(bool a) { return a; }

template <class To, arithmetic From>
SINTER_WORD To cast(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (real<From> && integer<To>) {
    // 2^digits, one above the largest To, is exact in From; To's least is exact too.
    constexpr From above = From(std::numeric_limits<To>::max() / 2 + 1) * From(2);
    if (x >= above) return std::numeric_limits<To>::max();
    if (x <= From(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
    return x != x ? To(0) : static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class To, arithmetic From>
  requires(sizeof(To) == sizeof(From))
SINTER_WORD To bit_cast(From x) {
  return __builtin_bit_cast(To, x);
}

template <narrow_element T>
SINTER_WORD float rounded(float x) {
  return T(x);
}

template <arithmetic T>
SINTER_WORD T hsum(T x) {
  return x;
}
template <arithmetic T>
SINTER_WORD T hprod(T x) {
  return x;
}
template <arithmetic T>
SINTER_WORD T hmin(T x) {
  return x;
}
template <arithmetic T>
SINTER_WORD T hmax(T x) {
  return x;
}

// A scalar of another type may stand second.
#define SINTER_LITERAL_SECOND(word)          \
  template <arithmetic T, arithmetic C>      \
    requires(!std::is_same_v<T, C>)          \
  SINTER_WORD T word(T a, C b) {             \
    return math::word(a, static_cast<T>(b)); \
  }
SINTER_LITERAL_SECOND(min)
SINTER_LITERAL_SECOND(max)
SINTER_LITERAL_SECOND(pow)
SINTER_LITERAL_SECOND(divide)
SINTER_LITERAL_SECOND(fmod)
SINTER_LITERAL_SECOND(remainder)
#undef SINTER_LITERAL_SECOND

}  // namespace sinter::math
