// tests/grad/second_order_test.cpp: gradients of gradients, against closed forms and PyTorch's figures.
#include <cmath>
#include <vector>

#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

template <class Tensor>
void check_values(const Tensor& t, std::vector<double> expected, double tolerance = 1e-5) {
  const auto dense = t.contiguous();
  REQUIRE(dense.span().size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(std::abs(dense.span()[i] - expected[i]) <= tolerance * (1 + std::abs(expected[i])));
}

}  // namespace

TEST_CASE("the gradient of x^3 is 3 x^2, and the gradient of its sum 6 x") {
  variable<double, 1, cpu, 2> x = tensor<double, 1>{1, 2, -3};
  variable y = sum(x * x * x);
  variable slope = grad(y, x);
  check_values(slope.value(), {3, 12, 27}, 1e-12);
  CHECK(!x.has_grad());
  variable(sum(slope)).backward();
  check_values(x.grad(), {6, 12, -18}, 1e-12);
}

TEST_CASE("grad takes an expression that has yet to be computed") {
  const variable<double, 1, cpu, 2> x = tensor<double, 1>{1, -2};
  const variable slope = grad(sum(x * x * x), x);
  CHECK(slope.value()(1) == 12);
  variable(sum(slope)).backward();
  CHECK(x.grad()(1) == -12);
  CHECK_THROWS_AS(grad(variable<double, 0, cpu, 2>(), x), shape_error);
}

TEST_CASE("the gradient of a gradient agrees with differences of the gradient for every smooth unary op") {
  const tensor<double, 1> at = {0.3, 0.7, 1.1};
  const auto check = [&](const char* name, auto f) {
    INFO(name);
    const auto slope_at = [&](const tensor<double, 1>& p) {
      variable<double, 1, cpu, 2> x = p;
      return grad(variable(sum(f(x))), x).value();
    };
    variable<double, 1, cpu, 2> x = at;
    variable(sum(grad(variable(sum(f(x))), x))).backward();
    const double h = 1e-5;
    const tensor<double, 1> up = slope_at(eval(at + h)), down = slope_at(eval(at - h));
    for (int i = 0; i < 3; ++i) CHECK(x.grad()(i) == Approx((up(i) - down(i)) / (2 * h)).epsilon(1e-6).margin(1e-7));
  };
  check("exp", [](auto x) { return exp(x); });
  check("log", [](auto x) { return log(x); });
  check("sqrt", [](auto x) { return sqrt(x); });
  check("tanh", [](auto x) { return tanh(x); });
  check("sigmoid", [](auto x) { return sigmoid(x); });
  check("sin", [](auto x) { return sin(x); });
  check("cos", [](auto x) { return cos(x); });
  check("square", [](auto x) { return square(x); });
  check("division", [](auto x) { return 1 / (x + 1); });
  check("a product of several", [](auto x) { return tanh(x * x) * exp(-x) + x / (x + 2); });
}

TEST_CASE("a gradient penalty reaches weights of order 1 through matmul, broadcasting and sums") {
  // The same computation in PyTorch 2: torch.autograd.grad(y, a, create_graph=True), then (g * g).sum().backward().
  variable<float, 2, cpu, 2> a = tensor<float, 2>{{0.1f, 0.2f}, {0.3f, -0.4f}};
  variable<float, 2> w = tensor<float, 2>{{0.5f, -0.3f, 0.2f}, {0.1f, 0.7f, -0.6f}};
  variable<float, 1> b = tensor<float, 1>{0.1f, 0.2f, 0.3f};
  variable y = sum(tanh(matmul(a, w) + b) * sigmoid(b));
  variable g = grad(y, a);
  variable(sum(g * g)).backward();
  check_values(g.value(), {0.21539885, 0.06991428, 0.17272443, 0.17896431});
  check_values(a.grad(), {-0.02262788, 0.00295324, -0.01682415, -0.02420779});
  check_values(w.grad(), {0.37638119, 0.40891343, 0.39817098, 0.26064977, 0.25247672, 0.19782072});
  check_values(b.grad(), {0.02257784, 0.06412906, 0.03865465});
}

TEST_CASE("grad says when there is nothing to differentiate") {
  variable<float, 1, cpu, 2> x = tensor<float, 1>{1, 2};
  variable<float, 1, cpu, 2> other = tensor<float, 1>{1, 2};
  variable y = sum(x * x);
  CHECK_THROWS_AS(grad(y, other), autograd_error);
  CHECK_THROWS_AS(grad(variable(x * x), x), shape_error);
  y.backward();
  CHECK_THROWS_AS(grad(y, x), autograd_error);
}

TEST_CASE("an activation after a product or a sum is differentiated twice from the bare value", "[second_order]") {
  const variable<double, 2, cpu, 2> x = tensor<double, 2>{{0.5}};
  const tensor<double, 2> w = {{2}};
  const variable h = tanh(matmul(x, w));
  const variable s = sum(h);
  CHECK(grad(s, x)(0, 0) == Approx(2 * (1 - std::tanh(1.0) * std::tanh(1.0))));
  const variable e = exp(sum(x * w, 1));
  const variable t = sum(e);
  CHECK(grad(t, x)(0, 0) == Approx(2 * std::exp(1.0)));
}

TEST_CASE("grad of a graph whose operands were modified in place is an error", "[second_order]") {
  variable<double, 1, cpu, 2> x = tensor<double, 1>{1, 2};
  const variable cubes = sum(x * x * x);
  x.value() += 1.0;
  CHECK_THROWS_AS(grad(cubes, x), autograd_error);
  const variable<double, 2, cpu, 2> a = tensor<double, 2>{{1, 2}};
  tensor<double, 2> b = {{1}, {1}};
  const variable s = sum(matmul(a, b));
  b += 1.0;
  CHECK_THROWS_AS(grad(s, a), autograd_error);
}
