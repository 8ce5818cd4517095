// tests/cuda/graph_test.cpp: a step captured once and replayed does what it does when it is run, and what cannot be
// captured says so.
#include "compare.hpp"

#include <thread>

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;
using g1 = cuda<1>;

/// Parameters of three element types on one device. Not in the unnamed namespace, where nvcc warns of functions that
/// are named but not called.
struct of_three_types : nn::module<of_three_types> {
  using device_type = g0;
  using kind = nn::tracked;
  variable<float, 1, g0> a, none;
  variable<double, 2, g0> b;
  variable<sinter::half, 1, g0> c;
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("a", m.a...), f("none", m.none...), f("b", m.b...), f("c", m.c...);
  }
};

struct on_two_devices : nn::module<on_two_devices> {
  using device_type = cpu;
  using output_device = g0;
  using kind = nn::tracked;
  variable<float, 1> host;
  variable<float, 1, g0> a;
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("host", m.host...), f("a", m.a...);
  }
};

namespace {

/// A model with its optimizer and the inputs of a step.
template <class Optimizer>
struct training {
  explicit training(const typename Optimizer::options_type& options) : optimizer(model, options) {}

  generator gen{3};
  nn::sequential<nn::linear<float, g0>, nn::relu, nn::linear<float, g0>> model{
      nn::linear<float, g0>(6, 8, gen), nn::relu(), nn::linear<float, g0>(8, 3, gen)};
  Optimizer optimizer;
  tensor<float, 2, g0> x = zeros<float, g0>({10, 6});
  tensor<std::int64_t, 1, g0> labels = zeros<std::int64_t, g0>({10});
  variable<float, 0, g0> loss;

  void step() {
    optimizer.zero_grad();
    loss = cross_entropy(model(x), labels);
    loss.backward();
    optimizer.step();
  }
  void bring(int batch) {
    copy(numbers({10, 6}, batch), x);
    copy(eval(cast<std::int64_t>(clamp_max(abs(numbers({10}, batch + 100)) * 0.5f, 2))), labels);
  }
};

}  // namespace

TEMPLATE_TEST_CASE("a captured training step does what the step does", "[cuda]", optim::sgd, optim::adamw,
                   optim::rmsprop) {
  typename TestType::options_type options{.lr = 0.01};
  if constexpr (requires { options.momentum; }) options.momentum = 0.9;
  training<TestType> eager(options), graphed(options);
  const auto losses_of = [](auto& t, int from, const auto& step) {
    std::vector<float> losses;
    for (int batch = from; batch < from + 5; ++batch) {
      t.bring(batch);
      step();
      losses.push_back(t.loss.item());
    }
    return losses;
  };
  const auto weight = [](auto& t) { return t.model.template get<0>().weight.value(); };
  eager.bring(0), graphed.bring(0);
  eager.step();
  const auto step = capture<g0>([&] { graphed.step(); });  // the warm-up run is the first step
  CHECK(distance(weight(graphed), weight(eager).template to<cpu>()) == 0);
  const auto expected = losses_of(eager, 1, [&] { eager.step(); });
  const auto before = launches<g0>();
  const auto got = losses_of(graphed, 1, [&] { step.replay(); });
  CHECK(launches<g0>() - before >= 5 * step.kernels());
  CHECK(got == expected);
  CHECK(distance(weight(graphed), weight(eager).template to<cpu>()) == 0);
  // steps that are not replayed go on from there
  CHECK(losses_of(graphed, 6, [&] { graphed.step(); }) == losses_of(eager, 6, [&] { eager.step(); }));
}

