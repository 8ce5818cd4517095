// tests/nn/any_module_test.cpp: modules whose type is hidden do all that the ones they hold do.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

using places = nn::devices<cpu, numa<0>>;
template <device D = cpu, class Kind = nn::tracked>
using block = nn::any_module<float, 2, D, Kind, places>;

template <device D = cpu, class Kind = nn::tracked>
struct counted : nn::module<counted<D, Kind>> {
  nn::linear<float, D, Kind> fc;
  nn::buffer<std::int64_t, 0, D> calls = zeros<std::int64_t, D>();
  nn::mode state;

  template <class X>
  auto forward(const X& x) const {
    if (state.training) calls.value() += std::int64_t{1};
    return tanh(fc(x));
  }
  SINTER_MEMBERS(fc, calls, state);
};

template <device D = cpu, class Kind = nn::tracked>
struct network : nn::module<network<D, Kind>> {
  nn::module_list<block<D, Kind>> blocks;

  auto forward(const tensor<float, 2, D>& x) const {
    nn::parameter<float, 2, D, Kind> h = blocks[0](x);
    for (index_t i = 1; i < blocks.size(); ++i) h = blocks[i](h);
    return h;
  }
  SINTER_MEMBERS(blocks);
};

network<> make(generator& gen) {
  network<> model;
  model.blocks.push_back(nn::linear(3, 4, gen));
  model.blocks.push_back(counted<>{{}, nn::linear(4, 4, gen), zeros<std::int64_t>(), {}});
  model.blocks.push_back(nn::sequential{nn::relu(), nn::linear(4, 2, gen)});
  return model;
}

// The same, its types in sight.
auto reference(generator& gen) {
  return nn::sequential{nn::linear(3, 4, gen), counted<>{{}, nn::linear(4, 4, gen), zeros<std::int64_t>(), {}},
                        nn::sequential{nn::relu(), nn::linear(4, 2, gen)}};
}

float distance(const auto& a, const auto& b) { return max(abs(a - b)).item(); }

std::int64_t calls_of(const network<>& model) {
  std::int64_t n = 0;
  model.for_each_buffer([&](const std::string&, const auto& b) { n = static_cast<std::int64_t>(b.value().item()); });
  return n;
}

struct fixed : nn::module<fixed> {
  auto forward(const tensor<float, 2>& x) const { return x; }
  SINTER_MEMBERS();
};

template <class B, class M>
concept holds = std::constructible_from<B, M>;

}  // namespace

static_assert(nn::is_module<block<>> && nn::is_module<network<>>);
static_assert(holds<block<>, nn::linear<>> && holds<block<>, nn::relu>);
static_assert(!holds<block<>, nn::linear<float, numa<0>>>);
static_assert(!holds<block<>, fixed> && !holds<block<>, int>);
static_assert(std::is_same_v<block<>::rebind<numa<0>, nn::plain>, block<numa<0>, nn::plain>>);

TEST_CASE("names, counts and state are those of the held modules") {
  generator a(1), b(1);
  const network<> model = make(a);
  const auto plain = reference(b);
  const auto rows = model.named_parameters(), expected = plain.named_parameters();
  REQUIRE(rows.size() == expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i].name == "blocks." + expected[i].name);
  CHECK(model.named_buffers()[0].name == "blocks.1.calls");
  CHECK(model.parameter_count() == plain.parameter_count());
  CHECK(optim::sgd(model).size() == 6);
  CHECK(nn::state(model).size() == 7);
  CHECK(nn::state(model)[2].name == "blocks.1.fc.weight");
}

TEST_CASE("hidden modules train as those in sight do") {
  generator a(2), b(2), data(3);
  const network<> model = make(a);
  const auto plain = reference(b);
  const tensor x = randn<float>(data, {5, 3});
  const variable<float, 2> y = model(x);
  const variable<float, 2> z = plain(x);
  CHECK(distance(y.value(), z.value()) == 0);
  variable<float, 0>(sum(square(y))).backward();
  variable<float, 0>(sum(square(z))).backward();
  std::vector<tensor<float, 1>> gradients;
  plain.for_each_parameter([&](const std::string&, const auto& p) { gradients.push_back(p.grad().flatten()); });
  std::size_t i = 0;
  model.for_each_parameter(
      [&](const std::string&, const auto& p) { CHECK(distance(p.grad().flatten(), gradients[i++]) == 0); });
  CHECK(i == 6);
  optim::sgd(model, {.lr = 0.1}).step();
  optim::sgd(plain, {.lr = 0.1}).step();
  CHECK(distance(eval(model(x)).value(), eval(plain(x)).value()) == 0);
  model.zero_grad();
  model.for_each_parameter([](const std::string&, const auto& p) { CHECK_FALSE(p.has_grad()); });
}

TEST_CASE("copies share weights, moves do not, and infer shows the same memory") {
  generator gen(4);
  network<> model = make(gen);
  const tensor x = randn<float>(gen, {5, 3});
  const network<> twin = model;
  const auto there = model.to<numa<0>>();
  const tensor<float, 2> before = infer(model)(x);
  CHECK(distance(there(x.to<numa<0>>()).value().to<cpu>(), before) == 0);
  model.for_each_parameter([](const std::string&, const auto& p) { p.value() += 0.25f; });
  const tensor<float, 2> after = infer(model)(x);
  CHECK(distance(before, after) > 0);
  CHECK(distance(twin(x).value(), after) == 0);
  CHECK(distance(infer(there)(x.to<numa<0>>()).to<cpu>(), before) == 0);
  nn::copy_state(model, there);
  CHECK(distance(there(x.to<numa<0>>()).value().to<cpu>(), after) == 0);
  nn::load_state(model, nn::state(twin));
}

TEST_CASE("weights tied between hidden modules stay tied") {
  generator gen(5);
  const nn::linear shared(3, 3, gen);
  network<> model;
  model.blocks.push_back(shared);
  model.blocks.push_back(nn::sequential{shared, nn::relu()});
  const auto copy = model.to<numa<0>>();
  CHECK(copy.parameter_count() == 12);
  CHECK(optim::sgd(copy).size() == 2);
}

TEST_CASE("modes and errors reach through") {
  generator gen(6);
  network<> model = make(gen);
  const tensor x = zeros<float>({2, 3});
  model(x);
  model.eval();
  model(x);
  CHECK(calls_of(model) == 1);
  CHECK_THROWS_WITH(model(zeros<float>({2, 5})), Contains("in module blocks.0: "));
  model.blocks[2] = nn::sequential{nn::relu(), nn::linear(7, 2, gen)};
  CHECK_THROWS_WITH(model(x), Contains("in module blocks.2.1: "));
  model.blocks.push_back({});
  model.blocks[2] = nn::relu();
  CHECK_FALSE(model.blocks[3].defined());
  CHECK_THROWS_AS(model(x), value_error);
}
