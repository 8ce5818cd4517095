// tests/nn/sequential_test.cpp: chains of modules over one device and over several.
#include "../catch.hpp"

#include <cmath>

#include <sinter/sinter.hpp>

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

template <class... M>
concept chains = requires(M... m) { nn::sequential<M...>(m...); };

using on_cpu = nn::linear<float>;
using on_node = nn::linear<float, numa<0>>;
using on_gpu = nn::linear<float, cuda<0>>;

}  // namespace

static_assert(chains<on_cpu, nn::relu, on_cpu>);
static_assert(!chains<on_cpu, on_node>);
static_assert(!chains<on_cpu, nn::relu, nn::tanh, on_node>);
static_assert(!chains<on_gpu, nn::linear<float, cuda<1>>>);
static_assert(chains<on_cpu, nn::transfer<cpu, numa<0>>, on_node>);
static_assert(!chains<on_cpu, nn::transfer<numa<0>, cpu>, on_node>);
static_assert(chains<on_gpu, nn::relu, nn::transfer<cuda<0>, cpu>, on_cpu, nn::transfer<cpu, cuda<1>>,
                     nn::linear<float, cuda<1>>>);
static_assert(!chains<nn::sequential<on_cpu, nn::transfer<cpu, numa<0>>>, on_cpu>);
static_assert(std::is_same_v<device_of<nn::sequential<nn::relu, on_node>>, numa<0>>);
static_assert(std::is_same_v<device_of<nn::sequential<nn::relu>>, any_device>);

TEST_CASE("a chain is its modules one after the other") {
  generator gen(1);
  const nn::sequential model(nn::linear(3, 5, gen), nn::relu(), nn::linear(5, 2, gen));
  const tensor x = randn<float>(gen, {7, 3});
  const variable y = model(x);
  const variable h = relu(linear(x, model.get<0>().weight, model.get<0>().bias));
  const variable z = linear(h, model.get<2>().weight, model.get<2>().bias);
  CHECK(difference(y.value(), z.value()) == 0);
  CHECK(model.size() == 3);
}

TEST_CASE("a function is a module of a chain, in training, inference and on another device") {
  generator gen(4);
  const nn::sequential chain{nn::linear(3, 5, gen), [](const auto& x) { return x * sigmoid(x); },
                             nn::linear(5, 2, gen)};
  const nn::sequential same{chain.get<0>(), nn::silu(), chain.get<2>()};
  const tensor x = randn<float>(gen, {7, 3});
  CHECK(difference(eval(infer(chain)(x)), eval(infer(same)(x))) < 1e-6);
  const auto there = chain.to<numa<0>>();
  CHECK(difference(eval(infer(there)(x.to<numa<0>>())), eval(infer(chain)(x))) < 1e-6);
  sum(chain(x)).backward();
  const tensor by_function = chain.get<0>().weight.grad().clone();
  chain.get<0>().weight.zero_grad();
  sum(same(x)).backward();
  CHECK(difference(by_function, same.get<0>().weight.grad()) < 1e-5);
}

TEST_CASE("a chain over two devices trains parameters on both") {
  generator gen(2);
  const nn::sequential whole(nn::linear(3, 5, gen), nn::tanh(), nn::linear(5, 2, gen));
  const nn::sequential split(whole.get<0>().to<numa<0>>(), nn::tanh(), nn::transfer<numa<0>, numa<1>>(),
                             whole.get<2>().to<numa<1>>());
  static_assert(std::is_same_v<decltype(split)::output_device, numa<1>>);
  const tensor x = randn<float>(gen, {7, 3});
  const variable<float, 0> a = sum(square(whole(x)));
  const variable<float, 0, numa<1>> b = sum(square(split(x.to<numa<0>>())));
  CHECK(a.item() == Approx(b.item()));
  a.backward();
  b.backward();
  CHECK(difference(whole.get<0>().weight.grad(), split.get<0>().weight.grad()) < 1e-5);
  CHECK(difference(whole.get<2>().bias.grad(), split.get<3>().bias.grad()) < 1e-5);
  const auto view = infer(split);
  const tensor<float, 2, numa<1>> y = view(x.to<numa<0>>());
  CHECK(difference(y, eval(whole(x)).value()) < 1e-6);
  CHECK(split.named_parameters()[2].name == "3.weight");
  CHECK(split.named_parameters()[2].device == "numa:1");
}

TEST_CASE("to moves every module of a chain") {
  generator gen(3);
  const nn::sequential model(nn::linear(3, 5, gen), nn::leaky_relu(0.3), nn::linear(5, 2, gen));
  const auto moved = model.to<numa<0>>();
  CHECK(moved.get<1>().slope == 0.3);
  const tensor x = randn<float>(gen, {7, 3});
  CHECK(difference(eval(moved(x.to<numa<0>>())).value(), eval(model(x)).value()) == 0);
  CHECK(infer(moved).to<cpu>().named_parameters().size() == 4);
}
