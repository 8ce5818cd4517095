// tests/math/lanes_test.cpp: storage, operators, masks, selection and horizontal words of simd, for every element type.
#include <array>

#include "ulp.hpp"

namespace math = sinter::math;
using math::mask;
using math::native_lanes;
using math::simd;

#define ALL_TYPES float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t

namespace {

constexpr int lanes = native_lanes;

// Small values with repeats, zero and, where there are any, negative ones.
template <class T>
struct operands {
  std::array<T, lanes> a{}, b{};
  operands() {
    for (std::size_t i = 0; i < std::size_t(lanes); ++i) {
      const int x = int(i * 7 % 11) - (std::is_signed_v<T> ? 5 : 0), y = int(i * 5 % 7) - (std::is_signed_v<T> ? 3 : 0);
      a[i] = static_cast<T>(x);
      b[i] = static_cast<T>(y);
    }
  }
  simd<T> x() const { return simd<T>::load(a.data()); }
  simd<T> y() const { return simd<T>::load(b.data()); }
};

template <class T, class Word, class Scalar>
int mismatches(const operands<T>& in, Word word, Scalar scalar) {
  int count = 0;
  for (std::size_t i = 0; i < std::size_t(lanes); ++i) {
    const auto got = word(in.x(), in.y())[int(i)];
    const auto want = static_cast<decltype(got)>(scalar(in.a[i], in.b[i]));
    count += !(got == want || (want != want && got != got));
  }
  return count;
}

}  // namespace

TEMPLATE_TEST_CASE("operators and words work lane by lane", "[math]", ALL_TYPES) {
  using T = TestType;
  const operands<T> in;
  CHECK(mismatches(in, [](auto x, auto y) { return x + y; }, [](T x, T y) { return x + y; }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return x - y; }, [](T x, T y) { return x - y; }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return x * y; }, [](T x, T y) { return x * y; }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return x / y; }, [](T x, T y) { return math::divide(x, y); }) == 0);
  CHECK(mismatches(in, [](auto x, auto) { return -x; }, [](T x, T) { return math::neg(x); }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return x < y; }, [](T x, T y) { return x < y; }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return x <= y; }, [](T x, T y) { return x <= y; }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return x > y; }, [](T x, T y) { return x > y; }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return x >= y; }, [](T x, T y) { return x >= y; }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return x == y; }, [](T x, T y) { return x == y; }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return x != y; }, [](T x, T y) { return x != y; }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return math::min(x, y); }, [](T x, T y) { return std::min(x, y); }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return math::max(x, y); }, [](T x, T y) { return std::max(x, y); }) == 0);
  CHECK(mismatches(in, [](auto x, auto) { return math::abs(x); }, [](T x, T) { return math::abs(x); }) == 0);
  CHECK(mismatches(in, [](auto x, auto) { return math::sign(x); }, [](T x, T) { return math::sign(x); }) == 0);
  CHECK(mismatches(in, [](auto x, auto y) { return math::fma(x, y, x); }, [](T x, T y) { return x * y + x; }) == 0);
  CHECK(
      mismatches(in, [](auto x, auto y) { return math::fmod(x, y); }, [](T x, T y) { return math::fmod(x, y); }) == 0);
  CHECK(mismatches(
            in, [](auto x, auto y) { return math::remainder(x, y); }, [](T x, T y) { return math::remainder(x, y); }) ==
        0);
  CHECK(mismatches(in, [](auto x, auto) { return 2 * x - 1; }, [](T x, T) { return 2 * x - 1; }) == 0);
  CHECK(mismatches(in, [](auto x, auto) { return math::max(x, 2); }, [](T x, T) { return std::max(x, T(2)); }) == 0);
}

