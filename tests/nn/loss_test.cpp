// tests/nn/loss_test.cpp: losses and their gradients against PyTorch's, and what they reject.
#include "../catch.hpp"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

struct loss_case {
  std::string name;
  tensor<double, 2> x, target;
  tensor<std::int64_t, 1> labels;
  double mean = 0, sum = 0;
  std::vector<double> grad;
};

std::vector<loss_case> cases() {
  std::vector<loss_case> all;
  std::ifstream file(SINTER_REPOSITORY "/tests/nn/reference/losses.csv");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string field;
    loss_case c;
    std::getline(in, c.name, ',');
    const auto number = [&] {
      std::getline(in, field, ',');
      return std::strtod(field.c_str(), nullptr);  // stod throws for denormal numbers
    };
    const auto rows = static_cast<index_t>(number()), columns = static_cast<index_t>(number());
    c.x = empty<double>({rows, columns});
    for (double& v : c.x) v = number();
    if (c.name == "nll_loss" || c.name == "cross_entropy") {
      c.labels = empty<std::int64_t>({rows});
      for (auto& v : c.labels) v = static_cast<std::int64_t>(number());
    } else {
      c.target = empty<double>({rows, columns});
      for (double& v : c.target) v = number();
    }
    c.mean = number();
    c.sum = number();
    for (index_t i = 0; i < rows * columns; ++i) c.grad.push_back(number());
    all.push_back(c);
  }
  return all;
}

template <class Loss>
void compare(const loss_case& c, const Loss& loss) {
  INFO(c.name << " with x(0,0) = " << c.x(0, 0));
  const variable x = c.x;
  const variable<double, 0> mean = loss(x, reduction::mean);
  CHECK(mean.item() == Approx(c.mean).epsilon(1e-12));
  CHECK(eval(loss(c.x, reduction::sum)).item() == Approx(c.sum).epsilon(1e-12));
  CHECK(eval(sum(loss(c.x, reduction::none))).item() == Approx(c.sum).epsilon(1e-12));
  mean.backward();
  for (std::size_t i = 0; i < c.grad.size(); ++i)
    CHECK(x.grad().data()[i] == Approx(c.grad[i]).epsilon(1e-10).margin(1e-15));
}

}  // namespace

TEST_CASE("losses and their gradients are PyTorch's") {
  int n = 0;
  for (const loss_case& c : cases()) {
    if (c.name == "mse_loss") compare(c, [&](const auto& x, auto r) { return mse_loss(x, c.target, r); });
    if (c.name == "bce_with_logits") compare(c, [&](const auto& x, auto r) { return bce_with_logits(x, c.target, r); });
    if (c.name == "nll_loss") compare(c, [&](const auto& x, auto r) { return nll_loss(x, c.labels, r); });
    if (c.name == "cross_entropy") compare(c, [&](const auto& x, auto r) { return cross_entropy(x, c.labels, r); });
    ++n;
  }
  CHECK(n == 14);
}

TEST_CASE("losses reject shapes and labels that do not fit") {
  const auto x = zeros<float>({4, 3});
  CHECK_THROWS_WITH(mse_loss(x, zeros<float>({4, 1})),
                    Contains("mse_loss") && Contains("(4, 3)") && Contains("(4, 1)"));
  CHECK_THROWS_AS(bce_with_logits(x, zeros<float>({1, 3})), shape_error);
  CHECK_THROWS_WITH(nll_loss(x, zeros<int>({5})), Contains("labels of shape (5,) for logits of shape (4, 3)"));
  CHECK_THROWS_AS(nll_loss(x, tensor<int, 1>{0, 1, 2, 3}), index_error);
  CHECK_THROWS_AS(nll_loss(x, tensor<int, 1>{0, -1, 2, 1}), index_error);
  CHECK_THROWS_AS(mse_loss(tensor<float, 1>(), zeros<float>({1})), shape_error);
  CHECK(eval(nll_loss(x, tensor<std::uint8_t, 1>{0, 1, 2, 1})).item() == 0.f);
}

template <class A, class B>
concept has_mse = requires(const A& a, const B& b) { mse_loss(a, b); };
template <class A, class B>
concept has_nll = requires(const A& a, const B& b) { nll_loss(a, b); };

