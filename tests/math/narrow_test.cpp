// tests/math/narrow_test.cpp: half and bfloat16 in vectors: the same bits as one by one, in registers of any width.
#include <sinter/math/packet.hpp>

#include <bit>
#include <cmath>
#include <cstring>

#include "../catch.hpp"

namespace math = sinter::math;
using sinter::bfloat16;
using sinter::half;

namespace {

bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b)); }

template <class T, int L>
void check_reading() {
  int wrong = 0;
  for (unsigned first = 0; first < 0x10000u; first += L) {
    T x[std::size_t{L}];
    float y[std::size_t{L}];
    for (unsigned i = 0; i < L; ++i) x[i] = T::from_bits(static_cast<std::uint16_t>(first + i));
    math::read<L>(x).store(y);
    for (int i = 0; i < L; ++i) wrong += !same_bits(y[i], x[i]);
  }
  CHECK(wrong == 0);
}

/// Numbers of all sizes, the two before and the two after every boundary of rounding.
template <class T, int L>
void check_writing() {
  constexpr std::uint32_t step = 0x1000;  // half drops 13 bits and more, bfloat16 drops 16
  int wrong = 0;
  alignas(64) T to[std::size_t{L}], past[std::size_t{L}];
  for (std::uint64_t base = 0; base < 0x100000000u; base += L * step)
    for (std::uint32_t offset = 0; offset < 5; ++offset) {
      float x[std::size_t{L}];
      for (std::uint32_t i = 0; i < L; ++i)
        x[i] = std::bit_cast<float>(static_cast<std::uint32_t>(base) + i * step + offset - 2);
      const auto v = math::simd<float, L>::load(x);
      math::write(to, v);
      math::write_past_caches(past, v);
      const auto kept = math::rounded<T>(v);
      for (int i = 0; i < L; ++i)
        wrong += !same_bits(to[i], T(x[i])) || to[i].bits() != past[i].bits() || !same_bits(kept[i], to[i]);
    }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("vectors read half and bfloat16 as the numbers do") {
  check_reading<half, math::native_lanes>();
  check_reading<half, 4>();
  check_reading<bfloat16, math::native_lanes>();
  check_reading<bfloat16, 4>();
}

TEST_CASE("vectors round to half and bfloat16 as the numbers do") {
  check_writing<half, math::native_lanes>();
  check_writing<half, 4>();
  check_writing<bfloat16, math::native_lanes>();
  check_writing<bfloat16, 4>();
}
