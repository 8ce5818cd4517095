// tests/parallel/placed_test.cpp: a chain over devices gives what it gives on one, and tells where its time went.
#include <chrono>
#include <thread>

#include "../catch.hpp"
#include "devices.hpp"

using namespace sinter;
using namespace places;

namespace {

using layer = nn::linear<double>;

template <class A, class B>
double distance(const A& a, const B& b) {
  const auto x = a.template to<cpu>();
  const auto y = b.template to<cpu>();
  REQUIRE(x.shape() == y.shape());
  return x.numel() == 0 ? 0 : static_cast<double>(max(abs(x - y)).item());
}

auto chain(std::uint64_t seed) {
  generator gen(seed);
  return nn::sequential{
      layer(6, 5, gen), nn::batch_norm1d<double>(5), nn::tanh(), nn::dropout(0.4, gen), layer(5, 5, gen), nn::relu(),
      layer(5, 3, gen)};
}

/// The values of all parameters and buffers, by name.
template <class A, class B>
void check_same_state(const A& a, const B& b) {
  const auto x = nn::state(a), y = nn::state(b);
  REQUIRE(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(x[i].name);
    CHECK(x[i].name == y[i].name);
    if (x[i].value.element != kind_of_element<double>()) continue;
    const auto* const p = reinterpret_cast<const double*>(x[i].value.bytes.data());
    const auto* const q = reinterpret_cast<const double*>(y[i].value.bytes.data());
    double d = 0;
    for (std::size_t j = 0; j < x[i].value.bytes.size() / sizeof(double); ++j) d = std::max(d, std::fabs(p[j] - q[j]));
    CHECK(d < 1e-12);
  }
}

/// Three steps of training, over devices and on one.
template <class Split>
void check_training(const Split& split, bool record) {
  using In = device_of<Split>;
  const auto one = chain(1);
  optim::sgd step_one(one, {.lr = 0.1, .momentum = 0.9}), step_split(split, {.lr = 0.1, .momentum = 0.9});
  split.record_times(record);
  generator gen(7);
  for (int step = 0; step < 3; ++step) {
    const tensor data = randn<double>(gen, {8, 6});
    const variable x = data.clone();
    const variable z = data.template to<In>().clone();
    const variable y = one(x);
    const variable w = split(z);
    CHECK(distance(y.value(), w.value()) < 1e-12);
    const tensor seed = randn<double>(gen, {8, 3});
    y.backward(seed);
    w.backward(seed.template to<device_of<decltype(w)>>());
    CHECK(distance(x.grad(), z.grad()) < 1e-12);
    CHECK(distance(one.template get<4>().weight.grad(), split.template get<4>().weight.grad()) < 1e-12);
    step_one.step();
    step_split.step();
    one.zero_grad();
    split.zero_grad();
  }
  check_same_state(one, split);
}

/// Sleeps in forward and in backward.
struct slow : nn::module<slow> {
  using device_type = any_device;
  using kind = nn::plain;
  template <class, class>
  using rebind = slow;
  template <class X>
  auto forward(const X& x) const {
    const auto wait = [ms = milliseconds] { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
    const auto f = with_gradient(
        [wait](const auto& v) {
          wait();
          return sinter::eval(v * 1);
        },
        [wait](const auto& g) {
          wait();
          return g;
        });
    return f(x);
  }
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("milliseconds", m.milliseconds...);
  }
  int milliseconds = 0;
};

}  // namespace

TEST_CASE("a chain over devices trains as on one, with and without times", "[parallel]") {
  for (const bool record : {false, true}) {
    check_training(nn::placed<nn::cut<0, d0>>(chain(1)), record);
    check_training(nn::placed<nn::cut<0, d0>, nn::cut<4, cpu>>(chain(1)), record);
    check_training(nn::placed<nn::cut<0, cpu>, nn::cut<1, d0>>(chain(1)), record);
    check_training(nn::placed<nn::cut<0, d0>, nn::cut<2, d1>, nn::cut<6, d0>>(chain(1)), record);
    check_training(nn::placed<nn::cut<0, d0>, nn::cut<3, d0>, nn::cut<4, d1>>(chain(1)), record);
  }
}

TEST_CASE("a chain over devices is a module with the names of the chain", "[parallel]") {
  const auto one = chain(1);
  auto split = nn::placed<nn::cut<0, d0>, nn::cut<4, d1>>(chain(2));
  static_assert(on_device<decltype(split), d0> && std::same_as<decltype(split)::output_device, d1>);
  static_assert(std::same_as<device_of<decltype(eval(split(std::declval<const tensor<double, 2, d0>&>())))>, d1>);
  nn::load_state(split, nn::state(one));
  check_same_state(one, split);
  CHECK(split.named_parameters()[0].name == "0.weight");
  CHECK(split.named_parameters()[0].device == device_name<d0>());
  CHECK(split.named_parameters().back().name == "6.bias");
  CHECK(split.named_parameters().back().device == device_name<d1>());
  CHECK(split.parameter_count() == one.parameter_count());

  generator gen(3);
  const tensor x = randn<double>(gen, {4, 6});
  const tensor y = infer(one)(x);
  CHECK(distance(y, eval(infer(split)(x.to<d0>()))) < 1e-12);
  const auto back = split.to<cpu>();  // a chain on one device
  static_assert(std::same_as<const decltype(back), decltype(one)>);
  CHECK(distance(y, eval(infer(back)(x))) < 1e-12);
  const nn::sequential longer{split, nn::transfer<d1, cpu>(), layer(3, 2, gen)};
  CHECK(eval(longer(x.to<d0>())).shape() == extents<2>{{4, 2}});
  CHECK_THROWS_WITH(split(randn<double>(gen, {4, 7}).to<d0>()), Catch::Contains("in module 0"));
}

