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
