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

TEST_CASE("losses have weights that broadcast") {
  const tensor<double, 2> p = {{0.2, 0.9, 0.4}, {0.7, 0.3, 0.6}}, t = {{1, 0, 1}, {0, 0.5, 1}};
  const tensor<double, 1> weight = {1, 0.5, 4};
  const tensor<double, 2> losses = binary_cross_entropy(p, t, reduction::none);
  const auto weighted = binary_cross_entropy(p, t, {.weight = weight}, reduction::none);
  double total = 0;
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 3; ++j) {
      CHECK(weighted(i, j) == Approx(losses(i, j) * weight(j)));
      total += losses(i, j) * weight(j);
    }
  CHECK(binary_cross_entropy(p, t, {.weight = weight}).item() == Approx(total / 6));
  CHECK(binary_cross_entropy(p, t, {.weight = weight}, reduction::sum).item() == Approx(total));
  CHECK(binary_cross_entropy(p, t, {}).item() == Approx(eval(binary_cross_entropy(p, t)).item()));
  const auto rows = binary_cross_entropy(p, t, {.weight = tensor<double, 2>{{2}, {3}}}, reduction::none);
  CHECK((rows(0, 1) == Approx(2 * losses(0, 1)) && rows(1, 1) == Approx(3 * losses(1, 1))));
  const auto one = binary_cross_entropy(p, t, {.weight = full<double>(3)}, reduction::none);
  CHECK(one(1, 2) == Approx(3 * losses(1, 2)));
  CHECK_THROWS_WITH(binary_cross_entropy(p, t, {.weight = zeros<double>({2})}),
                    "binary_cross_entropy: weight of shape (1, 2) for losses of shape (2, 3); each axis has their "
                    "extent or 1");
}

TEST_CASE("sigmoid_focal_loss counts little what is right") {
  const tensor<double, 1> x = {-3, -0.5, 0, 2, 40}, t = {1, 0, 1, 0, 1};
  for (const double alpha : {0.25, -1.})
    for (const double gamma : {0., 0.5, 2.}) {
      const focal_options o{.alpha = alpha, .gamma = gamma};
      const auto formula = [&](double logit, double target) {
        const double p = 1 / (1 + std::exp(target == 1 ? -logit : logit)),
                     q = 1 / (1 + std::exp(target == 1 ? logit : -logit));
        return -std::log(p) * std::pow(q, gamma) * (alpha < 0 ? 1 : target == 1 ? alpha : 1 - alpha);
      };
      const variable<double, 1> v(x);
      variable losses = sigmoid_focal_loss(v, t, o, reduction::none);
      losses.backward(ones<double>({5}));
      double total = 0;
      for (index_t i = 0; i < 5; ++i) {
        CHECK(losses(i) == Approx(formula(x(i), t(i))).margin(1e-15));
        const double slope = (formula(x(i) + 1e-6, t(i)) - formula(x(i) - 1e-6, t(i))) / 2e-6;
        CHECK(v.grad()(i) == Approx(slope).margin(1e-8));
        total += formula(x(i), t(i));
      }
      CHECK(sigmoid_focal_loss(x, t, o).item() == Approx(total / 5));
    }
  CHECK_THROWS_WITH(sigmoid_focal_loss(x, t, {.gamma = -1}), "sigmoid_focal_loss: gamma is -1; it must be 0 or more");
}

TEST_CASE("batchmean divides by the extent of axis 0") {
  const tensor<double, 2> x = {{-1, -2, -0.5}, {-3, -0.1, -1}}, t = {{0.2, 0.3, 0.5}, {0, 1, 0}};
  CHECK(eval(kl_div(x, t, reduction::batchmean)).item() == Approx(eval(kl_div(x, t, reduction::sum)).item() / 2));
  CHECK(eval(kl_div(x, x, log_target, reduction::batchmean)).item() == 0);
  CHECK(eval(kl_div(full<double>(-1), full<double>(0.5), reduction::batchmean)).item() ==
        Approx(0.5 * (std::log(0.5) + 1)));
}

