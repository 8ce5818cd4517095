// tests/ops/spread_test.cpp: variances and covariances, and forms of other functions along axes: extremes, sums to a
// shape, scans, softmax of some elements, and axes of scalars.
#include "../grad/differences.hpp"

#include <cmath>
#include <limits>

using namespace sinter;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(),
                infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("var and stddev divide by the number of values less a correction") {
  const tensor<double, 2> x = {{1, 2, 3, 6}, {4, 4, 4, 4}};
  for (const double correction : {0., 1., 2., 0.5}) {
    CAPTURE(correction);
    const tensor<double, 1> v = var(x, 1, {.correction = correction}), s = stddev(x, 1, {.correction = correction});
    CHECK((v(0) == Approx(14 / (4 - correction)) && v(1) == 0));
    CHECK((s(0) == Approx(std::sqrt(14 / (4 - correction))) && s(1) == 0));
  }
  CHECK(eval(var(x, var_options{.correction = 0})).item() == Approx(2));
  CHECK(eval(var(x, {0, 1}, keepdim, {.correction = 0})).shape() == extents<2>{{1, 1}});
  CHECK(eval(stddev(x, 0, keepdim, {.correction = 0}))(0, 0) == Approx(1.5));
  CHECK(eval(var(x, {0, 1}, {.correction = 7})).item() == Approx(16));
  CHECK(eval(var(x, var_options{.correction = 8})).item() == std::numeric_limits<double>::infinity());
  CHECK(eval(var(x, var_options{.correction = 9})).item() == std::numeric_limits<double>::infinity());
  const tensor<float, 1> one = {5};
  CHECK((eval(var(one, var_options{.correction = 0})).item() == 0 &&
         std::isnan(eval(var(one, var_options{.correction = 1})).item())));
  CHECK(std::isnan(eval(var(empty<float>({0}), var_options{.correction = 0})).item()));
  const tensor<float, 1> large = {3e19f, -3e19f};
  CHECK(eval(stddev(large, var_options{.correction = 0})).item() == infinity);  // the variance is
  CHECK(eval(var(large / 10, var_options{.correction = 0})).item() == Approx(9e36));
  CHECK(eval(var(cast<half>(x), 1, {.correction = 0}))(0) == cast<half>(tensor<float, 0>(full<float>(3.5f))).item());
  CHECK_THROWS_WITH(eval(var(x, 2, {.correction = 0})), "var: axis 2 is out of range for rank 2; use -2 to 1");
}

TEST_CASE("gradients of variances agree with differences, and are 0 where a deviation is") {
  std::mt19937 gen(1);
  const tensor x = differences::random(gen, {4, 3});
  differences::check([](const auto& v) { return eval(var(v, 0, {.correction = 0})); }, 12, x);
  differences::check([](const auto& v) { return eval(stddev(2 * v, 1, keepdim, {.correction = 0.5})); }, 12, x);
  differences::check([](const auto& v) { return std_mean(v, 1).spread; }, 12, x);
  differences::check([](const auto& v) { return var_mean(v, {0, 1}).mean; }, 12, x);
  differences::check([](const auto& v) { return cov(v); }, 12, x);
  differences::check([](const auto& v) { return corrcoef(v); }, 12, x);
  const variable<float, 1> same(full<float>({3}, 2));
  stddev(same).backward();
  CHECK(same.grad()(1) == 0);
  same.zero_grad();
  stddev(same, var_options{.correction = 0}).backward();
  CHECK(same.grad()(1) == 0);
}

TEST_CASE("std_mean and var_mean give the mean as well") {
  const tensor<float, 2> x = {{1, 2, 3, 6}, {4, 4, 4, 4}};
  const auto [variance, centre] = var_mean(x, 1, keepdim, {.correction = 0});
  CHECK((variance.shape() == extents<2>{{2, 1}} && variance(0, 0) == Approx(3.5f) && centre(0, 0) == 3));
  const auto all = std_mean(x * 2);
  CHECK((all.spread.item() == Approx(std::sqrt(64 / 7.f)) && all.mean.item() == 7));
}

TEST_CASE("cov and corrcoef compare rows") {
  const tensor<double, 2> x = {{1, 2, 3}, {6, 4, 2}, {1, 1, 4}};
  const tensor c = cov(x), r = corrcoef(x);
  CHECK((c(0, 0) == Approx(1) && c(0, 1) == Approx(-2) && c(2, 0) == Approx(1.5) && c(2, 2) == Approx(3)));
  CHECK((r(0, 1) == Approx(-1) && r(1, 1) == Approx(1) && r(0, 2) == Approx(1.5 / std::sqrt(3.))));
  CHECK(cov(x, {.correction = 0})(2, 2) == Approx(2));
  CHECK((cov(x.select(0, 2)).item() == Approx(3) && corrcoef(x.select(0, 2)).item() == Approx(1)));
}

