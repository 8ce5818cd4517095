// tests/optim/lbfgs_test.cpp: L-BFGS goes where PyTorch's goes.
#include "../catch.hpp"
#include "reference.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

template <class X>
auto rosenbrock(const X& x) {
  return sum(100 * square(x.slice(0, 1, 4) - square(x.slice(0, 0, 3))) + square(1 - x.slice(0, 0, 3)));
}

template <device D>
void follow(const std::string& name, const optim::lbfgs_options& options) {
  INFO(name);
  const std::vector<double> expected = table("lbfgs.csv").at(name);
  REQUIRE(expected.size() == 30);
  const variable<double, 1, D> x = tensor<double, 1>{-1.2, 1, 0.5, 2}.to<D>();
  optim::lbfgs optimizer(x, options);
  auto at = expected.begin();
  for (int t = 0; t < 5; ++t) {
    const double loss = optimizer.step([&] {
      optimizer.zero_grad();
      variable<double, 0, D> value = rosenbrock(x);
      value.backward();
      return value;
    });
    INFO("step " << t);
    for (index_t i = 0; i < 4; ++i) CHECK(x(i) == Approx(*at++).epsilon(1e-6).margin(1e-8));
    CHECK(loss == Approx(*at++).epsilon(1e-6).margin(1e-12));
    CHECK(static_cast<double>(optimizer.evaluations()) == *at++);
  }
}

}  // namespace

TEST_CASE("lbfgs goes where PyTorch's goes") {
  follow<cpu>("plain", {.lr = 0.05, .max_iter = 8});
  follow<cpu>("short", {.lr = 0.02, .max_iter = 8, .history_size = 2});
  follow<cpu>("wolfe", {.max_iter = 6, .line_search_fn = optim::line_search::strong_wolfe});
  follow<numa<1>>("wolfe_short",
                  {.max_iter = 7, .history_size = 3, .line_search_fn = optim::line_search::strong_wolfe});
  follow<cpu>("wolfe_few", {.lr = 3, .max_iter = 4, .max_eval = 5, .line_search_fn = optim::line_search::strong_wolfe});
}

TEST_CASE("lbfgs solves least squares of parameters of several types at once") {
  generator gen(1);
  const nn::linear fc(5, 1, gen);
  const variable<double, 0> shift = full<double>(extents<0>{}, 3.);
  const tensor x = randn(gen, {40, 5});
  const tensor y = 2 * sum(x, 1, keepdim) + 1;
  optim::lbfgs optimizer(fc, {.max_iter = 50, .line_search_fn = optim::line_search::strong_wolfe});
  int calls = 0;
  const auto closure = [&] {
    ++calls;
    optimizer.zero_grad();
    variable loss = mse_loss(fc(x), y);
    loss.backward();
    return loss.item();  // a number
  };
  const double first = optimizer.step(closure);
  CHECK(first > 1);
  CHECK(optimizer.evaluations() == calls);
  CHECK(mse_loss(fc(x), y).item() < 1e-8);
  CHECK(fc.bias(0) == Approx(1).epsilon(1e-3));
  const index_t iterations = optimizer.iterations();
  optim::lbfgs of_done(fc, {.tolerance_grad = 1});
  of_done.step(closure);
  CHECK(of_done.evaluations() == 1);
  CHECK(of_done.iterations() == 0);
  CHECK(iterations > 2);
}

TEST_CASE("a closure that throws leaves lbfgs's parameters; senseless settings are refused") {
  const variable<float, 1> x = tensor<float, 1>{-1.2f, 1, 0.5f, 2}, unused = ones<float>({2});
  optim::lbfgs optimizer(std::vector{x, unused}, {.lr = 0.1, .max_iter = 5});
  int calls = 0;
  const auto closure = [&] {
    if (++calls == 2) throw std::runtime_error("stop");
    optimizer.zero_grad();
    variable<float, 0> value = rosenbrock(x);
    value.backward();
    return value;
  };
  CHECK_THROWS_AS(optimizer.step(closure), std::runtime_error);
  CHECK(x(0) == -1.2f);
  CHECK(x(3) == 2);
  optimizer.step(closure);
  CHECK(x(0) != -1.2f);
  CHECK(unused(1) == 1);
  CHECK_THROWS_WITH(optim::lbfgs(x, {.max_iter = 0}), Contains("must be at least 1"));
  CHECK_THROWS_AS(optim::lbfgs(x, {.tolerance_grad = -1}), value_error);
  CHECK_THROWS_AS(optim::lbfgs(x, {.lr = NAN}), value_error);
  CHECK_THROWS_WITH(optim::lbfgs(std::vector<variable<float, 1>>()), Contains("no tracked parameters"));
  generator gen(1);
  CHECK_THROWS_WITH(optim::lbfgs(nn::embedding(5, 2, gen, {.sparse = true})), Contains("held by rows"));
}
