// tests/ops/elementwise_test.cpp: what the op table cannot say: literals, masks, conversions, wrapping, bad parameters.
#include <limits>

#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

template <class T>
std::vector<T> list(const tensor<T, 1>& t) {
  return std::vector<T>(t.begin(), t.end());
}

}  // namespace

TEST_CASE("literals adopt the element type of the tensor beside them") {
  const tensor<float, 1> x{1, 2, 3};
  static_assert(std::is_same_v<element_of<decltype(1 - x / 2)>, float>);
  static_assert(std::is_same_v<element_of<decltype(2.5 * x)>, float>);
  static_assert(std::is_same_v<element_of<decltype(where(x > 0, x, 0))>, float>);
  static_assert(std::is_same_v<element_of<decltype(pow(2, x))>, float>);
  const tensor y = 1 - x / 2;
  CHECK(list(y) == std::vector<float>{0.5f, 0.f, -0.5f});
  const tensor<std::int32_t, 1> k{7, -7, 8};
  const tensor half = k / 2;
  CHECK(list(half) == std::vector<std::int32_t>{3, -3, 4});
}

TEST_CASE("two literal branches of where give elements of their type") {
  const tensor<float, 1> x{-1, 2, 3};
  const tensor ones = where(x > 0, 1, -1);
  static_assert(std::is_same_v<element_of<decltype(ones)>, std::int32_t>);
  CHECK(list(ones) == std::vector<std::int32_t>{-1, 1, 1});
  const tensor halves = where(x > 0, 0.5f, 0.f);
  static_assert(std::is_same_v<element_of<decltype(halves)>, float>);
  CHECK(list(halves) == std::vector<float>{0, 0.5f, 0.5f});
}

TEST_CASE("the value of the branch that where does not take does not matter") {
  const tensor<double, 1> x{-1, 0, 4};
  const tensor y = where(x > 0, log(x), -7);
  CHECK(y(0) == -7);
  CHECK(y(1) == -7);
  CHECK(y(2) == Approx(std::log(4.)));
}

TEST_CASE("where sends its gradient to the branch taken and sums over broadcast branches") {
  const tensor<double, 1> x{-1, 2, 3};
  variable<double, 1> a(tensor<double, 1>{10, 20, 30});
  variable<double, 0> b(full<double>(5));
  variable y = where(x > 0, a, b);
  y.backward(tensor<double, 1>{1, 2, 4});
  CHECK(list(a.grad()) == std::vector<double>{0, 2, 4});
  CHECK(b.grad().item() == 1);
}

TEST_CASE("masks compare, combine and convert whatever they were made from") {
  const tensor<double, 1> x{-1, 0, 1, 2};
  const tensor<std::int8_t, 1> k{1, -1, 1, 0};
  const tensor<bool, 1> stored{true, true, false, false};
  const tensor both = x > 0 && k > 0;
  CHECK(list(both) == std::vector<bool>{false, false, true, false});
  const tensor mixed = stored || k == 0;
  CHECK(list(mixed) == std::vector<bool>{true, true, false, true});
  const tensor agree = (x > 0) == stored;
  CHECK(list(agree) == std::vector<bool>{false, false, false, false});
  const tensor differ = logical_xor(stored, x > 0) != (k < 0);
  CHECK(list(differ) == std::vector<bool>{true, false, true, true});
  const tensor chosen = where(stored, x > 0, k > 0);
  CHECK(list(chosen) == std::vector<bool>{false, false, true, false});
  const tensor negated = where(!stored, x, 9);
  CHECK(list(negated) == std::vector<double>{9, 9, 1, 2});
  const tensor number = cast<float>(x > 0) + cast<float>(stored);
  CHECK(list(number) == std::vector<float>{1, 1, 1, 1});
  const tensor counted = where(cast<bool>(k), 1, 0);
  CHECK(list(counted) == std::vector<std::int32_t>{1, 1, 1, 0});
  const tensor with_literal = stored && true;
  CHECK(list(with_literal) == list(stored));
}