TEST_CASE("a captured step draws other random numbers each time", "[cuda]") {
  generator gen(7), alike(7);
  tensor<float, 1, g0> y, z;
  const auto step = capture<g0>([&] {
    y = rand<float, g0>(gen, {1000});
    z = randn<float, g0>(gen, {1000});
  });
  CHECK(step.kernels() == 3);
  alike.next(), alike.next();  // the warm-up
  CHECK(gen.offset() == 4);
  for (const std::uint64_t run : {0u, 1u, 2u}) {
    step.replay();
    generator there(7, alike.offset() + (run << 32));
    CHECK(distance(y, rand<float>(there, {1000})) <= compare::rounding);
    CHECK(distance(z, randn<float>(there, {1000})) < 1e-6);
  }
  const auto other = capture<g0>([&] { y = rand<float, g0>(gen, {1000}); }, 0);
  other.replay();
  generator fifth(7, 4);
  CHECK(distance(y, rand<float>(fifth, {1000})) <= compare::rounding);
  CHECK(distance(rand<float, g0>(gen, {10}), rand<float>(fifth, {10})) <= compare::rounding);  // no longer captured
}

TEST_CASE("masks of a captured dropout are those of its backward", "[cuda]") {
  generator gen(9);
  const variable x = numbers({300}, 1).to<g0>();
  variable<float, 1, g0> y;
  const auto seed = ones_like(x.value());
  const auto step = capture<g0>([&] {
    x.zero_grad();
    y = dropout(x * 2, 0.4, gen);
    y.backward(seed);
  });
  tensor<float, 1> before;
  for (int run = 0; run < 4; ++run) {
    step.replay();
    const tensor masked = y.value().to<cpu>(), gradient = x.grad().to<cpu>();
    CHECK(distance(eval(x.value() * x.grad()), masked) <= compare::rounding);
    CHECK(any(gradient == 0).item());
    if (run > 0) CHECK(any(gradient != before).item());
    before = gradient.clone();
  }
}

TEST_CASE("gradients are clipped where they are, without waiting", "[cuda]") {
  const variable<float, 1, g0> a = zeros<float, g0>({2}), none = zeros<float, g0>({2});
  const variable<double, 2, g0> b = zeros<double, g0>({1, 1});
  const variable<sinter::half, 1, g0> c = zeros<sinter::half, g0>({5});
  of_three_types weights;
  weights.a = a, weights.none = none, weights.b = b, weights.c = c;
  const auto set = [&](float first) {
    weights.zero_grad();
    a.backward(from_data<float, g0>(std::vector<float>{first, 0}, {2}));
    b.backward(full<double, g0>({1, 1}, 400));
    c.backward(full<sinter::half, g0>({5}, sinter::half(0)));
  };
  set(300);
  CHECK(optim::clip_grad_norm(weights, 1000) == Approx(500));
  CHECK(distance(a.grad(), tensor<float, 1>{300, 0}) == 0);
  CHECK(optim::clip_grad_norm(weights, 50).item() == Approx(500));
  CHECK(distance(a.grad(), tensor<float, 1>{30, 0}) < 1e-4);
  CHECK(distance(b.grad(), tensor<double, 2>{{40}}) < 1e-4);
  CHECK_FALSE(none.has_grad());
  set(std::numeric_limits<float>::infinity());
  CHECK(std::isinf(optim::clip_grad_norm(weights, 50).item()));
  CHECK(b.grad().to<cpu>()(0, 0) == 0);
  set(NAN);
  CHECK(std::isnan(optim::clip_grad_norm(weights, 50).item()));
  CHECK(std::isnan(b.grad().to<cpu>()(0, 0)));
  CHECK(optim::clip_grad_norm(none, 1) == 0);

  // elsewhere too: waited for, with the same result
  const variable<float, 1> host = zeros<float>({1});
  host.backward(tensor<float, 1>{400});
  set(300);
  b.zero_grad();
  on_two_devices both;
  both.host = host, both.a = a;
  CHECK(optim::clip_grad_norm(both, 50) == Approx(500));
  CHECK(distance(a.grad(), tensor<float, 1>{30, 0}) < 1e-4);
  CHECK(distance(host.grad(), tensor<float, 1>{40}) < 1e-4);

  // captured: the norm that was handed out is that of the last replay
  set(30);
  optim::gradient_norm norm(nullptr);
  const auto step = capture<g0>([&] { norm = optim::clip_grad_norm(weights, 50); }, 0);
  CHECK(distance(a.grad(), tensor<float, 1>{30, 0}) == 0);
  step.replay();
  CHECK(norm.item() == Approx(std::sqrt(30 * 30 + 400 * 400)));
  CHECK(distance(b.grad(), tensor<double, 2>{{400 * 50 / norm}}) < 1e-4);
  step.replay();
  CHECK(norm.item() == Approx(50));
  CHECK(distance(b.grad(), tensor<double, 2>{{400 * 50 / std::sqrt(30 * 30 + 400 * 400)}}) < 1e-4);
}

