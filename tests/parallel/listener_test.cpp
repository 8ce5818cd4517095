// tests/parallel/listener_test.cpp: entries that walk graphs of their own: each parameter is told once, when its
// gradient is what it will be at the end.
#include "../grad/listening.hpp"
#include "devices.hpp"

using namespace sinter;
using namespace places;
using Catch::Contains;

namespace with_foreign_parameters {

/// A module that uses a layer which is not its own.
struct thief : nn::module<thief> {
  using device_type = d0;
  using kind = nn::tracked;
  nn::mode mode;
  const nn::linear<double, d0>* other = nullptr;
  auto forward(const variable<double, 2, d0>& x) const { return sinter::eval((*other)(x)); }
  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    f("mode", s.mode...);
  }
};

}  // namespace with_foreign_parameters

namespace {

using names = std::vector<std::string>;
using matrix = variable<double, 2, d0>;

auto layer(index_t in, index_t out, generator& gen) { return nn::linear<double, d0>(in, out, gen); }
auto block(generator& gen) { return nn::sequential{layer(4, 4, gen), nn::tanh(), layer(4, 4, gen)}; }

/// Two passes without zero_grad() in between, both told; the last names that were ready.
template <class M, class Loss>
names told_of(const M& parameters, const Loss& loss) {
  witness w;
  w.add_all(parameters);
  for (int pass = 0; pass < 2; ++pass) {
    w.forget();
    loss().backward(w.listener);
    w.check();
  }
  CHECK(w.ready.size() > 0);
  return w.ready;
}

}  // namespace

TEST_CASE("listener: modules that run again list their parameters, so each is told when its own block is done",
          "[parallel]") {
  generator gen(1);
  const nn::sequential chain{nn::checkpointed(block(gen)), nn::checkpointed(block(gen)), nn::checkpointed(block(gen))};
  const tensor<double, 2, d0> x = randn<double, d0>(gen, {5, 4});
  const variable<double, 2, d0> input = x;
  const names order = told_of(chain, [&] { return eval(sum(square(chain(input)))); });
  REQUIRE(order.size() == 12);
  for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i].substr(0, 1) == std::to_string(2 - i / 4));
  bool first_has_one = true;
  gradient_listener last;
  chain.zero_grad();
  last.add(chain.get<2>().module.get<0>().weight,
           [&] { first_has_one = chain.get<0>().module.get<0>().weight.has_grad(); });
  sum(square(chain(input))).backward(last);
  CHECK_FALSE(first_has_one);
}

TEST_CASE("listener: what a function that runs again captures is told when no such function is left", "[parallel]") {
  generator gen(2);
  const auto outer = layer(4, 4, gen), captured = layer(4, 4, gen), twice = layer(4, 4, gen), never = layer(4, 4, gen);
  const tensor<double, 2, d0> x = randn<double, d0>(gen, {5, 4});
  witness w;
  w.add_all(outer);
  w.add("captured", captured.weight);
  w.add("behind", captured.bias);
  w.add("twice", twice.weight);
  w.add("never", never.weight);
  for (int pass = 0; pass < 2; ++pass) {
    w.forget();
    // `bias` is a result that only the function reaches, and the leaf behind it older than all.
    const auto bias = eval(tanh(captured.bias));
    const variable h = twice(outer(x));
    const auto inner = [&](const auto& a) { return eval(tanh(matmul(a, captured.weight) + bias)); };
    const variable y = checkpoint([&](const auto& a) { return eval(checkpoint(inner, a) + twice(a)); }, h);
    sum(square(y)).backward(w.listener);
    w.check();
    CHECK(w.unused == names{"never"});
    CHECK(w.ready.size() == 5);
  }
}

TEST_CASE("listener: a function that fails when it runs again leaves nothing behind, also of younger leaves",
          "[parallel]") {
  const matrix first = ones<double, d0>({2, 2});
  bool fails = false;
  const variable y = checkpoint(
      [&fails](const auto& a) {
        if (fails) throw std::runtime_error("half-way");
        return eval(a * 3);
      },
      eval(first * 2));
  const matrix younger = ones<double, d0>({2, 2});
  const variable loss = sum(y * younger);
  witness w;
  w.add("first", first);
  w.add("younger", younger);
  fails = true;
  CHECK_THROWS_WITH(loss.backward(w.listener, {.retain_graph = true}), "half-way");
  CHECK(w.ready.empty());
  CHECK_FALSE(younger.has_grad());
  fails = false;
  loss.backward(w.listener);
  w.check();
  CHECK(w.ready == names{"younger", "first"});
  CHECK(younger.grad().template to<cpu>()(0, 0) == 6);
  CHECK(first.grad().template to<cpu>()(0, 0) == 6);
}