TEST_CASE("cast truncates, clamps to the target's range, and maps NaN to 0") {
  const float inf = std::numeric_limits<float>::infinity();
  const tensor<float, 1> x{2.9f, -2.9f, 300, -300, inf, -inf, std::nanf(""), 1e20f};
  const tensor bytes = cast<std::uint8_t>(x);
  CHECK(list(bytes) == std::vector<std::uint8_t>{2, 0, 255, 0, 255, 0, 0, 255});
  const tensor small = cast<std::int8_t>(x);
  CHECK(list(small) == std::vector<std::int8_t>{2, -2, 127, -128, 127, -128, 0, 127});
  const tensor large = cast<std::int64_t>(x);
  CHECK(large(7) == std::numeric_limits<std::int64_t>::max());
  const tensor flags = cast<bool>(x);
  CHECK(list(flags) == std::vector<bool>(8, true));
  const tensor pixels = cast<float>(bytes) / 255;
  CHECK(pixels(4) == 1.f);
}

TEST_CASE("cast to the type it has is the operand itself") {
  const tensor<float, 1> x{1, 2};
  static_assert(std::is_same_v<decltype(cast<float>(x)), tensor<float, 1>>);
  CHECK(cast<float>(x).data() == x.data());
}

TEST_CASE("gradients pass through casts between float and double, and nothing is tracked through integers") {
  variable<float, 1> x(tensor<float, 1>{1, 2, 3});
  variable y = square(cast<double>(x)) * 3;
  static_assert(std::is_same_v<element_of<decltype(y)>, double>);
  y.backward(ones<double>({3}));
  CHECK(list(x.grad()) == std::vector<float>{6, 12, 18});
  static_assert(!is_tracked_v<decltype(cast<std::int32_t>(x))>);
  static_assert(!is_tracked_v<decltype(x > 0)>);
  const tensor k = cast<std::int32_t>(x);
  CHECK(k(2) == 3);
}

TEST_CASE("integers wrap around, and division by zero gives 0") {
  const tensor<std::int8_t, 1> a{100, -128, 7};
  const tensor sum = a + a;
  CHECK(list(sum) == std::vector<std::int8_t>{-56, 0, 14});
  const tensor negative = -a;
  CHECK(list(negative) == std::vector<std::int8_t>{-100, -128, -7});
  const tensor squared = square(a);
  CHECK(list(squared) == std::vector<std::int8_t>{16, 0, 49});
  const tensor<std::int32_t, 1> b{std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min(),
                                  5};
  const tensor next = b + 1;
  CHECK(list(next) == std::vector<std::int32_t>{std::numeric_limits<std::int32_t>::min(),
                                                std::numeric_limits<std::int32_t>::min() + 1, 6});
  const tensor quotient = b / 0;
  CHECK(list(quotient) == std::vector<std::int32_t>{0, 0, 0});
  const tensor rest = remainder(b, 0);
  CHECK(list(rest) == std::vector<std::int32_t>{0, 0, 0});
  const tensor by_minus_one = b / -1;
  CHECK(by_minus_one(1) == std::numeric_limits<std::int32_t>::min());
}

TEST_CASE("shifts by a negative count or past the last bit leave nothing but the sign") {
  const tensor<std::int8_t, 1> a{3, -3, 64};
  const tensor up = a << 7, past = a << 8, down = a >> 1, gone = a >> 9, negative = a << -1;
  CHECK(list(up) == std::vector<std::int8_t>{-128, -128, 0});
  CHECK(list(past) == std::vector<std::int8_t>{0, 0, 0});
  CHECK(list(down) == std::vector<std::int8_t>{1, -2, 32});
  CHECK(list(gone) == std::vector<std::int8_t>{0, -1, 0});
  CHECK(list(negative) == std::vector<std::int8_t>{0, 0, 0});
  const tensor<std::uint8_t, 1> u{255, 1};
  const tensor top = u >> 7;
  CHECK(list(top) == std::vector<std::uint8_t>{1, 0});
  const tensor<std::int64_t, 1> w{1, -1};
  const tensor wide = w << 40;
  CHECK(list(wide) == std::vector<std::int64_t>{std::int64_t{1} << 40, -(std::int64_t{1} << 40)});
}