TEST_CASE("aminmax gives both extremes, and sum_to_size undoes broadcasting") {
  const tensor<float, 2> x = {{3, 1, 2}, {0, 5, not_a_number}};
  const auto [low, high] = aminmax(x, 0, keepdim);
  CHECK((low.shape() == extents<2>{{1, 3}} && low(0, 0) == 0 && high(0, 1) == 5 && std::isnan(high(0, 2))));
  CHECK(aminmax(x.select(0, 0)).max.item() == 3);
  const variable<double, 3> v(ones<double>({2, 3, 4}));
  const variable columns = sum_to_size(v, {3, 1});
  CHECK((columns.shape() == extents<2>{{3, 1}} && columns(1, 0) == 8));
  columns.backward(tensor<double, 2>{{1}, {2}, {3}});
  CHECK(v.grad()(1, 2, 3) == 3);
  CHECK(sum_to_size(v, {2, 3, 4})(0, 0, 0) == 1);
  CHECK(sum_to_size(tensor<bool, 1>{true, true}, {1})(0) == 2);
  CHECK_THROWS_WITH(sum_to_size(v, {2, 4}), "sum_to_size: shape (2, 4) does not broadcast to shape (2, 3, 4)");
}

TEST_CASE("argmax and argmin name the last of equals where asked to") {
  const tensor<float, 2> x = {{2, 7, 7}, {1, 1, 3}};
  CHECK((argmax(x, 1, {.select_last = true})(0) == 2 && argmax(x, 1, {.select_last = false})(0) == 1));
  CHECK((argmin(x, 1, keepdim, {.select_last = true})(1, 0) == 1 &&
         argmin(x, arg_options{.select_last = true}).item() == 4));
  CHECK(argmax(x, {0, 1}, {.select_last = true}).item() == 2);
  CHECK(argmax(tensor<float, 1>{not_a_number, 1, not_a_number, 2}, arg_options{.select_last = true}).item() == 2);
  CHECK(argmax(variable<float, 2>(x), 0, {.select_last = true})(1) == 0);
  CHECK_THROWS_WITH(argmax(empty<float>({0}), arg_options{.select_last = true}),
                    "argmax: no values along the reduced axes of shape (0,)");
}

TEST_CASE("running sums and products run from either end, with or without the element itself") {
  const tensor<int, 2> x = {{1, 2, 3}, {4, 5, 6}};
  const auto row = [](const auto& t) {
    return std::vector<std::int64_t>(t.select(0, 1).begin(), t.select(0, 1).end());
  };
  CHECK(row(cumsum(x, 1, {.exclusive = true})) == std::vector<std::int64_t>{0, 4, 9});
  CHECK(row(cumsum(x, 1, {.reverse = true}).contiguous()) == std::vector<std::int64_t>{15, 11, 6});
  CHECK(row(cumprod(x, -1, {.exclusive = true, .reverse = true}).contiguous()) == std::vector<std::int64_t>{30, 6, 1});
  CHECK(row(cumprod(x, 0, {.exclusive = true})) == std::vector<std::int64_t>{1, 2, 3});
  CHECK(cumsum(empty<float>({2, 0}), 1, {.exclusive = true}).numel() == 0);
  std::mt19937 gen(2);
  differences::check([](const auto& v) { return cumprod(v, 1, {.exclusive = true, .reverse = true}); }, 12,
                     differences::random(gen, {4, 3}));
}

TEST_CASE("softmin, masked_softmax and hardmax") {
  const tensor<float, 2> x = {{1, 3, 2}, {5, 5, 0}};
  const tensor<bool, 2> mask = {{true, false, true}, {false, false, false}};
  const tensor<float, 2> p = masked_softmax(x, mask, 1), l = masked_log_softmax(x, mask, 1), s = softmin(x, 1);
  CHECK((p(0, 0) == Approx(1 / (1 + std::exp(1.f))) && p(0, 1) == 0 && std::isnan(p(1, 0))));
  CHECK((l(0, 2) == Approx(-std::log(1 + std::exp(-1.f))) && l(0, 1) == -infinity));
  CHECK(s(0, 0) == Approx(1 / (1 + std::exp(-2.f) + std::exp(-1.f))));
  const tensor choice = hardmax(x, 1), down = hardmax(x, 0);
  CHECK((choice(0, 1) == 1 && choice(0, 0) == 0 && choice(1, 0) == 1 && choice(1, 1) == 0 && down(0, 2) == 1));
  CHECK_THROWS_WITH(hardmax(x, 2), "hardmax: axis 2 is out of range for rank 2; use -2 to 1");
  std::mt19937 gen(3);
  differences::check(
      [](const auto& w) { return eval(masked_softmax(w, tensor<bool, 2>{{true, true, false}}, 1) + softmin(w, 0)); },
      12, differences::random(gen, {4, 3}));
}

TEST_CASE("reductions take a scalar as one axis, which goes") {
  const variable<float, 0> x(full<float>(-3));
  variable loss = sum(x, 0) + mean(x, -1, keepdim) + prod(x, 0) + logsumexp(x, {0}) + max(x, 0) + nanmean(x, 0);
  CHECK(loss.item() == Approx(-18));
  loss.backward();
  CHECK(x.grad().item() == Approx(6));
  CHECK((eval(argmax(x, 0)).item() == 0 && eval(var(x.value(), 0, {.correction = 0})).item() == 0));
  CHECK_THROWS_WITH(eval(sum(x, 1)), "sum: axis 1 is out of range for rank 1; use -1 to 0");
}
