// tests/math/cast_test.cpp: conversion between every two element types, out of range included.
#include "ulp.hpp"

namespace math = sinter::math;
using math::native_lanes;
using math::simd;

namespace {

constexpr int lanes = native_lanes;

template <class From>
std::vector<From> values() {
  using limits = std::numeric_limits<From>;
  std::vector<From> v;
  if constexpr (std::is_same_v<From, bool>) {
    v = {false, true, true, false};
  } else {
    for (int i = 0; i < 300; ++i) v.push_back(static_cast<From>(i * 37 - (std::is_signed_v<From> ? 5000 : 0)));
    for (const From x : {limits::min(), limits::max(), From(0), From(1), From(127), From(255)}) v.push_back(x);
    if constexpr (std::is_floating_point_v<From>) {
      for (const From x :
           {limits::quiet_NaN(), limits::infinity(), -limits::infinity(), limits::lowest(), From(-0.0),
            From(2147483648.0), From(2147483520.0), From(-2147483648.0), From(9223372036854775808.0),
            From(-9223372036854775808.0), From(127.99), From(-128.99), From(255.5), From(-0.99), From(1e10)})
        v.push_back(x);
    }
  }
  while (v.size() % lanes != 0) v.push_back(v[0]);
  return v;
}

template <class From, class To>
void check_pair(int& wrong) {
  for (const auto v = values<From>(); const auto& group : {v})
    for (std::size_t first = 0; first < group.size(); first += std::size_t(lanes)) {
      From lane[lanes];
      for (int i = 0; i < lanes; ++i) lane[i] = group[first + std::size_t(i)];
      const auto got = math::cast<To>(simd<From>::load(lane));
      for (int i = 0; i < lanes; ++i) {
        const To want = math::cast<To>(lane[i]);
        wrong += !(got[i] == want || (got[i] != got[i] && want != want));
      }
    }
}

template <class From, class... To>
int check_all() {
  int wrong = 0;
  (check_pair<From, To>(wrong), ...);
  return wrong;
}

}  // namespace

TEMPLATE_TEST_CASE("cast of lanes agrees with cast of scalars for every target", "[math]", float, double, std::int8_t,
                   std::int16_t, std::int32_t, std::int64_t, std::uint8_t, bool) {
  CHECK(
      check_all<TestType, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, bool>() ==
      0);
}

TEST_CASE("cast of a scalar truncates, clamps and maps NaN to 0", "[math]") {
  CHECK(math::cast<std::int32_t>(-2.9f) == -2);
  CHECK(math::cast<std::int32_t>(3e9f) == std::numeric_limits<std::int32_t>::max());
  CHECK(math::cast<std::int32_t>(-3e9) == std::numeric_limits<std::int32_t>::min());
  CHECK(math::cast<std::int64_t>(1e30f) == std::numeric_limits<std::int64_t>::max());
  CHECK(math::cast<std::uint8_t>(-1.f) == 0);
  CHECK(math::cast<std::uint8_t>(256.f) == 255);
  CHECK(math::cast<std::int8_t>(std::numeric_limits<float>::quiet_NaN()) == 0);
  CHECK(math::cast<bool>(0.5f));
  CHECK(math::cast<bool>(std::numeric_limits<float>::quiet_NaN()));
  CHECK_FALSE(math::cast<bool>(-0.f));
  CHECK(math::cast<float>(true) == 1.f);
}

TEST_CASE("a mask casts to 0 and 1 of any type", "[math]") {
  float lane[lanes];
  for (int i = 0; i < lanes; ++i) lane[i] = float(i % 2);
  const auto odd = simd<float>::load(lane) == 1.f;
  CHECK(math::hsum(math::cast<float>(odd)) == lanes / 2);
  CHECK(math::hsum(math::cast<double>(odd)) == lanes / 2);
  CHECK(math::hsum(math::cast<std::int64_t>(odd)) == lanes / 2);
  CHECK(math::cast<bool>(odd)[1]);
  CHECK_FALSE(math::cast<bool>(odd)[0]);
}

TEST_CASE("the traits of a kind of value", "[math]") {
  using V = simd<float>;
  STATIC_REQUIRE(std::is_same_v<math::element_t<V>, float>);
  STATIC_REQUIRE(std::is_same_v<math::element_t<std::int8_t>, std::int8_t>);
  STATIC_REQUIRE(math::lanes_v<V> == native_lanes);
  STATIC_REQUIRE(math::lanes_v<double> == 1);
  STATIC_REQUIRE(std::is_same_v<math::mask_t<V>, math::mask<float, native_lanes>>);
  STATIC_REQUIRE(std::is_same_v<math::mask_t<float>, bool>);
  STATIC_REQUIRE(std::is_same_v<math::rebind_t<V, int>, simd<int>>);
  STATIC_REQUIRE(std::is_trivially_copyable_v<V>);
  CHECK(math::constant<V>(2)[0] == 2.f);
  CHECK(math::constant<float>(2) == 2.f);
}