TEST_CASE("each placement and each copy is a module of its own", "[parallel]") {
  const auto one = chain(1);
  const auto a = nn::placed<nn::cut<0, cpu>, nn::cut<4, d0>>(one);
  const auto b = nn::placed<nn::cut<0, cpu>, nn::cut<4, d0>>(one);
  const auto c = one.to<d0>(), d = one.to<d0>();
  a.get<0>().weight.value().in_place() = 1.;
  c.get<0>().weight.value().in_place() = 2.;
  CHECK(distance(b.get<0>().weight.value(), one.get<0>().weight.value()) == 0);
  CHECK(distance(d.get<0>().weight.value(), one.get<0>().weight.value()) == 0);
}

TEST_CASE("ties hold on one device and are refused over two", "[parallel]") {
  generator gen(4);
  const layer shared(4, 4, gen);
  const nn::sequential tied{shared, nn::tanh(), shared, nn::relu(), layer(4, 2, gen)};
  const auto split = nn::placed<nn::cut<0, d0>, nn::cut<4, d1>>(tied);
  CHECK(split.parameter_count() == tied.parameter_count());
  const tensor x = randn<double>(gen, {3, 4});
  variable(sum(square(split(x.to<d0>())))).backward();
  variable(sum(square(tied(x)))).backward();
  CHECK(distance(split.get<0>().weight.grad(), shared.weight.grad()) < 1e-12);
  const auto tear = [&tied] { return nn::placed<nn::cut<0, d0>, nn::cut<2, d1>>(tied); };
  CHECK_THROWS_AS(tear(), value_error);
  CHECK_THROWS_WITH(tear(), Catch::Contains("'0.weight' on") && Catch::Contains("'2.weight' on"));
}

TEST_CASE("times name the slow stage and the idle device", "[parallel]") {
  generator gen(5);
  slow wait{};
  wait.milliseconds = 20;
  const nn::sequential model{layer(4, 4, gen), nn::tanh(), wait, layer(4, 3, gen)};
  const auto split = nn::placed<nn::cut<0, d0>, nn::cut<2, d1>, nn::cut<3, d0>>(model);
  CHECK_THROWS_AS(split.times(), value_error);
  split.record_times();
  const tensor x = randn<double>(gen, {5, 4}).to<d0>();
  {
    const variable loss = sum(square(split(x)));
    CHECK(split.times().stages[1].backward == 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    loss.backward();
  }
  const nn::step_times t = split.times();
  REQUIRE(t.stages.size() == 3);
  CHECK(t.stages[1].first_layer == 2);
  CHECK(t.stages[1].last_layer == 2);
  CHECK(t.stages[2].last_layer == 3);
  CHECK(t.stages[1].forward >= 0.02);
  CHECK(t.stages[1].backward >= 0.02);
  CHECK(t.loss >= 0.03);
  REQUIRE(t.transfers.size() == 2);
  CHECK(t.transfers[0].bytes == 5 * 4 * 8);
  REQUIRE(t.devices.size() == 2);
  CHECK(t.devices[0].device == device_name<d0>());
  CHECK(t.devices[0].idle >= 0.04);
  CHECK(t.devices[1].busy >= 0.04);
  double all = t.loss;
  for (const auto& s : t.stages) all += s.forward + s.backward;
  for (const auto& s : t.transfers) all += s.forward + s.backward;
  CHECK(all == Approx(t.step).epsilon(1e-6));
  CHECK(t.text().find("layers 2 to 2 on " + device_name<d1>()) != std::string::npos);

  const no_grad guard;
  static_cast<void>(split(x));
  CHECK(split.times().step < t.step);
  CHECK(split.times().loss == 0);
}

TEST_CASE("recorded times leave retained gradients and repeated walks as they are", "[parallel]") {
  generator gen(6);
  const nn::sequential model{layer(4, 4, gen), nn::tanh(), layer(4, 3, gen)};
  const auto split = nn::placed<nn::cut<0, cpu>, nn::cut<1, cpu>, nn::cut<2, d0>>(model);
  split.record_times();
  const tensor x = randn<double>(gen, {5, 4});
  const variable y = split(x);
  y.retain_grad();
  const variable loss = sum(square(y));
  loss.backward({.retain_graph = true});
  loss.backward();
  const variable z = model(x);
  variable(2 * sum(square(z))).backward();
  CHECK(distance(y.grad(), eval(4 * z.value())) < 1e-12);
  CHECK(distance(split.get<0>().weight.grad(), model.get<0>().weight.grad()) < 1e-12);
}
