// sinter/core/half.hpp: half and bfloat16, numbers of two bytes that are computed with as float.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sinter/config.hpp"

namespace sinter {

namespace detail {

/// The float of IEEE binary16 bits. A subnormal half is 2^-14 times a fraction: with the exponent of 2^-14 in front of
/// its fraction, one subtraction leaves it. F. Giesen, "float->half variants", 2012.
constexpr float half_to_float(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
  }
#endif
  const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits & 0x7c00u, rest = (bits & 0x7fffu) << 13;
  if (exponent == 0x7c00u) return std::bit_cast<float>(sign | rest | 0x7f800000u);
  if (exponent != 0) return std::bit_cast<float>(sign | (rest + (112u << 23)));
  return std::bit_cast<float>(sign |
                              std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest + (113u << 23)) - 0x1p-14f));
}

/// Rounded to nearest, ties to even. Below 2^-14 an addition of 1/2, whose last place is that of a subnormal half,
/// rounds.
constexpr std::uint16_t float_to_half(float x) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    std::uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
  }
#endif
  const std::uint32_t all = std::bit_cast<std::uint32_t>(x), sign = all >> 16 & 0x8000u, size = all & 0x7fffffffu;
  std::uint32_t bits = 0;
  if (size > 0x7f800000u) bits = 0x7e00u | (size >> 13 & 0x3ffu);
  else if (size >= 0x47800000u) bits = 0x7c00u;
  else if (size < 0x38800000u) bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000u;
  else bits = (size - (112u << 23) + 0xfffu + (size >> 13 & 1u)) >> 13;
  return static_cast<std::uint16_t>(sign | bits);
}

/// The upper half of a float.
constexpr float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

constexpr std::uint16_t float_to_bfloat16(float x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if (!std::is_constant_evaluated()) {
    std::uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
  }
#endif
  const std::uint32_t all = std::bit_cast<std::uint32_t>(x);
  if ((all & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(all >> 16 | 0x40u);
  return static_cast<std::uint16_t>((all + 0x7fffu + (all >> 16 & 1u)) >> 16);
}

}  // namespace detail

/// A number of IEEE 754 binary16: 11 significant bits, up to 65504, normal from 2^-14 on and subnormal down to 2^-24.
/// It is for storage: arithmetic converts it to float. Numbers convert to it through float, rounded to nearest, ties to
/// even; infinities and NaNs are kept. Two bytes in memory, the same for every compiler.
///
///     half x = 0.1f;          // 0.0999755859375
///     float y = x * x;
struct half {
  half() = default;
  template <class N>
    requires std::is_arithmetic_v<N>
  constexpr half(N x) : bits_(detail::float_to_half(static_cast<float>(x))) {}  // NOLINT: implicit on purpose
  constexpr operator float() const { return detail::half_to_float(bits_); }     // NOLINT

  static constexpr half from_bits(std::uint16_t bits) { return std::bit_cast<half>(bits); }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  std::uint16_t bits_;
};

/// The upper half of a float: 8 significant bits and float's range. Everything else is as with `half`. S. Wang and
/// P. Kanwar, "BFloat16: the secret to high performance on Cloud TPUs", 2019.
///
///     bfloat16 x = 0.1f;      // 0.10009765625
struct bfloat16 {
  bfloat16() = default;
  template <class N>
    requires std::is_arithmetic_v<N>
  constexpr bfloat16(N x) : bits_(detail::float_to_bfloat16(static_cast<float>(x))) {}  // NOLINT: implicit on purpose
  constexpr operator float() const { return detail::bfloat16_to_float(bits_); }         // NOLINT

  static constexpr bfloat16 from_bits(std::uint16_t bits) { return std::bit_cast<bfloat16>(bits); }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  std::uint16_t bits_;
};

static_assert(sizeof(half) == 2 && std::is_trivially_copyable_v<half> && std::is_trivial_v<half>);
static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16> && std::is_trivial_v<bfloat16>);

namespace detail {

/// std::numeric_limits of a floating-point number of two bytes with this many explicit bits of fraction; a digit of
/// base 2 is 0.30103 of one of base 10.
template <class T, int Fraction>
struct limits_of_two_bytes : std::numeric_limits<float> {
  static constexpr int digits = Fraction + 1, digits10 = Fraction * 30103 / 100000,
                       max_digits10 = 2 + digits * 30103 / 100000;
  static constexpr int max_exponent = 1 << (14 - Fraction), max_exponent10 = max_exponent * 30103 / 100000;
  static constexpr int min_exponent = 3 - max_exponent, min_exponent10 = (min_exponent - 1) * 30103 / 100000;
  static constexpr std::uint16_t exponent_bits = 0x8000u - (1u << Fraction);

  static constexpr T infinity() { return T::from_bits(exponent_bits); }
  static constexpr T signaling_NaN() { return T::from_bits(exponent_bits | 1u << (Fraction - 2)); }
  static constexpr T quiet_NaN() { return T::from_bits(exponent_bits | 1u << (Fraction - 1)); }
  static constexpr T max() { return T::from_bits(exponent_bits - 1u); }
  static constexpr T lowest() { return T::from_bits(0x8000u | (exponent_bits - 1u)); }
  static constexpr T min() { return T::from_bits(1u << Fraction); }
  static constexpr T denorm_min() { return T::from_bits(1); }
  static constexpr T round_error() { return T(0.5f); }
  static constexpr T epsilon() { return T(1.f / static_cast<float>(1u << Fraction)); }
};

}  // namespace detail
}  // namespace sinter

template <>
struct std::numeric_limits<sinter::half> : sinter::detail::limits_of_two_bytes<sinter::half, 10> {};
template <>
struct std::numeric_limits<sinter::bfloat16> : sinter::detail::limits_of_two_bytes<sinter::bfloat16, 7> {};