TEMPLATE_TEST_CASE("loads and stores move exactly the lanes asked for", "[math]", ALL_TYPES, bool) {
  using T = TestType;
  alignas(64) T from[2 * lanes + 1], to[2 * lanes + 1];
  for (int i = 0; i < 2 * lanes + 1; ++i) from[i] = static_cast<T>(i % 3 != 0);
  const auto filled = [&](int first, int count) {
    for (int i = 0; i < 2 * lanes + 1; ++i)
      if (to[i] != (i >= first && i < first + count ? from[i - first + 1] : T(0))) return false;
    return true;
  };
  const auto x = simd<T>::load(from + 1);
  std::fill(std::begin(to), std::end(to), T(0));
  x.store(to + 1);
  CHECK(filled(1, lanes));
  std::fill(std::begin(to), std::end(to), T(0));
  x.stream(to);
  CHECK(filled(0, lanes));
  simd<T>::load_aligned(to).store_aligned(to);
  CHECK(filled(0, lanes));
  for (int n = 0; n <= lanes; ++n) {
    std::fill(std::begin(to), std::end(to), T(0));
    simd<T>::load_partial(from + 1, n).store_partial(to, n);
    CHECK(filled(0, n));
  }
  CHECK(math::all(simd<T>::load_partial(from, 0) == simd<T>(0)));
}

TEMPLATE_TEST_CASE("select takes a mask of any element type", "[math]", ALL_TYPES) {
  using T = TestType;
  const operands<T> in;
  const auto with = [&](auto condition) {
    int wrong = 0;
    const auto chosen = math::select(condition, in.x(), in.y());
    for (int i = 0; i < lanes; ++i) wrong += chosen[i] != (i % 3 == 0 ? in.a[std::size_t(i)] : in.b[std::size_t(i)]);
    return wrong;
  };
  const auto third = [](auto zero) {
    using U = decltype(zero);
    U lane[lanes];
    for (int i = 0; i < lanes; ++i) lane[i] = U(i % 3);
    return simd<U>::load(lane) == simd<U>(0);
  };
  CHECK(with(third(0.f)) == 0);
  CHECK(with(third(0.0)) == 0);
  CHECK(with(third(std::int8_t(0))) == 0);
  CHECK(with(third(std::int16_t(0))) == 0);
  CHECK(with(third(std::int32_t(0))) == 0);
  CHECK(with(third(std::int64_t(0))) == 0);
  CHECK(with(third(std::uint8_t(0))) == 0);
  CHECK(with(math::cast<bool>(third(0.f))) == 0);
  CHECK(with(math::logical_or(math::cast<bool>(third(0.0)), third(0))) == 0);
}

TEMPLATE_TEST_CASE("masks combine, store as bool and answer any and all", "[math]", ALL_TYPES) {
  using T = TestType;
  const operands<T> in;
  const auto low = in.x() < T(2), even = in.y() == T(0);
  bool got[lanes];
  const auto wrong = [&](auto combined, auto scalar) {
    combined.store(got);
    int count = 0;
    for (std::size_t i = 0; i < std::size_t(lanes); ++i) count += got[i] != scalar(in.a[i] < T(2), in.b[i] == T(0));
    const auto loaded = mask<T>::load(got);
    for (int i = 0; i < lanes; ++i) count += loaded[i] != got[i];
    return count;
  };
  CHECK(wrong(math::logical_and(low, even), [](bool a, bool b) { return a && b; }) == 0);
  CHECK(wrong(math::logical_or(low, even), [](bool a, bool b) { return a || b; }) == 0);
  CHECK(wrong(math::logical_xor(low, even), [](bool a, bool b) { return a != b; }) == 0);
  CHECK(wrong(math::logical_not(low), [](bool a, bool) { return !a; }) == 0);
  CHECK(wrong(math::logical_and(in.x() < T(2), in.y() == T(0)), [](bool a, bool b) { return a && b; }) == 0);
  for (int i = 0; i < lanes; ++i) {
    T lane[lanes] = {};
    lane[i] = T(1);
    const auto one = simd<T>::load(lane) != T(0);
    CHECK(math::any(one));
    CHECK_FALSE(math::all(one));
    CHECK_FALSE(math::all(math::logical_not(one)));
  }
  CHECK_FALSE(math::any(mask<T>(false)));
  CHECK(math::all(mask<T>(true)));
}

