// tests/grad/reduction_test.cpp: gradients of reductions, with what precedes and follows them.
#include "differences.hpp"

#include <limits>

using namespace sinter;
using differences::check;
using differences::random;

TEST_CASE("sums and means along any axes have gradients", "[grad]") {
  std::mt19937 gen(1);
  const auto x = random(gen, {3, 4, 5});
  check([](const auto& v) { return sum(v * v); }, 20, x);
  check([](const auto& v) { return sum(exp(v), 1); }, 20, x);
  check([](const auto& v) { return sum(sigmoid(v) * v, {0, 2}); }, 20, x);
  check([](const auto& v) { return mean(sqrt(v + 2), -1, keepdim) * v; }, 20, x);
  check([](const auto& v) { return exp(mean(v, 0) * 2) + 1; }, 20, x);
  check([](const auto& v) { return tanh(sum(tanh(v), {0, 1}, keepdim)); }, 20, x);
  check([](const auto& v, const auto& r) { return sum(v * r + r, 0); }, 20, x, random(gen, {5}));
  check([](const auto& v, const auto& r) { return sum(exp(v) * r, 2); }, 3, random(gen, {30, 50, 60}),
        random(gen, {60}));
  check([](const auto& v) { return sum(v.transpose(0, 2) * 2, 1); }, 20, x);
  check([](const auto& v) { return sum(exp(v)); }, 9, random(gen, extents<0>{}));
}

TEST_CASE("a sum over the root of any op that keeps its output has gradients", "[grad]") {
  std::mt19937 gen(2);
  const auto x = random(gen, {50}, 0.2, 1);
  check([](const auto& v) { return sum(exp(v)); }, 9, x);
  check([](const auto& v) { return sum(tanh(v)); }, 9, x);
  check([](const auto& v) { return mean(sqrt(v)); }, 9, x);
  check([](const auto& v) { return norm(sigmoid(v)); }, 9, x);
  check([](const auto& v) { return logsumexp(exp(v)); }, 9, x);
  check([](const auto& v) { return max(exp(v)); }, 9, x);
  check([](const auto& v) { return sum(sum(exp(v)) * v); }, 9, x);
}

TEST_CASE("var, norm and logsumexp have gradients", "[grad]") {
  std::mt19937 gen(3);
  const auto x = random(gen, {4, 6});
  check([](const auto& v) { return var(v * v); }, 24, x);
  check([](const auto& v) { return var(v, 1, keepdim) * v; }, 24, x);
  check([](const auto& v) { return norm(v, 0) * 2; }, 24, x);
  check([](const auto& v) { return norm(sin(v)); }, 24, x);
  check([](const auto& v) { return logsumexp(v * 3, 1); }, 24, x);
  check([](const auto& v) { return logsumexp(v, {0, 1}); }, 24, x);
  check([](const auto& v) { return logsumexp(v * 2, 0, keepdim) - v; }, 24, x);
}

TEST_CASE("max, min and prod have gradients", "[grad]") {
  std::mt19937 gen(4);
  const auto x = random(gen, {4, 6}, 0.3, 2);
  check([](const auto& v) { return max(v * v, 1); }, 24, x);
  check([](const auto& v) { return min(sin(v), 0, keepdim) * v; }, 24, x);
  check([](const auto& v) { return max(v) * min(v); }, 24, x);
  check([](const auto& v) { return prod(v, 1); }, 24, x);
  check([](const auto& v) { return prod(v + 1, {0, 1}); }, 24, x);
}

TEST_CASE("products with vectors have gradients", "[grad]") {
  std::mt19937 gen(5);
  const auto a = random(gen, {4, 6});
  const auto row = random(gen, {6});
  check([](const auto& m, const auto& v) { return mv(m, v); }, 24, a, row);
  check([](const auto& m, const auto& v) { return mv(exp(m.transpose()), v * 2) + 1; }, 24, a, random(gen, {4}));
  check([](const auto& v, const auto& w) { return dot(v, w); }, 6, row, random(gen, {6}));
  check([](const auto& v) { return dot(sin(v), v); }, 6, row);
}