TEST_CASE("listener: a module that runs again must own what it uses", "[parallel]") {
  generator gen(3);
  const auto foreign = layer(4, 4, gen), first = layer(4, 4, gen);
  with_foreign_parameters::thief other;
  other.other = &foreign;
  const tensor<double, 2, d0> x = randn<double, d0>(gen, {5, 4});
  gradient_listener listener;
  listener.add(foreign.weight, [] {});
  listener.add(first.weight, [] {});
  CHECK_THROWS_WITH(sum(checkpoint(other, matrix(first(x)))).backward(listener), Contains("not among its parameters"));
  CHECK_FALSE(foreign.weight.has_grad());
  CHECK_FALSE(first.weight.has_grad());
  sum(checkpoint(other, matrix(first(x)))).backward();
  CHECK(foreign.weight.has_grad());
}

TEST_CASE("listener: parameters of replicas, of split columns, of chains over devices, and behind any_module",
          "[parallel]") {
  generator gen(4);
  const tensor<double, 2, d0> x = randn<double, d0>(gen, {6, 4});
  const nn::sequential model{layer(4, 4, gen), nn::data_parallel<d0, d1>(block(gen)),
                             nn::split_linear<d0, d1>(layer(4, 6, gen)),
                             nn::any_module<double, 2, d0>(nn::checkpointed(layer(6, 4, gen)))};
  const names order = told_of(model, [&] { return eval(sum(square(model(x)))); });
  CHECK(order.size() == 2 + 4 + 4 + 2);
  CHECK(order.front().substr(0, 1) == "3");
  CHECK(order.back().substr(0, 1) == "0");

  const auto chain = nn::placed<nn::cut<0, d0>, nn::cut<1, d1>>(nn::sequential{layer(4, 4, gen), layer(4, 3, gen)});
  for (const bool times : {false, true}) {
    chain.record_times(times);
    CHECK(told_of(chain, [&] { return eval(sum(square(chain(x)))); }).size() == 4);
  }
  const nn::pipeline pipe{layer(4, 4, gen), layer(4, 3, gen).to<d1>()};
  CHECK(told_of(pipe, [&] { return eval(sum(square(pipe(x)))); }).size() == 4);
}

TEST_CASE("listener: only the tasks in use of an offloaded module are ready", "[parallel]") {
  generator gen(5);
  const nn::offloaded<d1, nn::linear<double, d0>> heads(3, [&] { return layer(4, 2, gen); }, {.copies = 2});
  const tensor<double, 2, d1> x = randn<double, d1>(gen, {5, 4});
  for (const bool again : {false, true}) {
    witness w;
    w.add_all(heads);
    const auto head = heads.fetch(1);
    const variable<double, 2, d1> input = x;
    variable<double, 2, d1> y = again ? eval(checkpoint(head, input)) : eval(head(input));
    sum(square(y)).backward(w.listener);
    w.check();
    CHECK(w.ready == names{"1.bias", "1.weight"});
    CHECK(w.unused.size() == 4);
    CHECK(w.unused_first);
  }
}

TEST_CASE("listener: parameters of layers over tiles", "[parallel]") {
  generator gen(6);
  const nn::sequential net{nn::conv2d<double, d0>(2, 3, 3, gen, {.padding = 1}), nn::relu()};
  const auto tiled = nn::tile_parallel<nn::tiles<1, 2, d0, d1>>(net);
  const auto first = nn::conv2d<double, d0>(2, 2, 1, gen);
  const nn::sequential model{first, tiled};
  const tensor<double, 4, d0> x = randn<double, d0>(gen, {1, 2, 4, 6});
  CHECK(told_of(model, [&] { return eval(sum(square(model(x)))); }).size() == 4);
}