TEMPLATE_TEST_CASE("integers wrap, and division by zero or of the least value does not trap", "[math]", std::int8_t,
                   std::int16_t, std::int32_t, std::int64_t, std::uint8_t) {
  using T = TestType;
  using limits = std::numeric_limits<T>;
  const simd<T> least(limits::min()), most(limits::max()), zero(0), one(1);
  CHECK(math::all(most + one == least));
  CHECK(math::all(least - one == most));
  CHECK(math::all(most / zero == zero));
  CHECK(math::all(math::fmod(most, zero) == zero));
  CHECK(math::all(math::remainder(most, zero) == zero));
  CHECK(math::divide(limits::max(), T(0)) == T(0));
  if constexpr (std::is_signed_v<T>) {
    CHECK(math::all(least / simd<T>(-1) == least));
    CHECK(math::all(math::remainder(least, simd<T>(-1)) == zero));
    CHECK(math::all(math::abs(least) == least));
    CHECK(math::divide(limits::min(), T(-1)) == limits::min());
    CHECK(math::all(simd<T>(-7) / simd<T>(2) == simd<T>(-3)));
  }
  CHECK(math::all(math::shift_left<2>(most) == simd<T>(math::shift_left<2>(limits::max()))));
  CHECK(math::all(math::shift_right<1>(least) == simd<T>(math::shift_right<1>(limits::min()))));
  CHECK(math::pow(T(3), T(4)) == T(81));
  CHECK(math::all(math::pow(simd<T>(3), 4) == simd<T>(81)));
}

TEMPLATE_TEST_CASE("min, max, sign and the class words treat NaN and infinity as NumPy does", "[math]", float, double) {
  using T = TestType;
  const T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
  const auto first = [](T a) { return simd<T>(a); };
  for (const T other : {T(1), nan, inf, -inf}) {
    CHECK(math::all(math::isnan(math::min(first(nan), first(other)))));
    CHECK(math::all(math::isnan(math::min(first(other), first(nan)))));
    CHECK(math::all(math::isnan(math::max(first(nan), first(other)))));
    CHECK(math::all(math::isnan(math::max(first(other), first(nan)))));
    CHECK(math::isnan(math::min(other, nan)));
    CHECK(math::isnan(math::max(nan, other)));
  }
  CHECK(math::all(math::isnan(math::max(first(nan), 0))));
  CHECK(math::all(math::isnan(math::sign(first(nan)))));
  CHECK(math::all(math::isinf(first(-inf))));
  CHECK_FALSE(math::any(math::isinf(first(nan))));
  CHECK_FALSE(math::any(math::isfinite(first(nan))));
  CHECK_FALSE(math::any(math::isfinite(first(inf))));
  CHECK(math::all(math::isfinite(first(std::numeric_limits<T>::max()))));
  CHECK_FALSE(std::signbit(math::sign(first(T(-0.0)))[0]));
  CHECK(math::all(math::copysign(first(T(2)), first(T(-0.0))) == T(-2)));
  CHECK(math::copysign(T(-2), inf) == T(2));
}

TEMPLATE_TEST_CASE("horizontal words fold lane i with lane i + L/2", "[math]", ALL_TYPES) {
  using T = TestType;
  T lane[lanes];
  for (int i = 0; i < lanes; ++i)
    lane[i] = std::is_integral_v<T> ? static_cast<T>(i % 5 + 1) : static_cast<T>(1 / (3 + T(i)));
  const auto x = simd<T>::load(lane);
  const auto fold = [&](auto op) {
    std::vector<T> rest(lane, lane + lanes);
    for (std::size_t n = rest.size() / 2; n > 0; n /= 2)
      for (std::size_t i = 0; i < n; ++i) rest[i] = static_cast<T>(op(rest[i], rest[i + n]));
    return rest[0];
  };
  CHECK(math::hsum(x) == fold([](T a, T b) { return a + b; }));
  CHECK(math::hprod(x) == fold([](T a, T b) { return a * b; }));
  CHECK(math::hmin(x) == fold([](T a, T b) { return std::min(a, b); }));
  CHECK(math::hmax(x) == fold([](T a, T b) { return std::max(a, b); }));
  CHECK(math::hsum(lane[0]) == lane[0]);
}

TEST_CASE("horizontal minimum and maximum propagate a NaN in any lane", "[math]") {
  for (int i = 0; i < lanes; ++i) {
    float lane[lanes] = {};
    lane[i] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isnan(math::hmin(simd<float>::load(lane))));
    CHECK(std::isnan(math::hmax(simd<float>::load(lane))));
  }
}
