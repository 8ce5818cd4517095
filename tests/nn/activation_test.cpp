// tests/nn/activation_test.cpp: modules without parameters: activations, flatten, and dropout in and out of training.
#include <algorithm>
#include <cmath>

#include <sinter/sinter.hpp>

#include "../catch.hpp"

using namespace sinter;

namespace {

template <class A, class B>
double difference(const A& a, const B& b) {
  const auto x = a.template to<cpu>();
  const auto y = b.template to<cpu>();
  REQUIRE(x.shape() == y.shape());
  double d = 0;
  for (index_t i = 0; i < x.numel(); ++i) d = std::max(d, std::fabs(static_cast<double>(x.data()[i] - y.data()[i])));
  return d;
}

}  // namespace

TEST_CASE("dropout drops in training mode only, also deep inside") {
  generator gen(9);
  nn::sequential model(nn::sequential(nn::relu(), nn::dropout(0.5, gen)), nn::flatten());
  const variable x = ones<float>({4, 5, 6});
  const auto zeros_in = [&](const auto& y) {
    int n = 0;
    for (float v : y.value()) n += v == 0.f;
    return n;
  };
  const variable<float, 2> first = model(x);
  const variable<float, 2> second = model(x);
  CHECK(first.shape() == extents<2>{{4, 30}});
  CHECK(zeros_in(first) == Approx(60).margin(25));
  CHECK(difference(first.value(), second.value()) > 0);
  model.eval();
  CHECK(zeros_in(eval(model(x))) == 0);
  model.train();
  CHECK(zeros_in(eval(model(x))) > 0);
  const tensor<float, 2> plain = infer(model)(x.value());
  CHECK(difference(plain, ones<float>({4, 30})) == 0);
  CHECK_THROWS_AS(nn::dropout(1.5, gen), value_error);
}

TEST_CASE("activation modules are the functions") {
  const tensor<float, 2> x = {{-2, 0, 1}, {3, -1, 0.5f}};
  CHECK(difference(eval(nn::relu()(x)), eval(relu(x))) == 0);
  CHECK(difference(eval(nn::sigmoid()(x)), eval(sigmoid(x))) == 0);
  CHECK(difference(eval(nn::tanh()(x)), eval(tanh(x))) == 0);
  CHECK(difference(eval(nn::gelu()(x)), eval(gelu(x))) == 0);
  CHECK(difference(eval(nn::silu()(x)), eval(silu(x))) == 0);
  CHECK(difference(eval(nn::softplus()(x)), eval(softplus(x))) == 0);
  CHECK(difference(eval(nn::leaky_relu(0.2)(x)), eval(leaky_relu(x, 0.2))) == 0);
  CHECK(difference(eval(nn::elu()(x)), eval(elu(x, 1.0))) == 0);
  CHECK(difference(eval(nn::softmax(0)(x)), eval(softmax(x, 0))) == 0);
  CHECK(difference(eval(nn::log_softmax()(x)), eval(log_softmax(x, -1))) == 0);
}

TEST_CASE("prelu learns its slopes") {
  const nn::prelu layer(2);
  const tensor<float, 2> x = {{1, -2}, {-3, 4}};
  variable y = layer(x);
  CHECK((y(0, 0) == 1 && y(0, 1) == -0.5f && y(1, 0) == -0.75f));
  y.backward(ones<float>({2, 2}));
  CHECK((layer.weight.grad()(0) == -3 && layer.weight.grad()(1) == -2));
  CHECK(eval(nn::prelu<double>()(tensor<double, 1>{-1}))(0) == -0.25);
  CHECK(eval(nn::prelu(1, 0.5)(x))(0, 1) == -1);
  CHECK_THROWS_WITH(nn::prelu(0), "prelu: 0 slopes; there must be 1 or more");
}