TEST_CASE("the gradient of an extreme that is NaN goes to the NaN", "[grad]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const variable x = tensor<double, 2>{{1, nan, 3}, {nan, 5, nan}};
  variable(sum(max(x, 1))).backward();
  variable(sum(min(x, 1))).backward();
  const double expected[2][3] = {{0, 2, 0}, {1, 0, 1}};
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) CHECK(x.grad()(i, j) == expected[i][j]);
}

TEST_CASE("equal extremes share the gradient", "[grad]") {
  const variable x = tensor<double, 2>{{3, 1, 3}, {2, 2, 2}};
  const variable y = max(x, 1);
  y.backward(tensor<double, 1>{6, 9});
  CHECK(x.grad()(0, 0) == 3);
  CHECK(x.grad()(0, 1) == 0);
  CHECK(x.grad()(0, 2) == 3);
  CHECK(x.grad()(1, 1) == 3);
}

TEST_CASE("the product of rows with no, one and several zeros has the right gradient", "[grad]") {
  const variable x = tensor<double, 2>{{2, 3, 4}, {2, 0, 4}, {0, 0, 4}};
  const variable y = prod(x, 1);
  y.backward(ones<double>({3}));
  const double expected[3][3] = {{12, 8, 6}, {0, 8, 0}, {0, 0, 0}};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) CHECK(x.grad()(i, j) == expected[i][j]);
}

TEST_CASE("the gradient of a product is the product of the others, whatever they are", "[grad]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto check = [](const tensor<float, 2>& values, const auto& reduce, const tensor<float, 2>& expected) {
    const variable x = values;
    const variable y = reduce(x);
    y.backward(ones_like(y));
    for (int i = 0; i < values.extent(0); ++i)
      for (int j = 0; j < values.extent(1); ++j) {
        INFO(i << ", " << j << ": " << x.grad()(i, j));
        CHECK((x.grad()(i, j) == expected(i, j) || (std::isnan(x.grad()(i, j)) && std::isnan(expected(i, j)))));
      }
  };
  const auto of_rows = [](const auto& x) { return prod(x, 1); };
  const auto of_all = [](const auto& x) { return prod(x); };
  check({{0, inf, 1}, {inf, 2, 4}, {2, nan, 0}, {2, 3, 4}}, of_rows,
        {{inf, 0, nan}, {8, inf, inf}, {nan, 0, nan}, {12, 8, 6}});
  check({{0x1p100f, 0x1p100f, 2}, {0x1p-100f, 0x1p-100f, 1}}, of_rows,
        {{0x1p101f, 0x1p101f, inf}, {0x1p-100f, 0x1p-100f, 0}});  // the products themselves are inf and 0
  check({{0x1p100f, 0x1p100f, 0x1p-100f, 0}}, of_rows,
        {{0, 0, 0, 0x1p100f}});  // partial products leave the range of float
  check({{2, 0}, {4, 8}}, of_all, {{0, 64}, {0, 0}});
  check({{2, inf}, {4, 8}}, of_all, {{inf, 64}, {inf, inf}});
}

TEST_CASE("the gradient of a norm that is NaN is NaN", "[grad]") {
  const variable x = tensor<double, 1>{std::numeric_limits<double>::quiet_NaN(), 3, 4};
  variable(norm(x)).backward();
  for (const double g : x.grad()) CHECK(std::isnan(g));
}

TEST_CASE("gradients at the edge of the domain stay finite where they are defined", "[grad]") {
  const double inf = std::numeric_limits<double>::infinity();
  const variable zero = zeros<double>({3});
  variable(norm(zero)).backward();
  CHECK(zero.grad()(0) == 0);
  const variable low = full<double>({3}, -inf);
  variable(logsumexp(low)).backward();
  CHECK(low.grad()(1) == 0);
  const variable some = tensor<double, 1>{-inf, 0, -inf};
  variable(logsumexp(some)).backward();
  CHECK(some.grad()(0) == 0);
  CHECK(some.grad()(1) == 1);
  const variable big = tensor<double, 1>{1e4, -1e4};
  variable(logsumexp(big)).backward();
  CHECK(big.grad()(0) == 1);
  CHECK(big.grad()(1) == 0);
  const variable top = tensor<double, 1>{inf, 0};
  variable(max(top)).backward();
  CHECK(top.grad()(0) == 1);
  CHECK(top.grad()(1) == 0);
}