TEST_CASE("parameters without meaning are refused by name") {
  const tensor<float, 1> x{1, 2};
  CHECK_THROWS_WITH(celu(x, 0), Catch::Contains("celu") && Catch::Contains("alpha"));
  CHECK_THROWS_WITH(softplus(x, 0), Catch::Contains("softplus") && Catch::Contains("beta"));
  CHECK_THROWS_WITH(softplus(x, std::nan("")), Catch::Contains("beta"));
  CHECK_THROWS_WITH(hardtanh(x, 2, 1), Catch::Contains("hardtanh"));
  CHECK_THROWS_WITH(softshrink(x, -0.5), Catch::Contains("softshrink"));
  CHECK_THROWS_AS(logit(x, 0.75), value_error);
  CHECK_THROWS_AS(logit(x, -0.1), value_error);
}

TEST_CASE("the derivative of a power is sound at 0 and for whole exponents") {
  const auto gradient = [](auto exponent) {
    variable<double, 1> x(tensor<double, 1>{0, -2, 3});
    variable y = pow(x, exponent);
    y.backward(ones<double>({3}));
    return list(x.grad());
  };
  CHECK(gradient(0) == std::vector<double>{0, 0, 0});
  CHECK(gradient(1) == std::vector<double>{1, 1, 1});
  CHECK(gradient(2) == std::vector<double>{0, -4, 6});
  CHECK(gradient(3) == std::vector<double>{0, 12, 27});
  CHECK(gradient(4) == std::vector<double>{0, -32, 108});
  CHECK(gradient(0.5)[0] == std::numeric_limits<double>::infinity());
  variable<double, 1> b(tensor<double, 1>{0, 1, 2});
  variable y = pow(0, b);
  y.backward(ones<double>({3}));
  CHECK(list(b.grad()) == std::vector<double>{0, 0, 0});
}

TEST_CASE("ties share their gradient in minimum and maximum, and clamp gives it to the limits it takes") {
  variable<double, 1> a(tensor<double, 1>{1, 2}), b(tensor<double, 1>{1, 3});
  variable y = maximum(a, b);
  y.backward(tensor<double, 1>{4, 4});
  CHECK(list(a.grad()) == std::vector<double>{2, 0});
  CHECK(list(b.grad()) == std::vector<double>{2, 4});
  variable<double, 1> x(tensor<double, 1>{-1, 0, 1, 2});
  variable<double, 0> low(full<double>(-1)), high(full<double>(1));
  variable z = clamp(x, low, high);
  z.backward(tensor<double, 1>{1, 2, 4, 8});
  CHECK(list(x.grad()) == std::vector<double>{0, 2, 0, 0});
  CHECK(low.grad().item() == 1);
  CHECK(high.grad().item() == 12);
}

TEST_CASE("gradients where an operand is NaN or outside of the domain follow the value") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  variable<double, 1> a(tensor<double, 1>{nan, 1, nan}), b(tensor<double, 1>{1, nan, nan});
  const tensor<double, 1> seed{1, 2, 3};
  maximum(a, b).backward(seed);
  minimum(a, b).backward(seed);
  CHECK(list(a.grad()) == std::vector<double>{2, 4, 6});
  CHECK(list(b.grad()) == std::vector<double>{2, 4, 6});
  variable<double, 1> p(tensor<double, 1>{-0.5, 0.5, 2});
  logit(p).backward(seed);
  CHECK(std::isnan(p.grad()(0)));
  CHECK(p.grad()(1) == 8);
  CHECK(std::isnan(p.grad()(2)));
  const float infinity = std::numeric_limits<float>::infinity();
  variable<float, 1> x(tensor<float, 1>{-infinity, -1e25f, -20, -16, 16, 20, 1e25f, infinity});
  gelu_tanh(x).backward(ones_like(x.value()));
  CHECK(list(x.grad()) == std::vector<float>{0, 0, 0, 0, 1, 1, 1, 1});
}

