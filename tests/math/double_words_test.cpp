// tests/math/double_words_test.cpp: the words of simd<double> and of the two-argument words against long double.
#include "ulp.hpp"

using namespace sinter_test;
namespace math = sinter::math;

namespace {

std::vector<double> double_points() {
  auto points = special_values<double>();
  for (int i = -4000; i < 4000; ++i) {
    points.push_back(i * 0.01237);
    points.push_back(std::ldexp(1 + (i & 1023) / 1031.0, i / 4) * (i % 3 == 0 ? -1 : 1));
  }
  return points;
}

}  // namespace

#define CHECK_STD(word, bound)                                                                     \
  SECTION(#word) {                                                                                 \
    const auto found = worst_of<math::native_lanes>(                                               \
        points, [](auto x) { return math::word(x); }, [](long double x) { return std::word(x); }); \
    INFO(#word << ": " << found.ulps << " ulp at " << found.at << ", got " << found.got);          \
    CHECK(found.ulps <= bound);                                                                    \
  }

TEST_CASE("words of double stay within 4 ulp", "[math]") {
  const auto points = double_points();
  CHECK_STD(exp, 4)
  CHECK_STD(exp2, 4)
  CHECK_STD(expm1, 4)
  CHECK_STD(log, 4)
  CHECK_STD(log2, 4)
  CHECK_STD(log10, 4)
  CHECK_STD(log1p, 4)
  CHECK_STD(tanh, 4)
  CHECK_STD(erf, 4)
  CHECK_STD(sin, 4)
  CHECK_STD(cos, 4)
  CHECK_STD(sqrt, 0.5)
  CHECK_STD(floor, 0)
  CHECK_STD(ceil, 0)
  CHECK_STD(trunc, 0)
}

TEST_CASE("pow, fmod and remainder agree with the scalar words on every pair of specials", "[math]") {
  const auto values = special_values<float>();
  int different = 0;
  const auto same = [](float a, float b) { return a == b ? std::signbit(a) == std::signbit(b) : a != a && b != b; };
  for (const float a : values)
    for (const float b : values) {
      const math::simd<float> x(a), y(b);
      different += !same(math::pow(x, y)[0], std::pow(a, b));
      different += !same(math::fmod(x, y)[0], std::fmod(a, b));
      different += !same(math::remainder(x, y)[0], math::remainder(a, b));
    }
  CHECK(different == 0);
}

TEST_CASE("remainder takes the sign of the divisor", "[math]") {
  CHECK(math::remainder(-7.f, 3.f) == 2.f);
  CHECK(math::remainder(7.f, -3.f) == -2.f);
  CHECK(std::signbit(math::remainder(6.f, -3.f)));
  CHECK(math::remainder(-1.f, std::numeric_limits<float>::infinity()) == std::numeric_limits<float>::infinity());
  CHECK(math::fmod(-7.f, 3.f) == -1.f);
  CHECK(math::remainder(-7, 3) == 2);
  CHECK(math::fmod(-7, 3) == -1);
  CHECK(math::remainder(math::simd<std::int8_t>(-7), math::simd<std::int8_t>(3))[1] == 2);
}