static_assert(has_mse<variable<float, 2>, tensor<float, 2>>);
static_assert(!has_mse<variable<float, 2>, tensor<float, 2, numa<0>>>);
static_assert(!has_mse<tensor<float, 2>, tensor<float, 1>>);
static_assert(!has_nll<variable<float, 2, cuda<0>>, tensor<std::int64_t, 1>>);
static_assert(has_nll<variable<float, 2, numa<0>>, tensor<std::int64_t, 1, numa<0>>>);
static_assert(!has_nll<variable<float, 2>, tensor<float, 1>>);

TEST_CASE("nll_loss weighs classes and ignores a label") {
  const tensor<double, 2> x = {{-1, -2, -0.5}, {-3, -0.1, -1}, {-0.7, -0.2, -4}, {-INFINITY, -1, -2}};
  const tensor<int, 1> labels = {2, 0, -1, -1};
  const tensor<double, 1> weight = {0.5, 3, 2};
  const auto each = nll_loss(x, labels, {.weight = weight, .ignore_index = -1}, reduction::none);
  CHECK((each(0) == 1 && each(1) == 1.5 && each(2) == 0 && each(3) == 0));
  CHECK(nll_loss(x, labels, {.weight = weight, .ignore_index = -1}, reduction::sum).item() == 2.5);
  CHECK(nll_loss(x, labels, {.weight = weight, .ignore_index = -1}).item() == 1);
  CHECK(nll_loss(x, labels, {.ignore_index = -1}).item() == 1.75);
  CHECK(std::isnan(nll_loss(x, labels * 0 - 1, {.ignore_index = -1}).item()));
  CHECK(nll_loss(x[1], full<int>(0), {.weight = weight}, reduction::none).item() == 1.5);
  const variable<double, 2> v(x);
  variable loss = nll_loss(v, labels, {.weight = weight, .ignore_index = -1});
  loss.backward();
  CHECK((v.grad()(0, 2) == Approx(-0.8) && v.grad()(1, 0) == Approx(-0.2) && v.grad()(0, 0) == 0));
  CHECK((v.grad()(2, 0) == 0 && v.grad()(3, 0) == 0));
  CHECK_THROWS_WITH(nll_loss(x, labels, {.weight = zeros<double>({4})}),
                    "nll_loss: weights of shape (4,) for 3 classes; each class has one");
  CHECK_THROWS_WITH(nll_loss(x, labels, {.weight = weight}), Contains("nll_loss: label -1 at position 2"));
  CHECK_THROWS_WITH(cross_entropy(x, labels, {.weight = weight}), Contains("cross_entropy: label -1 at position 2"));
  // An ignored row of which nothing is a number.
  CHECK(cross_entropy(x.slice(0, 2, 4), tensor<int, 1>{1, -1}, {.ignore_index = -1}).item() > 0);
}

TEST_CASE("bce_with_logits has weights of losses and of the positive") {
  const tensor<double, 2> x = {{-1, 2, 0.5}, {3, -0.1, -40}}, t = {{1, 0, 0.5}, {0, 1, 1}};
  const tensor<double, 1> more = {2, 5, 0.5};
  const tensor<double, 2> weight = {{3}, {0.25}};
  const auto each = bce_with_logits(x, t, {.weight = weight, .pos_weight = more}, reduction::none);
  const auto positive = bce_with_logits(x, t, {.pos_weight = more}, reduction::none);
  double total = 0;
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 3; ++j) {
      const double p = 1 / (1 + std::exp(-x(i, j)));
      const double loss = -(more(j) * t(i, j) * std::log(p) + (1 - t(i, j)) * std::log1p(-p));
      CHECK(positive(i, j) == Approx(loss));
      CHECK(each(i, j) == Approx(loss * weight(i, 0)));
      total += loss * weight(i, 0);
    }
  const variable<double, 2> v(x);
  variable mean = bce_with_logits(v, t, {.weight = weight, .pos_weight = more});
  mean.backward();
  CHECK(mean.item() == Approx(total / 6));
  CHECK(v.grad()(0, 0) == Approx(-2 * 3 / (1 + std::exp(-1.)) / 6));
  CHECK(bce_with_logits(x, t, {}, reduction::sum).item() == Approx(eval(bce_with_logits(x, t, reduction::sum)).item()));
  CHECK_THROWS_WITH(bce_with_logits(x, t, {.pos_weight = zeros<double>({2})}),
                    Contains("bce_with_logits: pos_weight of shape (1, 2) for losses of shape (2, 3)"));
}