TEST_CASE("NaN does not cost the gradient: it goes to every operand of a choice, and through every rectifier") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const tensor<double, 1> seed{1, 2, 3};
  const auto gradient = [&](const auto& f) {
    variable<double, 1> x(tensor<double, 1>{nan, 0.25, 5});
    variable<double, 1>(f(x)).backward(seed);
    return list(x.grad());
  };
  const std::vector<double> whole = {1, 2, 3}, up_to_one = {1, 2, 0};
  CHECK(gradient([&](const auto& x) { return clamp_min(x, nan); }) == whole);
  CHECK(gradient([&](const auto& x) { return clamp_max(x, nan); }) == whole);
  CHECK(gradient([&](const auto& x) { return clamp(x, nan, 1); }) == whole);
  CHECK(gradient([&](const auto& x) { return clamp(x, 6, nan); }) == whole);
  CHECK(gradient([&](const auto& x) { return maximum(x, nan); }) == whole);
  CHECK(gradient([](const auto& x) { return clamp_min(x, 0); }) == whole);
  CHECK(gradient([](const auto& x) { return clamp_max(x, 1); }) == up_to_one);
  CHECK(gradient([](const auto& x) { return clamp(x, 0, 1); }) == up_to_one);
  CHECK(gradient([](const auto& x) { return hardtanh(x); }) == up_to_one);
  CHECK(gradient([](const auto& x) { return relu(x); }) == whole);
  CHECK(gradient([](const auto& x) { return relu6(x); }) == whole);
  CHECK(gradient([](const auto& x) { return softshrink(x, 0.5); }) == std::vector<double>{1, 0, 3});
  CHECK(gradient([](const auto& x) { return hardsigmoid(x) * 6; }) == up_to_one);
  variable<double, 1> low(tensor<double, 1>{nan, 0, 0}), high(tensor<double, 1>{1, nan, 1});
  clamp(tensor<double, 1>{0.5, 0.5, nan}, low, high).backward(seed);
  CHECK(list(low.grad()) == whole);
  CHECK(list(high.grad()) == whole);
}

TEST_CASE("the derivative of remainder and fmod to the divisor is the quotient that the value took") {
  const auto check = [](const auto& f, auto a, auto b, auto expected) {
    variable y = b;
    f(a, y).backward(ones_like(a));
    CHECK(list(y.grad()) == list(expected));
  };
  const float inf = std::numeric_limits<float>::infinity();
  const auto modulo = [](const auto& a, const auto& b) { return remainder(a, b); };
  const auto rest = [](const auto& a, const auto& b) { return fmod(a, b); };
  // 1 / 0.1f rounds to 10, but 10 * 0.1f is above 1
  check(modulo, tensor<float, 1>{1, -0.3f, 7, -1e-20f, -5, -3e38f}, tensor<float, 1>{0.1f, 0.1f, -2, 1, inf, 3.2e38f},
        tensor<float, 1>{-9, 4, 4, 1, 1, 1});
  check(rest, tensor<float, 1>{1, -1, 7, -1e-20f, -5, 3e38f}, tensor<float, 1>{0.1f, 0.1f, -2, 1, inf, -3.2e38f},
        tensor<float, 1>{-9, 9, 3, 0, 0, 0});
  check(modulo, tensor<double, 1>{1, -0.3, 0.6}, tensor<double, 1>{0.1, 0.1, -0.2}, tensor<double, 1>{-9, 3, 3});
  check(rest, tensor<double, 1>{1, -1, 0.6}, tensor<double, 1>{0.1, 0.1, 0.2}, tensor<double, 1>{-9, 9, -2});
}

TEST_CASE("the same leaf used more than once adds up its gradient") {
  variable<double, 1> x(tensor<double, 1>{0.5, -0.25});
  variable y = x * x * x + x / x;
  y.backward(ones<double>({2}));
  CHECK(x.grad()(0) == Approx(3 * 0.25));
  CHECK(x.grad()(1) == Approx(3 * 0.0625));
}

TEST_CASE("smooth functions stay exact where the naive formula overflows or cancels") {
  const tensor<float, 1> x{-1e4f, -90, 90, 1e4f};
  const tensor p = sigmoid(x), s = softplus(x), l = log_sigmoid(x);
  CHECK(list(p) == std::vector<float>{0, p(1), 1, 1});
  CHECK(p(1) == Approx(8.194e-40).epsilon(1e-3));
  CHECK(list(s) == std::vector<float>{0, s(1), 90, 1e4f});
  CHECK(l(0) == -1e4f);
  CHECK(l(1) == -90.f);
  CHECK(l(3) == 0.f);
  variable<float, 1> v(x);
  variable y = softplus(v) + log_sigmoid(v) + sigmoid(v);
  y.backward(ones<float>({4}));
  for (const float g : v.grad()) CHECK(std::isfinite(g));
  CHECK(v.grad()(0) == 1.f);
}