TEST_CASE("what a captured step allocates stays its own", "[cuda]") {
  auto x = full<float, g0>({1000}, 1);
  tensor<float, 1, g0> y;
  const auto before = memory<g0>();
  {
    const auto step = capture<g0>([&] {
      const tensor t = eval(x + 1);
      y = t * t;
    });
    CHECK(memory<g0>().bytes_reserved > 0);
    const auto other = full<float, g0>({1000}, 7),
               third = full<float, g0>({1000}, 8);  // takes neither t's memory nor y's
    step.replay();
    CHECK(distance(y, full<float>({1000}, 4)) == 0);
    CHECK(distance(other, full<float>({1000}, 7)) == 0);
    CHECK(distance(third, full<float>({1000}, 8)) == 0);
    x += 1;
    step.replay();
    CHECK(distance(y, full<float>({1000}, 9)) == 0);
    y = {};
    const auto fourth = full<float, g0>({1000}, 9);  // nor once nobody holds y
    step.replay();
    CHECK(distance(fourth, full<float>({1000}, 9)) == 0);
  }
  CHECK(memory<g0>().bytes_reserved == before.bytes_reserved);
  CHECK(memory<g0>().bytes_in_use == before.bytes_in_use);
}

TEST_CASE("what another thread allocates while a step is captured is not the step's", "[cuda]") {
  const auto x = full<float, g0>({1000}, 1);
  auto out = zeros<float, g0>({1000});
  tensor<float, 1, g0> theirs;
  const auto step = capture<g0>([&] {
    {
      const tensor t = x + 41.f;
      out.in_place() = t * 2.f;
    }
    std::thread([&] { theirs = empty_like(x); }).join();
  });
  theirs.in_place() = 0.f * x;
  step.replay();
  CHECK(distance(theirs, full<float>({1000}, 0)) == 0);
  CHECK(distance(out, full<float>({1000}, 84)) == 0);
}

TEST_CASE("a step that was moved from cannot be replayed", "[cuda]") {
  auto x = zeros<float, g0>({3});
  auto step = capture<g0>([&, n = 1]() mutable { x += static_cast<float>(n++); }, 0);
  const auto moved = std::move(step);
  CHECK_THROWS_AS(step.replay(), value_error);
  CHECK(step.kernels() == 0);
  moved.replay();
  CHECK(distance(x, full<float>({3}, 1)) == 0);
}