TEST_CASE("gaussian_nll_loss takes a variance for each element, or for each line") {
  const tensor<double, 2> mean = {{1, 2}, {-1, 0.5}}, seen = {{1.5, 2}, {0, 0}}, variance = {{0.5, 2}, {1, 1e-9}};
  const auto formula = [&](index_t i, index_t j, double v, double eps = 1e-6) {
    const double held = std::max(v, eps), d = mean(i, j) - seen(i, j);
    return (std::log(held) + d * d / held) / 2;
  };
  const auto each = gaussian_nll_loss(mean, seen, variance, {}, reduction::none);
  const auto full_one = gaussian_nll_loss(mean, seen, variance, {.full = true, .eps = 1e-3}, reduction::none);
  const auto lines = gaussian_nll_loss(mean, seen, tensor<double, 1>{2, 3}, {}, reduction::none);
  const auto columns = gaussian_nll_loss(mean, seen, tensor<double, 2>{{2}, {3}}, {}, reduction::none);
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 2; ++j) {
      CHECK(each(i, j) == Approx(formula(i, j, variance(i, j))));
      CHECK(full_one(i, j) == Approx(formula(i, j, variance(i, j), 1e-3) + std::log(2 * M_PI) / 2));
      CHECK(lines(i, j) == Approx(formula(i, j, 2. + static_cast<double>(i))));
      CHECK(columns(i, j) == lines(i, j));
    }
  CHECK(gaussian_nll_loss(mean, seen, variance).item() == Approx(eval(sum(each)).item() / 4));
  const auto spread = gaussian_nll_loss(mean, tensor<double, 2>{{1, 2}}, variance, {}, reduction::none);
  CHECK(spread(1, 0) == Approx((std::log(1.) + 4) / 2));

  // The derivatives, also where the variance is held.
  const variable<double, 2> m(mean), s(seen), v(variance);
  variable loss = gaussian_nll_loss(m, s, v, {.eps = 0.1}, reduction::sum);
  loss.backward();
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 2; ++j) {
      const double held = std::max(variance(i, j), 0.1), d = mean(i, j) - seen(i, j);
      CHECK(m.grad()(i, j) == Approx(d / held));
      CHECK(s.grad()(i, j) == Approx(-d / held));
      CHECK(v.grad()(i, j) == Approx((1 / held - d * d / (held * held)) / 2));
    }

  CHECK_THROWS_WITH(gaussian_nll_loss(mean, seen, variance - 1), "gaussian_nll_loss: a variance below 0");
  CHECK_THROWS_WITH(gaussian_nll_loss(mean, zeros<double>({3, 2}), variance),
                    "gaussian_nll_loss: target of shape (3, 2) for a prediction of shape (2, 2); each axis has its "
                    "extent or 1");
  CHECK_THROWS_WITH(gaussian_nll_loss(mean, seen, zeros<double>({1, 2})),
                    "gaussian_nll_loss: variance of shape (1, 2) for a prediction of shape (2, 2); it has that shape, "
                    "or 1 for its last extent, or no last axis");
  CHECK(std::isnan(gaussian_nll_loss(mean, seen, variance * NAN).item()));
}

template <class A, class B, class V>
concept has_gaussian = requires(const A& a, const B& b, const V& v) { gaussian_nll_loss(a, b, v); };
static_assert(has_gaussian<tensor<float, 2>, tensor<float, 2>, variable<float, 1>>);
static_assert(!has_gaussian<tensor<float, 3>, tensor<float, 3>, tensor<float, 1>>);
static_assert(!has_gaussian<tensor<float, 2>, tensor<float, 2>, tensor<float, 2, numa<0>>>);
static_assert(!has_gaussian<tensor<float, 2>, tensor<float, 1>, tensor<float, 2>>);

TEST_CASE("losses take equal shapes and sensible numbers alone") {
  const auto wide = zeros<double>({4});
  CHECK_THROWS_WITH(l1_loss(prediction, wide),
                    "l1_loss: prediction of shape (5,) and target of shape (4,) differ; reshape one");
  CHECK_THROWS_AS(kl_div(prediction, wide), shape_error);
  CHECK_THROWS_WITH(huber_loss(prediction, target, -1), "huber_loss: delta is -1; it must be 0 or more");
  CHECK_THROWS_WITH(smooth_l1_loss(prediction, target, NAN), "smooth_l1_loss: beta is nan; it must be 0 or more");
}
