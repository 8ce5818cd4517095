// tests/parallel/advise_test.cpp: pieces of a chain on any devices train as the chain, and the advice is the known
// answer.
#include <chrono>
#include <functional>
#include <thread>

#include "../catch.hpp"
#include "devices.hpp"

using namespace sinter;
using namespace places;

namespace {

using layer = nn::linear<double>;

/// Takes milliseconds for each sample, forward and backward, other ones on d0 and on d1.
struct sleeper : nn::module<sleeper> {
  using device_type = any_device;
  using kind = nn::plain;
  template <class, class>
  using rebind = sleeper;
  template <class X>
  auto forward(const X& x) const {
    const double ms = (std::is_same_v<device_of<X>, d0> ? on_d0 : on_d1) * static_cast<double>(x.shape()[0]);
    const auto wait = [ms] { std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(1000 * ms))); };
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
    f("on_d0", m.on_d0...);
    f("on_d1", m.on_d1...);
  }
  double on_d0 = 0, on_d1 = 0;
};
sleeper sleeps(double on_d0, double on_d1) {
  sleeper s{};
  s.on_d0 = on_d0;
  s.on_d1 = on_d1;
  return s;
}

const auto squares = [](const auto& y, const auto& t) { return sum(square(y - t)); };

/// The values of the parameters of a module, whatever its type.
struct reader {
  std::vector<std::function<nn::state_dict()>>& all;
  template <class M>
  optim::sgd operator()(const M& module) const {
    all.push_back([module] { return nn::state(module); });
    return optim::sgd(module, {.lr = 0.01});
  }
};

double first_difference(const nn::state_dict& a, const tensor<double, 2>& b) {
  const auto* const values = reinterpret_cast<const double*>(a.at(0).value.bytes.data());
  double d = 0;
  for (index_t i = 0; i < b.numel(); ++i) d = std::max(d, std::fabs(values[i] - b.data()[i]));
  return d;
}

auto chain_of(const sleeper& first, const sleeper& second) {
  generator gen(1);
  return nn::sequential{layer(4, 4, gen), first, layer(4, 4, gen), second, nn::tanh()};
}

struct data {
  tensor<double, 2> x, t;
  data() {
    generator gen(2);
    x = randn<double>(gen, {8, 4});
    t = randn<double>(gen, {8, 4});
  }
};

}  // namespace

/// The same advice from what was predicted: what is measured differs by more than is gained where the machine does
/// other work.
nn::advice undisturbed(nn::advice a) {
  for (nn::placement_advice& p : a.placements) p.measured = {.median = p.predicted, .spread = 0};
  nn::detail::judge(a);
  return a;
}

TEST_CASE("pieces on any devices, serial and in a pipeline, train as the chain", "[parallel]") {
  const data d;
  const auto chain = chain_of(sleeps(0, 0), sleeps(0, 0));
  const auto one = chain.to<cpu>();
  optim::sgd step_one(one, {.lr = 0.01});
  std::vector<std::function<nn::state_dict()>> states;
  using batch = nn::detail::segment_batch<tensor<double, 2>, tensor<double, 2>, decltype(squares)>;
  using builder = nn::detail::segment_builder<decltype(chain_of(sleeper(), sleeper())), std::index_sequence<2>, batch,
                                              reader, d0, d1>;
  auto set = builder::build(chain, std::make_shared<const batch>(batch{d.x, d.t, squares}), reader{states});
  nn::detail::segment_runner runner(set);
  REQUIRE(states.size() == 6);  // two pieces and the whole on each device

  const auto step_chain = [&] {
    step_one.zero_grad();
    variable(squares(one(d.x), d.t)).backward();
    step_one.step();
  };
  const std::vector<int> over_two{0, 1};
  for (int step = 0; step < 3; ++step) {
    runner.time_serial(over_two);
    step_chain();
    CHECK(first_difference(states[0](), one.get<0>().weight.value()) < 1e-12);
    CHECK(first_difference(states[4](), one.get<2>().weight.value()) < 1e-12);
  }
  for (const int microbatches : {1, 3, 8}) {
    runner.time_pipelined(over_two, microbatches);
    step_chain();
    CHECK(first_difference(states[0](), one.get<0>().weight.value()) < 1e-12);
    CHECK(first_difference(states[4](), one.get<2>().weight.value()) < 1e-12);
  }
}

TEST_CASE("a failing piece ends a pipeline with its error", "[parallel]") {
  const data d;
  int calls = 0;
  const auto loss = [&calls](const auto& y, const auto& t) {
    if (++calls == 3) throw value_error("the third loss");
    return sum(square(y - t));
  };
  std::vector<std::function<nn::state_dict()>> states;
  using batch = nn::detail::segment_batch<tensor<double, 2>, tensor<double, 2>, std::remove_const_t<decltype(loss)>>;
  using builder = nn::detail::segment_builder<decltype(chain_of(sleeper(), sleeper())), std::index_sequence<2>, batch,
                                              reader, d0, d1>;
  auto set = builder::build(chain_of(sleeps(0, 0), sleeps(0, 0)), std::make_shared<const batch>(batch{d.x, d.t, loss}),
                            reader{states});
  nn::detail::segment_runner runner(set);
  CHECK_THROWS_WITH(runner.time_pipelined({0, 1}, 8), "the third loss");
}

