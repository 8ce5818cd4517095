// tests/reduce/range_test.cpp: norms, variances and means that are in the range of their type although squares or sums
// are not, on every path through a reduction.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace sinter;

namespace {

constexpr auto inf = std::numeric_limits<float>::infinity();

/// (rows, columns) of numbers of about the size `unit`.
template <class T>
tensor<T, 2> numbers(index_t rows, index_t columns, double unit) {
  auto x = empty<T>({rows, columns});
  for (index_t i = 0; i < x.numel(); ++i)
    x.data()[i] = static_cast<T>(unit * (0.5 + 0.4 * std::sin(static_cast<double>(i) * 0.7)));
  return x;
}

/// The norm and the variance of the elements first, first + step, ... in units of `unit`, in long double.
struct reference {
  long double norm = 0, mean = 0, var = 0;
};
template <class T>
reference of(const tensor<T, 2>& x, index_t first, index_t step, index_t n, double unit) {
  reference r;
  const auto at = [&](index_t i) { return static_cast<long double>(x.data()[first + i * step]) / unit; };
  for (index_t i = 0; i < n; ++i) {
    r.norm += at(i) * at(i);
    r.mean += at(i) / static_cast<long double>(n);
  }
  for (index_t i = 0; i < n; ++i) r.var += (at(i) - r.mean) * (at(i) - r.mean) / static_cast<long double>(n - 1);
  r.norm = std::sqrt(r.norm);
  return r;
}

template <class T>
void close(T found, long double expected, double unit, double tolerance = 1e-6) {
  const auto exact = expected * static_cast<long double>(unit);
  if (exact > static_cast<long double>(std::numeric_limits<T>::max())) {
    CHECK(std::isinf(found));
    return;
  }
  const auto lost = static_cast<long double>(std::numeric_limits<T>::denorm_min());
  INFO(found << " for " << static_cast<double>(exact));
  CHECK(std::abs(static_cast<long double>(found) - exact) <= static_cast<long double>(tolerance) * exact + lost);
}

struct sizes {
  index_t rows, columns;
};
/// Short and long rows, few and many columns, tails of vectors, pieces that several threads fold.
const sizes shapes[] = {{1, 1}, {3, 7}, {5, 64}, {2, 1030}, {2, 70000}, {40, 700}, {700, 5}, {70000, 3}, {9, 513}};

}  // namespace

TEMPLATE_TEST_CASE("norm is right where squares leave the range", "[range]", float, double) {
  const bool is_float = std::is_same_v<TestType, float>;
  const double most = static_cast<double>(std::numeric_limits<TestType>::max());
  std::vector<double> units{1e-38, 1e-30, 1e-19, 1, 1e19, 1e30, most / 1.1};
  if (!is_float) units.insert(units.end(), {1e-307, 1e-200, 1e-160, 1e140, 1e200});
  for (const double unit : units)
    for (const auto [rows, columns] : shapes) {
      INFO(unit << ": " << rows << " x " << columns);
      const auto x = numbers<TestType>(rows, columns, unit);
      close(eval(norm(x)).item(), of(x, 0, 1, x.numel(), unit).norm, unit);
      const tensor by_row = norm(x, 1), by_column = norm(x, 0);
      close(by_row(rows - 1), of(x, (rows - 1) * columns, 1, columns, unit).norm, unit);
      close(by_column(0), of(x, 0, columns, rows, unit).norm, unit);
      close(by_column(columns - 1), of(x, columns - 1, columns, rows, unit).norm, unit);
      close(tensor(norm(x / 2, 0) * 2)(0), of(x, 0, columns, rows, unit).norm, unit);
    }
}

TEMPLATE_TEST_CASE("large, middle and small numbers stand beside each other in a norm", "[range]", float, double) {
  using limits = std::numeric_limits<TestType>;
  const TestType large = limits::max() / 8, small = limits::min();
  for (const index_t n : {5, 100, 5000, 100000}) {
    auto x = full<TestType>({n}, small);
    close(eval(norm(x)).item(), std::sqrt(static_cast<long double>(n)), static_cast<double>(small));
    x(n / 2) = 1;
    CHECK(eval(norm(x)).item() == 1);
    x(0) = x(n - 1) = large;
    close(eval(norm(x)).item(), std::sqrt(2.L), static_cast<double>(large));
    CHECK(tensor(norm(x.unsqueeze(1).broadcast_to({n, 40}), 0))(39) == Approx(eval(norm(x)).item()).epsilon(1e-6));
    x(1) = std::numeric_limits<TestType>::infinity();
    CHECK(std::isinf(eval(norm(x)).item()));
    x(2) = limits::quiet_NaN();
    CHECK(std::isnan(eval(norm(x)).item()));
  }
  CHECK(eval(norm(zeros<TestType>({5000}))).item() == 0);
  CHECK(eval(norm(zeros<TestType>({0}))).item() == 0);
}