TEST_CASE("functions keep their relative accuracy where their textbook formula cancels") {
  // gelu and gelu_tanh multiply the rounding of their argument x by x^2 in the tail, as e^(-x^2/2) does
  const auto check = [](const auto& f, const auto& g, auto sample, double tolerance,
                        std::initializer_list<double> points) {
    using T = decltype(sample);
    for (const double p : points) {
      const T at = static_cast<T>(p);
      variable<T, 0> x = full<T>(at);
      const variable<T, 0> y = f(x);
      INFO("at " << p << ": " << static_cast<double>(y.item()));
      const double expected = g(static_cast<double>(at));
      CHECK(std::fabs(static_cast<double>(y.item()) - expected) <=
            tolerance * std::numeric_limits<T>::epsilon() * std::fabs(expected) +
                static_cast<double>(std::numeric_limits<T>::denorm_min()));
    }
  };
  const auto all = [&](auto sample) {
    check([](const auto& x) { return gelu(x); }, [](double x) { return x / 2 * std::erfc(-x * std::sqrt(0.5)); },
          sample, 250, {-12.5, -7.2, -5, -3, -1});
    check([](const auto& x) { return gelu_tanh(x); },
          [](double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }, sample,
          250, {-9, -7.2, -5, -3, -1});
    check([](const auto& x) { return silu(x); }, [](double x) { return x / (1 + std::exp(-x)); }, sample, 5,
          {-99.5, -95, -88, -80.5, -50, -7.2});
    check([](const auto& x) { return logit(x); }, [](double x) { return std::log1p((2 * x - 1) / (1 - x)); }, sample, 4,
          {0.25, 0.4999, 0.49999997, 0.5, 0.5001, 0.75, 0.999});
    check([](const auto& x) { return tanhshrink(x); },
          [](double x) { return x * x * x * (1 / 3. - x * x * (2 / 15. - x * x * (17 / 315. - x * x * 62 / 2835.))); },
          sample, 10, {1e-12, -1e-5, 0.001, 0.01, -0.02});
  };
  all(0.f);
  all(0.);
  CHECK(list(tensor<float, 1>(logit(tensor<float, 1>{0, -0.f, 1, 0.5f}))) ==
        std::vector<float>{-std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                           std::numeric_limits<float>::infinity(), 0});
  CHECK(std::isnan(tensor<float, 0>(logit(full<float>(2))).item()));
  CHECK(tensor<float, 0>(logit(full<float>(1e-40f))).item() == Approx(-92.1034));
  variable<float, 1> x(tensor<float, 1>{-9, -100});
  gelu_tanh(x[0]).backward();
  silu(x[1]).backward();
  CHECK(x.grad()(0) == Approx(-2.5157e-27).epsilon(1e-3));
  CHECK(x.grad()(1) == Approx(-99 * std::exp(-100.)).epsilon(1e-3));
}

TEST_CASE("gated linear units are formulas of the two halves", "[ops]") {
  generator gen(8);
  const variable x = randn<float>(gen, {3, 8, 5});
  const auto distance = [](const auto& got, const auto& expected) { return eval(max(abs(got - expected))).item(); };
  const tensor a = x.value().slice(1, 0, 4), b = x.value().slice(1, 4, 8);
  const tensor s = sigmoid(b), y = a * s;
  variable gated = glu(x, 1);
  CHECK(distance(gated.value(), y) < 1e-6);
  sum(gated * gated).backward();
  CHECK(distance(x.grad().slice(1, 0, 4), 2 * y * s) < 1e-5);
  CHECK(distance(x.grad().slice(1, 4, 8), 2 * y * y * (1 - s)) < 1e-5);
  CHECK(distance(swiglu(x.value(), -2), silu(a) * b) < 1e-6);
  CHECK(distance(geglu(x.value(), -2), gelu(a) * b) < 1e-6);
  CHECK_THROWS_AS(glu(x), shape_error);
  CHECK_THROWS_WITH(swiglu(x), Catch::Contains("has 5 elements, an odd number"));
  CHECK_THROWS_AS(geglu(x, 3), index_error);
}
