// tests/nn/module_list_test.cpp: a run-time number of modules: names, access, copies, training.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

template <device D = cpu, class Kind = nn::tracked>
struct deep : nn::module<deep<D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <device To, class K>
  using rebind = deep<To, K>;

  deep() = default;
  deep(index_t depth, generator& gen) : layers(depth, [&] { return nn::linear<float, D, Kind>(4, 4, gen); }) {}

  template <class X>
  auto forward(const X& x) const {
    auto h = eval(layers[0](x));
    for (index_t i = 1; i < layers.size(); ++i) h = layers[i](tanh(h));
    return h;
  }
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("layers", m.layers...);
  }

  nn::module_list<nn::linear<float, D, Kind>> layers;
};

template <class M, class X>
concept feeds = requires(const M& m, const X& x) { m(x); };

}  // namespace

static_assert(nn::is_module<nn::module_list<nn::relu>>);
static_assert(std::is_same_v<device_of<nn::module_list<nn::linear<float, numa<1>>>>, numa<1>>);
static_assert(!feeds<nn::module_list<nn::relu>, tensor<float, 2>>);

TEST_CASE("a list of modules names its parameters by number") {
  generator gen(1);
  const deep model(2, gen);
  std::vector<std::string> names;
  for (const auto& p : model.named_parameters()) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"});
  CHECK(model.parameter_count() == 40);
  CHECK(optim::sgd(model).size() == 4);
}

TEST_CASE("a list is made from a count or a vector, grows, and gives its modules by number") {
  generator gen(2);
  nn::module_list list(3, [&](index_t i) { return nn::linear(i + 1, 2, gen); });
  static_assert(std::is_same_v<decltype(list), nn::module_list<nn::linear<>>>);
  CHECK(list.size() == 3);
  CHECK(list[2].weight.shape() == extents<2>{{2, 3}});
  CHECK(list[-1].weight.value().data() == list[2].weight.value().data());
  list.push_back(nn::linear(9, 1, gen));
  index_t inputs = 0;
  for (const auto& layer : list) inputs += layer.weight.extent(1);
  CHECK(inputs == 1 + 2 + 3 + 9);
  CHECK_THROWS_AS(list[4], index_error);
  CHECK_THROWS_WITH(list[-5], Contains("no module -5 among 4"));
  CHECK_THROWS_AS(nn::module_list(-1, [] { return nn::relu(); }), value_error);
  CHECK(nn::module_list(std::vector{nn::leaky_relu(0.1), nn::leaky_relu(0.2)})[1].slope == 0.2);
  CHECK(nn::module_list<nn::relu>().empty());
}

TEST_CASE("to, infer and copy_state see every module of a list") {
  generator gen(3);
  const deep model(5, gen);
  const tensor x = randn<float>(gen, {6, 4});
  const tensor expected = model(x).value();
  const auto there = model.to<numa<0>>();
  CHECK(there.layers.size() == 5);
  CHECK(max(abs(there(x.to<numa<0>>()).value().to<cpu>() - expected)).item() == 0.f);
  const tensor<float, 2> shown = infer(model)(x);
  CHECK(max(abs(shown - expected)).item() == 0.f);
  const deep other(5, gen);
  nn::copy_state(model, other);
  CHECK(max(abs(other(x).value() - expected)).item() == 0.f);
  CHECK_THROWS_WITH(nn::copy_state(model, deep(4, gen)), Contains("4 modules beside 5"));
}

TEST_CASE("every module of a list gets its gradient, and its mode") {
  generator gen(4);
  deep model(3, gen);
  const variable<float, 0> loss = sum(square(model(randn<float>(gen, {6, 4}))));
  loss.backward();
  for (const auto& layer : model.layers) CHECK(layer.weight.has_grad());
  nn::module_list drops(2, [&] { return nn::dropout(0.5, gen); });
  drops.eval();
  for (const auto& drop : drops) CHECK_FALSE(drop.state.training);
}