TEST_CASE("what cannot be captured says so, and the device goes on", "[cuda]") {
  const auto x = full<float, g0>({4}, 1);
  const auto there = full<float, g1>({4}, 1);
  const auto host = full<float>({4}, 1);
  tensor<float, 1, g0> y = zeros<float, g0>({4});
  generator gen(1);
  const variable p = zeros<float, g0>({4});
  p.backward(ones_like(x));
  optim::rmsprop rmsprop(p);
  const auto message = [](const auto& f) {
    try {
      capture<g0>(f, 0);
    } catch (const device_error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  using Catch::Contains;
  CHECK_THAT(message([&] { eval(sum(x)).item(); }), Contains("item()") && Contains("cuda:0") && Contains("replay()"));
  CHECK_THAT(message([&] { static_cast<void>(x.to<cpu>()); }), Contains("to<cpu>()"));
  CHECK_THAT(message([&] { static_cast<void>(x.to<g1>()); }), Contains("to<cuda:1>()"));
  CHECK_THAT(message([&] { copy(host, y); }), Contains("to<cuda:0>()"));
  CHECK_THAT(message([&] { eval(there + 1); }), Contains("cuda:1") && Contains("one device"));
  CHECK_THAT(message([&] { synchronize<g0>(); }), Contains("synchronize"));
  CHECK_THAT(message([&] { rand<float>(gen, {4}); }), Contains("random numbers") && Contains("on the host"));
  CHECK_THAT(message([&] { eval(dropout(host, 0.5, gen)); }), Contains("dropout"));
  CHECK_THAT(message([&] { rmsprop.step(); }), Contains("first step of an optimizer"));
  CHECK_THAT(message([&] { capture<g0>([] {}); }), Contains("do not nest"));
  CHECK_THAT(message([&] { from_data<float, g0>(std::vector<float>{1, 2}, {2}); }), Contains("from the host"));
  std::string from_other_thread;
  const auto step = capture<g0>(
      [&] {
        std::thread([&] {
          try {
            eval(x + 1);
          } catch (const device_error& e) {
            from_other_thread = e.what();
          }
        }).join();
        y += x;
      },
      0);
  CHECK_THAT(from_other_thread, Contains("another thread"));
  CHECK(distance(y, zeros<float>({4})) == 0);  // the captured run did nothing
  step.replay();
  step.replay();
  CHECK(distance(y, full<float>({4}, 2)) == 0);
  CHECK(distance(eval(x + 1), full<float>({4}, 2)) == 0);
  CHECK_THROWS_AS(capture<g0>([] {}, -1), value_error);
}

TEST_CASE("an index out of range is reported where the host waits", "[cuda]") {
  using Catch::Contains;
  const auto x = numbers({3, 4}, 1).to<g0>();
  const auto wrong = tensor<int, 1>{0, 9, -1}.to<g0>(), right = tensor<int, 1>{0, 3, 1}.to<g0>();
  {
    const tensor loss = cross_entropy(x, wrong);
    CHECK_THROWS_WITH(loss.item(),
                      Contains("cross_entropy: label 9 at position 1 is out of range [0, 4)") && Contains("cuda:0"));
    CHECK(std::isnan(loss.item()));  // said once
  }
  {
    const tensor picked = index_select(x, 0, wrong);
    cuda_impl::gpu<g0>::synchronize();
    CHECK_THROWS_WITH(index_select(x, 0, right),
                      Contains("index_select: index 9 at position 1 is out of range [0, 3)"));
    const tensor rows = picked.to<cpu>();
    CHECK(rows(1, 0) == 0);
    CHECK(rows(2, 3) == 0);
  }
  {
    const variable v = numbers({3, 4}, 1).to<g0>();
    const variable y = gather(v, 1, wrong.unsqueeze(1));
    y.backward(ones<float, g0>({3, 1}));
    CHECK_THROWS_AS(synchronize<g0>(), index_error);
    tensor<float, 2> expected = zeros<float>({3, 4});
    expected(0, 0) = 1;  // nothing is added elsewhere
    CHECK(distance(v.grad(), expected) == 0);
  }
  {
    const variable v = numbers({3, 4}, 1).to<g0>();
    const variable loss = cross_entropy(v, wrong);
    loss.backward();
    CHECK_THROWS_AS(v.grad().to<cpu>(), index_error);
    CHECK_NOTHROW(synchronize<g0>());
  }
  CHECK(std::isfinite(eval(cross_entropy(x, right)).item()));
  tensor<float, 0, g0> loss;
  auto labels = right.clone();
  const auto step = capture<g0>([&] { loss = cross_entropy(x, labels); });
  step.replay();
  CHECK_NOTHROW(loss.item());
  copy(wrong, labels);
  step.replay();
  CHECK_THROWS_AS(loss.item(), index_error);
}
