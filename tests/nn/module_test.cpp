// tests/nn/module_test.cpp: modules: names, copies on devices, inference views, training mode, modules of one's own.
#include "../catch.hpp"

#include <cmath>

#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

template <device D = cpu, class Kind = nn::tracked>
struct classifier : nn::module<classifier<D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <device To, class K>
  using rebind = classifier<To, K>;

  classifier() = default;
  explicit classifier(generator& gen) : fc1(4, 8, gen), fc2(8, 3, gen) {}

  template <class X>
  auto forward(const X& x) const {
    return fc2(relu(fc1(x)));
  }
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("fc1", m.fc1...);
    f("fc2", m.fc2...);
  }

  nn::linear<float, D, Kind> fc1, fc2;
};

template <class A, class B>
double difference(const A& a, const B& b) {
  const auto x = a.template to<cpu>();
  const auto y = b.template to<cpu>();
  REQUIRE(x.shape() == y.shape());
  double d = 0;
  for (index_t i = 0; i < x.numel(); ++i) d = std::max(d, std::fabs(static_cast<double>(x.data()[i] - y.data()[i])));
  return d;
}

std::vector<std::string> names_of(const auto& model) {
  std::vector<std::string> names;
  for (const auto& p : model.named_parameters()) names.push_back(p.name);
  return names;
}

template <class M, class X>
concept feeds = requires(const M& m, const X& x) { m(x); };

}  // namespace

static_assert(nn::is_module<classifier<>> && nn::is_module<nn::relu> && !nn::is_module<int>);
static_assert(feeds<classifier<>, tensor<float, 2>>);
static_assert(!feeds<classifier<>, tensor<float, 2, numa<0>>>);
static_assert(feeds<nn::relu, tensor<double, 3, numa<0>>>);
static_assert(std::is_same_v<device_of<classifier<numa<1>>>, numa<1>>);