TEST_CASE("advice: each half on the device that is quicker at it", "[parallel]") {
  const data d;
  const nn::advice a = undisturbed(nn::advise<d0, d1>(chain_of(sleeps(0, 1), sleeps(1, 0)), nn::cuts<2>{}, d.x, d.t,
                                                      squares, {.repeats = 3, .warmups = 1, .every_cut = true}));
  INFO(a.text());
  CHECK(a.several_devices);
  CHECK(a.answer().device == std::vector<int>{0, 1});
  CHECK(a.answer().code == "auto model = nn::placed<nn::cut<0, " + nn::detail::device_in_code<d0>() + ">, nn::cut<2, " +
                               nn::detail::device_in_code<d1>() + ">>(chain);");
  CHECK(a.verdict.substr(0, 4) == "Yes:");
  CHECK(a.verdict.find(" gain ") != std::string::npos);
  REQUIRE(a.segments.size() == 2);
  CHECK(a.segments[0].on[1].forward.median >= 0.008);
  CHECK(a.segments[0].on[1].backward.median >= 0.008);
  CHECK(a.segments[1].on[0].forward.median >= 0.008);
  CHECK(a.segments[0].multiply_adds == 8 * 4 * 4);
  CHECK(a.segments[0].parameter_bytes == (4 * 4 + 4) * 8);
  CHECK(a.segments[0].on[0].bytes >= 2 * (4 * 4 + 4) * 8);
  REQUIRE(a.transfers.size() == 2);
  CHECK(a.transfers[0].layer == 2);
  CHECK(a.transfers[0].bytes == 8 * 4 * 8);
  CHECK(a.placements.size() == 4);  // two devices alone, two placements over both
  CHECK(a.cuts.size() == 3);
  CHECK(a.text().find(a.answer().code) != std::string::npos);
}

TEST_CASE("advice: no, and memory that makes it yes", "[parallel]") {
  const data d;
  const auto chain = chain_of(sleeps(0, 1), sleeps(0, 1));
  const nn::advice no =
      undisturbed(nn::advise<d0, d1>(chain, nn::cuts<2>{}, d.x, d.t, squares, {.repeats = 3, .warmups = 1}));
  INFO(no.text());
  CHECK_FALSE(no.several_devices);
  CHECK(no.answer().device == std::vector<int>{0, 0});
  CHECK(no.verdict.substr(0, 3) == "No:");
  CHECK(no.verdict.find("lose") != std::string::npos);

  double one_segment = 0;
  for (const auto& s : no.segments)
    for (const auto& c : s.on) one_segment = std::max(one_segment, c.bytes + 1);
  const nn::advice small = nn::advise<d0, d1>(chain, nn::cuts<2>{}, d.x, d.t, squares,
                                              {.repeats = 1, .warmups = 1, .memory = {one_segment, one_segment}});
  INFO(small.text());
  CHECK(small.several_devices);
  CHECK_FALSE(small.placements[0].fits);
  CHECK(small.verdict.find("memory") != std::string::npos);
  const nn::advice none =
      nn::advise<d0, d1>(chain, nn::cuts<2>{}, d.x, d.t, squares, {.repeats = 1, .warmups = 0, .memory = {1, 1}});
  CHECK(none.best == -1);
}

TEST_CASE("advice: a pipeline where both halves take as long", "[parallel]") {
  const data d;
  const nn::advice measured = nn::advise<d0, d1>(chain_of(sleeps(1, 1), sleeps(1, 1)), nn::cuts<2>{}, d.x, d.t, squares,
                                                 {.repeats = 3, .warmups = 1, .microbatches = 4});
  for (const nn::placement_advice& p : measured.placements)
    if (p.kind == nn::placement_kind::pipelined) CHECK(p.measured.median >= 5 * 0.004 - 1e-9);
  const nn::advice a = undisturbed(measured);
  INFO(a.text());
  CHECK(a.several_devices);
  CHECK(a.answer().kind == nn::placement_kind::pipelined);
  CHECK(a.answer().predicted >= 5 * 0.004 - 1e-9);  // (4 + 1) microbatches of 2 samples, forward and backward
}

TEST_CASE("advice: options and ties that make no sense are refused", "[parallel]") {
  const data d;
  generator gen(3);
  const layer shared(4, 4, gen);
  const nn::sequential tied{shared, nn::tanh(), shared};
  const auto ask = [&](const nn::advise_options& o) {
    return nn::advise<d0, d1>(chain_of(sleeps(0, 0), sleeps(0, 0)), nn::cuts<2>{}, d.x, d.t, squares, o);
  };
  CHECK_THROWS_WITH(ask({.repeats = 0}), "advise: .repeats is 0; set it to 1 or more");
  CHECK_THROWS_WITH(ask({.warmups = -1}), "advise: .warmups is -1; set it to 0 or more");
  CHECK_THROWS_WITH(ask({.microbatches = 0}), "advise: .microbatches is 0; set it to 1 or more");
  CHECK_THROWS_WITH(ask({.microbatches = 9}),
                    "advise: .microbatches is 9, but the batch has only 8 samples; ask for "
                    "fewer, or pass a larger batch");
  CHECK_THROWS_WITH(ask({.memory = {1, 2, 3}}),
                    "advise: .memory lists 3 devices, but advise was given 2; list at most "
                    "one number for each of them");
  CHECK_THROWS_WITH((nn::advise<d0, d1>(tied, nn::cuts<1>{}, d.x, d.t, squares)),
                    Catch::Contains("'0.weight' in segment 0 and '2.weight' in segment 1"));
}
