// tests/math/float_words_test.cpp: the words of simd<float> against the standard library in double.
#include "ulp.hpp"

using namespace sinter_test;
namespace math = sinter::math;

// Packet and scalar against the double function, rounded: the packet within `bound`, the scalar within 3 (glibc's own).
#define CHECK_WORD(word, reference, bound)                                                                     \
  SECTION(#word) {                                                                                             \
    const auto packet = worst_of<math::native_lanes>(points, [](auto v) { return math::word(v); }, reference); \
    INFO(#word << ": " << packet.ulps << " ulp at " << packet.at << ", got " << packet.got);                   \
    CHECK(packet.ulps <= bound);                                                                               \
    double scalar = 0;                                                                                         \
    for (const float x : points) scalar = std::max(scalar, ulps(math::word(x), reference(double(x))));         \
    CHECK(scalar <= 3);                                                                                        \
  }
#define CHECK_STD(word, bound) CHECK_WORD(word, [](double a) { return std::word(a); }, bound)

TEST_CASE("exponentials of float hold their bound over the whole range", "[math]") {
  const auto points = float_points();
  CHECK_STD(exp, 1)
  CHECK_STD(exp2, 1)
  CHECK_STD(expm1, 2)
  CHECK_STD(log, 1)
  CHECK_STD(log2, 2.5)
  CHECK_STD(log10, 2.5)
  CHECK_STD(log1p, 2)
}

TEST_CASE("hyperbolic and error functions of float hold their bound over the whole range", "[math]") {
  const auto points = float_points();
  CHECK_WORD(sigmoid, [](double a) { return 1 / (1 + std::exp(-a)); }, 3)
  CHECK_STD(tanh, 3)
  CHECK_STD(erf, 2)
  CHECK_STD(erfc, 4)
  CHECK_STD(sinh, 3)
  CHECK_STD(cosh, 3)
}

TEST_CASE("trigonometric functions of float hold their bound over the whole range", "[math]") {
  const auto points = float_points();
  CHECK_STD(sin, 2)
  CHECK_STD(cos, 2)
  CHECK_STD(tan, 4)
  CHECK_STD(asin, 2)
  CHECK_STD(acos, 2)
  CHECK_STD(atan, 2)
}

TEST_CASE("roots and rounding of float are exact or nearly so", "[math]") {
  const auto points = float_points();
  CHECK_STD(sqrt, 0.5)
  CHECK_STD(cbrt, 1.5)
  CHECK_STD(floor, 0)
  CHECK_STD(ceil, 0)
  CHECK_STD(trunc, 0)
  CHECK_WORD(round, [](double a) { return std::nearbyint(a); }, 0)
  CHECK_WORD(rsqrt, [](double a) { return 1 / std::sqrt(a); }, 1.5)
  CHECK_WORD(reciprocal, [](double a) { return 1 / a; }, 0.5)
  CHECK_STD(abs, 0)
}

TEST_CASE("a register of another width gives the same bits", "[math]") {
  const auto points = float_points(200003);
  const auto differ = [&](auto word) {
    std::size_t count = 0;
    for (std::size_t first = 0; first + 2 * math::native_lanes <= points.size(); first += 2 * math::native_lanes) {
      float wide[2 * math::native_lanes], narrow[2 * math::native_lanes];
      word(math::simd<float, 2 * math::native_lanes>::load(points.data() + first)).store(wide);
      for (int i = 0; i < 2; ++i)
        word(math::simd<float>::load(points.data() + first + i * math::native_lanes))
            .store(narrow + i * math::native_lanes);
      count += std::memcmp(wide, narrow, sizeof(wide)) != 0;
    }
    return count;
  };
  CHECK(differ([](auto x) { return math::exp(x); }) == 0);
  CHECK(differ([](auto x) { return math::log(x); }) == 0);
  CHECK(differ([](auto x) { return math::sin(x); }) == 0);
}

TEST_CASE("tanh is odd, to the bit, also at zero", "[math]") {
  const auto points = float_points(200003);
  std::size_t differ = 0;
  for (std::size_t first = 0; first + math::native_lanes <= points.size(); first += math::native_lanes) {
    const auto x = math::simd<float>::load(points.data() + first);
    float here[math::native_lanes], there[math::native_lanes];
    math::tanh(x).store(here);
    (-math::tanh(-x)).store(there);
    differ += std::memcmp(here, there, sizeof(here)) != 0;
  }
  CHECK(differ == 0);
  CHECK(std::signbit(math::tanh(math::simd<float>(-0.f))[0]));
}

TEST_CASE("compositions stay finite and right at the far ends", "[math]") {
  const auto at = [](float x, auto f) { return f(math::simd<float>(x))[math::native_lanes - 1]; };
  const auto sigmoid = [](auto x) { return 1.f / (1.f + math::exp(-x)); };
  CHECK(at(1e4f, sigmoid) == 1.f);
  CHECK(at(-1e4f, sigmoid) == 0.f);
  const auto softplus = [](auto x) { return math::max(x, 0) + math::log1p(math::exp(-math::abs(x))); };
  CHECK(at(1e4f, softplus) == 1e4f);
  CHECK(at(-1e4f, softplus) == 0.f);
  CHECK(at(-20.f, softplus) == Approx(2.0611536e-09f));
  CHECK(at(-1e4f, [](auto x) { return math::expm1(x); }) == -1.f);
  CHECK(at(1e-8f, [](auto x) { return math::expm1(x); }) == 1e-8f);
  CHECK(at(1e-8f, [](auto x) { return math::log1p(x); }) == 1e-8f);
}