TEMPLATE_TEST_CASE("the gradient of a norm is x / norm at any size", "[range]", float, double) {
  for (const double unit : {1e-37, 1e-30, 1., 1e30}) {
    variable<TestType, 2> x(numbers<TestType>(6, 40, unit));
    const tensor<TestType, 1> y = norm(x.value(), 1);
    sum(norm(x, 1)).backward();
    for (index_t i = 0; i < 6; ++i)
      CHECK(static_cast<double>(x.grad()(i, 9)) ==
            Approx(static_cast<double>(x.value()(i, 9)) / static_cast<double>(y(i))).epsilon(2e-6));
    variable<TestType, 1, cpu, 2> v(eval(x.value()[0]));
    const variable g = grad(variable(norm(v)), v);
    CHECK(static_cast<double>(g.value()(9)) ==
          Approx(static_cast<double>(v.value()(9)) / static_cast<double>(y(0))).epsilon(2e-6));
    const variable total = sum(g * g);  // 1 everywhere
    CHECK(static_cast<double>(total.value().item()) == Approx(1).epsilon(2e-6));
    total.backward();
    CHECK(std::abs(static_cast<double>(v.grad()(9)) * unit) < 1e-6);
  }
  variable<TestType, 1> zero(zeros<TestType>({5}));
  norm(zero).backward();
  CHECK_FALSE(eval(any(zero.grad() != 0)).item());
}

TEST_CASE("var is right where the sum of squares leaves the range", "[range]") {
  auto one = zeros<float>({16});
  one(3) = 2e19f;
  CHECK(eval(var(one)).item() == Approx(2.5e37).epsilon(1e-6));
  CHECK(eval(sqrt(var(one))).item() == Approx(5e18).epsilon(1e-6));
  for (const double unit : {3e-19, 1e-15, 1., 1e10, 2e19})
    for (const auto [rows, columns] : shapes) {
      if (rows == 1) continue;
      INFO(unit << ": " << rows << " x " << columns);
      const auto x = numbers<float>(rows, columns, unit);
      const auto squared = unit * unit;
      close(eval(var(x)).item(), of(x, 0, 1, x.numel(), unit).var, squared, 2e-6);
      close(tensor(var(x, 1))(rows - 1), of(x, (rows - 1) * columns, 1, columns, unit).var, squared, 2e-6);
      close(tensor(var(x, 0))(columns - 1), of(x, columns - 1, columns, rows, unit).var, squared, 2e-6);
    }
  for (const auto [rows, columns] : shapes) {
    if (rows * columns < 2) continue;
    const auto x = full<float>({rows, columns}, 3e38f);
    CHECK(eval(var(x)).item() == 0);
    CHECK(eval(mean(x)).item() == 3e38f);
    if (rows > 1) CHECK(tensor(var(x, 0))(columns - 1) == 0);
    if (columns > 1) CHECK(tensor(var(x, 1))(rows - 1) == 0);
    CHECK(tensor(mean(x, 0))(columns - 1) == 3e38f);
    CHECK(tensor(mean(x, 1))(rows - 1) == 3e38f);
  }
  variable<float, 1> v(one.clone());
  var(v).backward();
  CHECK(v.grad()(3) == Approx(2 * (2e19 - 1.25e18) / 15).epsilon(1e-6));
  CHECK(static_cast<float>(eval(var(cast<bfloat16>(one))).item()) == Approx(2.5e37).epsilon(2e-2));
  CHECK(std::isnan(eval(var(zeros<float>({1}))).item()));
  CHECK(std::isnan(eval(var(zeros<float>({0}))).item()));
}

TEST_CASE("sums pass through sums that are beyond the range", "[range]") {
  for (const index_t n : {6, 200, 6000, 200000}) {
    auto x = zeros<float>({n, 20});
    x[0] = x[1] = 3e38f;
    x[n - 1] = x[n - 2] = -3e38f;
    CHECK(eval(sum(x)).item() == 0);
    CHECK(tensor(sum(x, 0))(17) == 0);
    CHECK(tensor(sum(x.transpose().contiguous(), 1))(17) == 0);
    x[2] = 3e38f;
    CHECK(tensor(sum(x, 0))(17) == 3e38f);
    x(1, 17) = inf;
    CHECK(tensor(sum(x, 0))(17) == inf);
    CHECK(tensor(sum(x, 0))(16) != inf);
  }
}

TEMPLATE_TEST_CASE("half and bfloat16 fold squares beyond their range", "[range]", half, bfloat16) {
  const bool is_half = std::is_same_v<TestType, half>;
  for (const float unit : is_half ? std::vector<float>{1e-6f, 1e-3f, 1, 1000} : std::vector<float>{1e-37f, 1, 1e36f}) {
    const auto x = full<TestType>({400}, TestType(unit));
    const auto expected = 20 * static_cast<float>(TestType(unit));
    CHECK(static_cast<float>(eval(norm(x)).item()) == Approx(expected).epsilon(1e-2));
    variable<TestType, 1> v(x.clone());
    norm(v).backward();
    CHECK(static_cast<float>(v.grad()(7)) == Approx(0.05).epsilon(1e-2));
  }
}
