// tests/nn/loss_formulas_test.cpp: losses that are formulas, at their borders and with all reductions; the judge
// compares values and gradients with PyTorch's.
#include "../catch.hpp"

#include <cmath>
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

const tensor<double, 1> prediction = {-2, -0.5, 0, 0.25, 3}, target = {1, -1, 1, 1, -1};

template <class F, class G>
void check(const F& loss, const G& formula) {
  double total = 0;
  const auto all = eval(loss(prediction, target, reduction::none));
  for (index_t i = 0; i < 5; ++i) {
    CHECK(all(i) == Approx(formula(prediction(i), target(i))).margin(1e-14));
    total += formula(prediction(i), target(i));
  }
  CHECK(eval(loss(prediction, target, reduction::sum)).item() == Approx(total));
  CHECK(eval(loss(prediction, target, reduction::mean)).item() == Approx(total / 5));
}

}  // namespace

TEST_CASE("losses are the formulas of their docstrings") {
  check([](const auto&... a) { return l1_loss(a...); }, [](double x, double t) { return std::abs(x - t); });
  check([](const auto&... a) { return soft_margin_loss(a...); },
        [](double x, double t) { return std::log1p(std::exp(-t * x)); });
  check([](const auto& x, const auto& t, auto r) { return smooth_l1_loss(x, t, 2, r); },
        [](double x, double t) {
          const double d = std::abs(x - t);
          return d < 2 ? d * d / 4 : d - 1;
        });
  check([](const auto& x, const auto& t, auto r) { return smooth_l1_loss(x, t, 0, r); },
        [](double x, double t) { return std::abs(x - t); });
  check([](const auto& x, const auto& t, auto r) { return huber_loss(x, t, 2, r); },
        [](double x, double t) {
          const double d = std::abs(x - t);
          return d < 2 ? d * d / 2 : 2 * (d - 1);
        });
  check([](const auto& x, const auto& t, auto r) { return hinge_embedding_loss(x, t, 0.5, r); },
        [](double x, double t) { return t == 1 ? x : std::max(0., 0.5 - x); });
  check([](const auto& x, const auto& t, auto r) { return kl_div(x, abs(t), r); },
        [](double x, double t) { return std::abs(t) * (std::log(std::abs(t)) - x); });
  check([](const auto& x, const auto& t, auto r) { return kl_div(x, t, log_target, r); },
        [](double x, double t) { return std::exp(t) * (t - x); });
  check([](const auto& x, const auto& t, auto r) { return poisson_nll_loss(x, abs(t) + 2, {.full = true}, r); },
        [](double x, double t) {
          const double n = std::abs(t) + 2;
          return std::exp(x) - n * x + n * std::log(n) - n + std::log(2 * M_PI * n) / 2;
        });
  check([](const auto& x, const auto& t, auto r) { return poisson_nll_loss(abs(x), t, {.log_input = false}, r); },
        [](double x, double t) { return std::abs(x) - t * std::log(std::abs(x) + 1e-8); });
}

TEST_CASE("losses and their gradients stay finite where logarithms and exponentials do not") {
  const variable<float, 1> p(tensor<float, 1>{0, 1, 0, 1});
  variable loss = binary_cross_entropy(p, tensor<float, 1>{0, 1, 1, 0}, reduction::none);
  CHECK((loss.value()(0) == 0 && loss.value()(1) == 0 && loss.value()(2) == 100 && loss.value()(3) == 100));
  const variable<float, 1> x(tensor<float, 1>{-1000, 1000});
  variable margin = soft_margin_loss(x, tensor<float, 1>{1, 1}, reduction::sum);
  margin.backward();
  CHECK(margin.item() == 1000);
  CHECK((x.grad()(0) == -1 && x.grad()(1) == 0));
  // No term of a count that is 0 or 1.
  const variable<float, 1> rate(tensor<float, 1>{0, 0}), count(tensor<float, 1>{0, 1});
  variable poisson = poisson_nll_loss(rate, count, {.full = true}, reduction::sum);
  poisson.backward();
  CHECK(poisson.item() == 2);
  CHECK((count.grad()(0) == 0 && count.grad()(1) == 0));
}

TEST_CASE("losses take equal shapes and sensible numbers alone") {
  const auto wide = zeros<double>({4});
  CHECK_THROWS_WITH(l1_loss(prediction, wide),
                    "l1_loss: prediction of shape (5,) and target of shape (4,) differ; reshape one");
  CHECK_THROWS_AS(kl_div(prediction, wide), shape_error);
  CHECK_THROWS_WITH(huber_loss(prediction, target, -1), "huber_loss: delta is -1; it must be 0 or more");
  CHECK_THROWS_WITH(smooth_l1_loss(prediction, target, NAN), "smooth_l1_loss: beta is nan; it must be 0 or more");
}
