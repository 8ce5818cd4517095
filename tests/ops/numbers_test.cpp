// tests/ops/numbers_test.cpp: functions of one or two tensors that the op table has no row for, and what they reject.
#include "../catch.hpp"

#include <cmath>
#include <limits>

#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("prelu has one slope, or one for each channel") {
  const tensor<double, 3> x = {{{1, -2}, {-3, 4}, {0, -1}}, {{-5, 6}, {7, -8}, {-9, 10}}};
  const variable<double, 3> v(x);
  const variable<double, 1> w(tensor<double, 1>{0.5, 2, -1});
  variable y = prelu(v, w);
  variable total = sum(y);
  total.backward();
  double slopes[3] = {};
  for (index_t n = 0; n < 2; ++n)
    for (index_t c = 0; c < 3; ++c)
      for (index_t i = 0; i < 2; ++i) {
        const double at = x(n, c, i), slope = w.value()(c);
        CHECK(y(n, c, i) == (at > 0 ? at : slope * at));
        CHECK(v.grad()(n, c, i) == (at > 0 ? 1 : slope));
        slopes[c] += at > 0 ? 0 : at;
      }
  for (index_t c = 0; c < 3; ++c) CHECK(w.grad()(c) == slopes[c]);

  const tensor<double, 1> one = {0.25};
  CHECK(eval(prelu(x, one))(1, 2, 0) == -2.25);
  CHECK(eval(prelu(x, full<double>(0.25)))(0, 0, 1) == -0.5);
  CHECK(eval(prelu(x[0][1], one))(0) == -0.75);
  CHECK(eval(prelu(full<double>(-4), one)).item() == -1);
  CHECK(eval(prelu(x * 2, one))(0, 1, 0) == -1.5);
  CHECK(eval(prelu(zeros<double>({2, 3, 0}), w)).numel() == 0);
  CHECK(std::isnan(eval(prelu(full<double>(not_a_number), one)).item()));
  // An infinity that is kept asks nothing of the slope.
  const variable<double, 0> slope(full<double>(0.25));
  variable kept = prelu(full<double>({1}, inf), slope);
  kept.backward(ones<double>({1}));
  CHECK(slope.grad().item() == 0);
  CHECK_THROWS_WITH(prelu(x, tensor<double, 1>{1, 2}),
                    "prelu: 2 weights for 3 channels; there is one, or one for each channel");
  CHECK_THROWS_WITH(prelu(x[0][0], tensor<double, 1>{1, 2}),
                    "prelu: 2 weights for 1 channels; there is one, or one for each channel");
}

TEST_CASE("round to decimals, and of numbers that have few") {
  const tensor<double, 1> x = {1.25, -1.35, 123.456, 2.5, inf, not_a_number};
  const tensor<double, 1> tenths = round(x, 1), tens = round(x, -1), whole = round(x, 0);
  CHECK((tenths(0) == 1.2 && tenths(1) == -1.4 && tenths(2) == 123.5 && tenths(4) == inf && std::isnan(tenths(5))));
  CHECK((tens(2) == 120 && tens(0) == 0 && whole(3) == 2));
}

TEST_CASE("nan_to_num puts finite numbers in place of others") {
  const tensor<float, 1> x = {1, NAN, INFINITY, -INFINITY, -0.5f};
  const tensor<float, 1> y = nan_to_num(x), z = nan_to_num(x, 2, 3);
  CHECK((y(0) == 1 && y(1) == 0 && y(2) == std::numeric_limits<float>::max() && y(4) == -0.5f));
  CHECK(y(3) == std::numeric_limits<float>::lowest());
  CHECK((z(1) == 2 && z(2) == 3 && z(3) == std::numeric_limits<float>::lowest()));
  const tensor<half, 1> narrow = nan_to_num(tensor<half, 1>(cast<half>(x)));
  CHECK((static_cast<float>(narrow(2)) == 65504 && static_cast<float>(narrow(3)) == -65504));
  const variable<float, 1> v(x);
  variable total = sum(nan_to_num(v));
  total.backward();
  CHECK((v.grad()(0) == 1 && v.grad()(1) == 0 && v.grad()(2) == 0 && v.grad()(4) == 1));
}

TEST_CASE("float_power is in double") {
  const tensor<int, 1> n = {2, 3, -1};
  const tensor<double, 1> inverse = float_power(n, -1), root = float_power(cast<float>(n), 0.5),
                          power = float_power(2, n);
  CHECK((inverse(0) == 0.5 && inverse(2) == -1 && root(0) == std::sqrt(2.) && std::isnan(root(2)) && power(2) == 0.5));
  const variable<float, 1> x(tensor<float, 1>{2, 3});
  const tensor<double, 1> y = eval(float_power(x, tensor<float, 1>{3, 0.5f})).value();
  CHECK((y(0) == 8 && y(1) == std::sqrt(3.)));
  variable total = sum(float_power(x, 3));
  total.backward();
  CHECK((x.grad()(0) == 12 && x.grad()(1) == 27));
}

TEST_CASE("sinc and its derivative near 0 and far from it") {
  const variable<double, 1> x(tensor<double, 1>{0, 1e-9, 1e-4, 0.15, 0.16, 1, 2.5, -3e6, inf});
  variable y = sinc(x);
  y.backward(ones<double>({9}));
  CHECK((y(0) == 1 && x.grad()(0) == 0 && y(5) == 0 && y(7) == 0));
  CHECK(x.grad()(1) == Approx(-M_PI * M_PI / 3 * 1e-9).epsilon(1e-12));
  CHECK(x.grad()(2) == Approx(-M_PI * M_PI / 3 * 1e-4).epsilon(1e-7));
  for (const index_t i : {3, 4, 6}) {
    const double t = M_PI * x.value()(i);
    CHECK(x.grad()(i) == Approx(M_PI * (t * std::cos(t) - std::sin(t)) / (t * t)).epsilon(1e-12));
  }
  CHECK(std::isnan(y(8)));
}

TEST_CASE("positive is what it is given") {
  const tensor<float, 1> x = {1, -2};
  CHECK(positive(x).data() == x.data());
  CHECK(eval(positive(x * 2))(1) == -4);
}

TEST_CASE("logical functions take numbers, operators masks alone") {
  const tensor<float, 1> x = {0, 2, NAN, -0.f};
  const tensor<bool, 1> both = logical_and(x, 1), none = logical_not(x), odd = logical_xor(x, x);
  CHECK((!both(0) && both(1) && both(2) && !both(3) && none(3) && !none(2) && !odd(1)));
  CHECK((eval(logical_or(tensor<int, 1>{0, 3}, 0))(1) && !eval(logical_or(tensor<int, 1>{0, 3}, 0))(0)));
}

template <class X, class W>
concept has_prelu = requires(const X& x, const W& w) { prelu(x, w); };
template <class X, class Y>
concept has_operator_and = requires(const X& x, const Y& y) { x&& y; };
template <class X>
concept rounds_decimals = requires(const X& x) { round(x, 2); };

using vector = tensor<float, 1>;
static_assert(has_prelu<tensor<float, 4>, vector> && has_prelu<vector, tensor<float, 0>>);
static_assert(!has_prelu<tensor<float, 4>, tensor<float, 2>> && !has_prelu<vector, tensor<double, 1>>);
static_assert(!has_prelu<vector, tensor<float, 1, numa<0>>> && !has_prelu<tensor<int, 1>, tensor<int, 1>>);
static_assert(!has_operator_and<vector, vector> && has_operator_and<tensor<bool, 1>, bool>);
static_assert(rounds_decimals<vector> && !rounds_decimals<tensor<int, 1>>);
