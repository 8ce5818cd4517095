// tests/nn/bilinear_test.cpp: the layer of products of two inputs: its formula, its parameters, and what it refuses.
#include "../catch.hpp"

#include <cmath>
#include <sinter/sinter.hpp>

using namespace sinter;

TEST_CASE("a bilinear layer is x1^T W x2 + b for each output") {
  generator gen(1);
  const nn::bilinear<double> layer(3, 4, 2, gen);
  const variable<double, 3> a = randn<double>(gen, {2, 5, 3});
  const tensor b = randn<double>(gen, {2, 5, 4});
  const variable y = layer(a, b);
  REQUIRE(y.shape() == extents<3>{{2, 5, 2}});
  for (index_t n = 0; n < 5; ++n)
    for (index_t o = 0; o < 2; ++o) {
      double sum = layer.bias.value()(o);
      for (index_t i = 0; i < 3; ++i)
        for (index_t j = 0; j < 4; ++j) sum += a.value()(1, n, i) * layer.weight.value()(o, i, j) * b(1, n, j);
      CHECK(y.value()(1, n, o) == Approx(sum));
    }
  sum(y).backward();
  CHECK(layer.bias.grad()(1) == 10);
  CHECK(layer.weight.grad()(0, 2, 3) == Approx(sum(a.value().select(2, 2) * b.select(2, 3)).item()));
  CHECK(a.has_grad());
  const tensor plain = infer(layer)(a.value(), b);
  CHECK(all(plain == y.value()).item());
}

TEST_CASE("a bilinear layer begins as PyTorch's, and can do without a bias") {
  generator gen(2);
  const nn::bilinear layer(25, 30, 8, gen);
  CHECK(layer.parameter_count() == 8 * 25 * 30 + 8);
  CHECK(layer.weight.shape() == extents<3>{{8, 25, 30}});
  const float most = max(abs(layer.weight.value())).item();  // within 1 / sqrt(25)
  CHECK((most <= 0.2f && most > 0.19f));
  CHECK(max(abs(layer.bias.value())).item() <= 0.2f);
  CHECK(nn::state(layer).size() == 2);
  const nn::bilinear without(4, 3, 2, gen, nn::no_bias);
  CHECK(without.parameter_count() == 24);
  CHECK(max(abs(without(zeros<float>({1, 4}), ones<float>({1, 3})).value())).item() == 0);
  CHECK_THROWS_AS(layer(ones<float>({2, 25}), ones<float>({3, 30})), shape_error);
  CHECK_THROWS_WITH(nn::bilinear(2, -1, 3, gen), "bilinear: 2 and -1 inputs and 3 outputs; none may be negative");
}

template <class A, class B>
concept takes = requires(const nn::bilinear<>& layer, const A& a, const B& b) { layer(a, b); };
static_assert(takes<tensor<float, 2>, variable<float, 2>> && !takes<tensor<float, 2>, tensor<double, 2>>);
static_assert(!takes<tensor<float, 2>, tensor<float, 3>> &&
              !takes<tensor<float, 2, numa<0>>, tensor<float, 2, numa<0>>>);