TEST_CASE("parameters have PyTorch's names, in order") {
  generator gen(1);
  const classifier model(gen);
  CHECK(names_of(model) == std::vector<std::string>{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"});
  CHECK(model.parameter_count() == 4 * 8 + 8 + 8 * 3 + 3);
  const auto first = model.named_parameters()[0];
  CHECK(first.shape == std::vector<index_t>{8, 4});
  CHECK(first.numel == 32);
  CHECK(first.element == std::string("float"));
  CHECK(first.device == "cpu");
  const nn::sequential outer(nn::sequential(nn::linear(2, 3, gen), nn::relu()), nn::linear(3, 1, gen, nn::no_bias));
  CHECK(names_of(outer) == std::vector<std::string>{"0.0.weight", "0.0.bias", "1.weight"});
}

TEST_CASE("linear starts as PyTorch's does: uniform within 1 / sqrt(inputs), the same on every device") {
  generator a(2), b(2);
  const nn::linear fc(64, 100, a);
  const nn::linear<float, numa<0>> other(64, 100, b);
  double largest = 0, sum = 0;
  for (float w : fc.weight.value()) {
    largest = std::max(largest, std::fabs(static_cast<double>(w)));
    sum += static_cast<double>(w) * static_cast<double>(w);
  }
  CHECK(largest <= 0.125);
  CHECK(largest > 0.12);
  CHECK(sum / 6400 == Approx(0.125 * 0.125 / 3).epsilon(0.05));
  CHECK(difference(fc.weight.value(), other.weight.value()) == 0);
  CHECK(difference(fc.bias.value(), other.bias.value()) == 0);
  CHECK_THROWS_AS(nn::linear(-1, 2, a), shape_error);
}

TEST_CASE("linear computes x W^T + b and its gradients") {
  generator gen(3);
  nn::linear<double> fc(2, 1, gen);
  fc.weight = tensor<double, 2>{{2, -1}};
  fc.bias = tensor<double, 1>{0.5};
  const tensor<double, 2> x = {{3, 4}, {1, 1}};
  variable y = fc(x);
  CHECK(y(0, 0) == 2.5);
  CHECK(y(1, 0) == 1.5);
  variable loss = sum(y);
  loss.backward();
  CHECK(fc.weight.grad()(0, 0) == 4);
  CHECK(fc.weight.grad()(0, 1) == 5);
  CHECK(fc.bias.grad()(0) == 2);
  fc.zero_grad();
  CHECK_FALSE(fc.bias.has_grad());
  const nn::linear<double, cpu, nn::tracked, false> plain_product(2, 1, gen, nn::no_bias);
  CHECK(eval(plain_product(x)).shape() == extents<2>{{2, 1}});
}

TEST_CASE("to gives a module of its own on the device, with the values but not the gradients") {
  generator gen(4), data(5);
  classifier model(gen);
  const tensor x = randn<float>(data, {5, 4});
  variable<float, 0> loss = sum(model(x));
  loss.backward();
  const auto there = model.to<numa<1>>();
  static_assert(std::is_same_v<decltype(there), const classifier<numa<1>>>);
  CHECK(difference(eval(there(x.to<numa<1>>())).value(), eval(model(x)).value()) == 0);
  CHECK_FALSE(there.fc1.weight.has_grad());
  auto twin = model.to<cpu>();
  twin.fc1.weight.value() += 1.f;
  CHECK(difference(twin.fc1.weight.value(), model.fc1.weight.value()) == 1);
}

TEST_CASE("to keeps tied parameters tied", "[nn]") {
  generator gen(4);
  const nn::linear shared(3, 3, gen);
  const nn::sequential model{shared, nn::tanh(), shared, nn::linear(3, 3, gen)};
  CHECK(model.parameter_count() == 24);
  const auto check = [](const auto& copy) {
    CHECK(copy.parameter_count() == 24);
    CHECK(optim::sgd(copy).size() == 4);
    copy.template get<0>().weight.value() += 1.f;
    CHECK(copy.template get<2>().weight(1, 2) == copy.template get<0>().weight(1, 2));
    CHECK(copy.template get<3>().weight(1, 2) != copy.template get<0>().weight(1, 2));
  };
  check(model.to<cpu>());
  check(model.to<numa<1>>());
  CHECK(model.get<0>().weight(1, 2) == shared.weight(1, 2));
}

namespace {

// Its list passes on that of a chain, under names of its own.
struct renamed : nn::module<renamed> {
  using device_type = cpu;
  using kind = nn::tracked;
  nn::sequential<nn::linear<float>, nn::relu> body;
  variable<float, 1> scale = ones<float>({2});
  explicit renamed(generator& gen) : body(nn::linear<float>(2, 2, gen), nn::relu()) {}
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    decltype(body)::visit([&](const std::string& name, auto&... x) { f("layer" + name, x...); }, m.body...);
    f('s', m.scale...);
  }
};

}  // namespace

TEST_CASE("names are strings for whoever asks, and made of what a list gives") {
  generator gen(9);
  const renamed model(gen);
  std::vector<std::string> names;
  model.for_each_parameter([&](auto& name, const auto&) { names.push_back(name); });
  CHECK(names == std::vector<std::string>{"layer0.weight", "layer0.bias", "s"});
}

TEST_CASE("infer shows the same memory without gradients") {
  generator gen(6), data(7);
  classifier model(gen);
  const auto view = infer(model);
  static_assert(std::is_same_v<decltype(view.fc1.weight), tensor<float, 2>>);
  const tensor x = randn<float>(data, {5, 4});
  const tensor<float, 2> y = view(x);
  CHECK(difference(y, eval(model(x)).value()) == 0);
  model.fc2.bias.value() += 1.f;
  CHECK(difference(eval(view(x)), eval(y + 1.f)) < 1e-6);
  CHECK(view.fc1.weight.data() == model.fc1.weight.value().data());
}

TEST_CASE("copy_state carries values between equally built modules") {
  generator gen(8);
  const classifier a(gen);
  const classifier<numa<0>> b(gen);
  CHECK(difference(a.fc1.weight.value(), b.fc1.weight.value()) > 0);
  nn::copy_state(a, b);
  CHECK(difference(a.fc1.weight.value(), b.fc1.weight.value()) == 0);
  CHECK(difference(a.fc2.bias.value(), b.fc2.bias.value()) == 0);
  const nn::sequential p(nn::linear(2, 3, gen)), q(nn::linear(2, 4, gen));
  CHECK_THROWS_WITH(nn::copy_state(p, q), Contains("'0.weight'") && Contains("(3, 2)") && Contains("(4, 2)"));
}
