// tests/core/half_test.cpp: half and bfloat16 as numbers: every bit pattern, every rounding boundary.
#include <sinter/core.hpp>

#include <cmath>
#include <cstring>
#include <limits>

#include "../catch.hpp"

using sinter::bfloat16;
using sinter::half;

namespace {

/// What 16 bits with this many of fraction stand for; the pattern of infinity as the power of two that comes next.
template <int Fraction>
double decoded(unsigned bits) {
  const int most = 0x7fff >> Fraction, bias = most / 2;
  const int exponent = static_cast<int>(bits >> Fraction) & most;
  const double fraction = bits & ((1u << Fraction) - 1);
  const double size = exponent == 0 ? std::ldexp(fraction, 1 - bias - Fraction)
                                    : std::ldexp(fraction + (1 << Fraction), exponent - bias - Fraction);
  return bits >> 15 != 0 ? -size : size;
}

template <class T, int Fraction>
void check_every_pattern() {
  const unsigned infinity = 0x8000u - (1u << Fraction);
  unsigned wrong = 0;
  for (unsigned bits = 0; bits < 0x10000u; ++bits) {
    const T x = T::from_bits(static_cast<std::uint16_t>(bits));
    const float value = x;
    const unsigned size = bits & 0x7fffu;
    bool right = x.bits() == bits && std::signbit(value) == (bits >= 0x8000u);
    if (size > infinity) right = right && std::isnan(value) && std::isnan(static_cast<float>(T(value)));
    else if (size == infinity) right = right && std::isinf(value) && T(value).bits() == bits;
    else right = right && static_cast<double>(value) == decoded<Fraction>(bits) && T(value).bits() == bits;
    wrong += !right;
  }
  CHECK(wrong == 0);
}

template <class T, int Fraction>
void check_every_boundary() {
  const unsigned infinity = 0x8000u - (1u << Fraction);
  const float inf = std::numeric_limits<float>::infinity();
  unsigned wrong = 0;
  for (unsigned bits = 0; bits < infinity; ++bits) {
    const auto middle = static_cast<float>((decoded<Fraction>(bits) + decoded<Fraction>(bits + 1)) / 2);
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    wrong +=
        T(std::nextafter(middle, 0.f)).bits() != bits || T(-std::nextafter(middle, 0.f)).bits() != (bits | 0x8000u);
    wrong += T(middle).bits() != even || T(-middle).bits() != (even | 0x8000u);
    wrong += T(std::nextafter(middle, inf)).bits() != bits + 1 ||
             T(-std::nextafter(middle, inf)).bits() != ((bits + 1) | 0x8000u);
  }
  CHECK(wrong == 0);
  CHECK(T(std::numeric_limits<float>::max()).bits() == infinity);
  CHECK(T(std::numeric_limits<float>::denorm_min()).bits() == 0);
}

static_assert(half(1.5).bits() == 0x3e00 && bfloat16(-2).bits() == 0xc000);
static_assert(float(half::from_bits(1)) == 0x1p-24f && half(0x1p-25f).bits() == 0 && half(0x1.8p-24f).bits() == 2);
static_assert(std::numeric_limits<half>::max() == 65504 && std::numeric_limits<half>::min() == 0x1p-14f);
static_assert(std::numeric_limits<half>::denorm_min() == 0x1p-24f && std::numeric_limits<half>::epsilon() == 0x1p-10f);
static_assert(std::numeric_limits<half>::digits == 11 && std::numeric_limits<half>::digits10 == 3 &&
              std::numeric_limits<half>::max_digits10 == 5);
static_assert(std::numeric_limits<half>::max_exponent == 16 && std::numeric_limits<half>::min_exponent == -13);
static_assert(std::numeric_limits<bfloat16>::max() == 0x1.fep127f &&
              std::numeric_limits<bfloat16>::epsilon() == 0x1p-7f);
static_assert(std::numeric_limits<bfloat16>::digits10 == 2 && std::numeric_limits<bfloat16>::min_exponent10 == -37);
static_assert(sinter::floating_element<half> && sinter::element<bfloat16> && !sinter::integer_element<half>);
static_assert(std::is_same_v<sinter::compute_type<half>, float> &&
              std::is_same_v<sinter::compute_type<double>, double>);

}  // namespace

TEST_CASE("every half and bfloat16 is a float and comes back from it") {
  check_every_pattern<half, 10>();
  check_every_pattern<bfloat16, 7>();
}

TEST_CASE("floats round to the nearest half or bfloat16, ties to even") {
  check_every_boundary<half, 10>();
  check_every_boundary<bfloat16, 7>();
}

TEST_CASE("half and bfloat16 compute as float") {
  const half a = 2.5f;
  const bfloat16 b = 3;
  CHECK(a * b + 1 == 8.5f);
  CHECK(a < b);
  CHECK(-a == -2.5f);
  CHECK(std::is_same_v<decltype(a * a), float>);
}
