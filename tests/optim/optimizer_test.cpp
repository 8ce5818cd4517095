// tests/optim/optimizer_test.cpp: schedules as PyTorch's, mixed parameters, clipping, settings that make no sense.
#include "../catch.hpp"
#include "reference.hpp"

#include <array>

using namespace sinter;
using Catch::Contains;

TEST_CASE("schedules give PyTorch's learning rates") {
  const auto rows = table("schedules.csv");
  CHECK(rows.size() == 16);
  const variable<float, 1> w = zeros<float>({1});
  const auto run = [&](const std::string& name, auto rule) {
    INFO(name);
    optim::sgd optimizer(w, {.lr = 0.5});
    optim::lr_scheduler scheduler(optimizer, rule);
    for (double expected : rows.at(name)) {
      CHECK(optimizer.lr() == Approx(expected).epsilon(1e-9).margin(1e-15));
      scheduler.step();
    }
    CHECK(scheduler.epoch() == 25);
  };
  run("step", optim::step_lr{7, 0.3});
  run("multi_step", optim::multi_step_lr{{3, 4, 15}, 0.2});
  run("exponential", optim::exponential_lr{0.9});
  run("cosine", optim::cosine_lr{24, 0.01});
  run("warm_up", optim::warm_up_lr{6, 0.25});
  run("chained", optim::chained_lr{optim::warm_up_lr{6, 0.25}, optim::exponential_lr{0.9}});
  run("then", optim::then_lr{5, optim::warm_up_lr{5, 0.25}, optim::cosine_lr{20}});
  run("polynomial", optim::polynomial_lr{20, 1.5});
  run("restarts", optim::cosine_restarts_lr{4, 2, 0.01});
  run("one_cycle", optim::one_cycle_lr{30});
  run("swa", optim::swa_lr{0.05, 6});
  run("swa_linear", optim::swa_lr{0.05, 6, true});
  run("constant", optim::constant_lr{4, 0.25});
  run("linear", optim::linear_lr{8, 1, 0.2});
  run("cyclic", optim::cyclic_lr{.least = 0.1, .up = 3, .down = 5});
  run("cyclic2", optim::cyclic_lr{.least = 0.1, .up = 4, .halving = true});
  CHECK(optim::cyclic_lr{.least = 0, .up = 2, .gamma = 0.5}(8, 6) == Approx(8 * std::pow(0.5, 6)));
  CHECK(optim::swa_lr{0.05, 0}(1, 0) == 0.05);
  CHECK_THROWS_AS(optim::linear_lr{0}(1, 0), value_error);
  CHECK_THROWS_AS((optim::swa_lr{0.1, -1}(1, 0)), value_error);
  CHECK_THROWS_AS((optim::cyclic_lr{.least = 0, .up = 0}(1, 0)), value_error);
  CHECK_THROWS_AS(optim::polynomial_lr{0}(1, 0), value_error);
  CHECK_THROWS_AS(optim::cosine_restarts_lr{0}(1, 0), value_error);
  CHECK_THROWS_AS(optim::one_cycle_lr{1}(1, 0), value_error);
}

TEST_CASE("reduce_on_plateau lowers the rate when a value stays, as PyTorch's") {
  const variable<float, 1> w = zeros<float>({1});
  optim::sgd optimizer(w, {.lr = 1});
  optim::reduce_on_plateau scheduler(optimizer, {.factor = 0.5, .patience = 1, .cooldown = 2, .least = 0.2});
  // PyTorch 2.15 with the same settings and values gives these rates.
  const double values[] = {5, 4, 4, 4, 4, 4, 4, 4, 4, 3.9998, 3, 3, 3, 3, 3};
  const double rates[] = {1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2};
  for (int i = 0; i < 15; ++i) {
    INFO("epoch " << i);
    scheduler.step(values[i]);
    CHECK(optimizer.lr() == rates[i]);
  }
  CHECK(scheduler.best() == 3);
  optim::reduce_on_plateau rising(optimizer, {.patience = 0, .maximize = true});
  rising.step(1);
  rising.step(2);
  CHECK(optimizer.lr() == 0.2);
  rising.step(2);
  CHECK(optimizer.lr() == Approx(0.02));
  CHECK_THROWS_AS(rising.step(std::numeric_limits<double>::quiet_NaN()), value_error);
  CHECK_THROWS_WITH(optim::reduce_on_plateau(optimizer, {.factor = 2}), Catch::Contains("factor is 2"));
}

TEST_CASE("lion steps by the sign of its running mean") {
  const variable<double, 1> w = tensor<double, 1>{1, -2, 0.5};
  optim::lion optimizer(w, {.lr = 0.1, .beta1 = 0.5, .beta2 = 0.75, .weight_decay = 0.2});
  double p[] = {1, -2, 0.5}, m[] = {0, 0, 0};
  for (int t = 0; t < 6; ++t) {
    const double g[] = {1.0 - t, 2.0 + t, 0};
    set_gradient(w, tensor<double, 1>{g[0], g[1], g[2]});
    optimizer.step();
    for (int i = 0; i < 3; ++i) {
      const double direction = 0.5 * m[i] + 0.5 * g[i];
      p[i] = (1 - 0.1 * 0.2) * p[i] - 0.1 * ((direction > 0) - (direction < 0));
      m[i] = 0.75 * m[i] + 0.25 * g[i];
      INFO("step " << t << ", parameter " << i);
      CHECK(w(i) == Approx(p[i]).epsilon(1e-12));
    }
  }
  CHECK_THROWS_AS(optim::lion(w, {.beta1 = 1.5}), value_error);
}

TEMPLATE_TEST_CASE("a first step without memory for its sums changes nothing", "", optim::adadelta, optim::adam,
                   optim::adamax, optim::lamb, optim::lion, optim::nadam, optim::rmsprop, optim::sgd) {
  using D = numa<6>;
  typename TestType::options_type options{.lr = 0.1};
  if constexpr (requires { options.momentum; }) options.momentum = 0.9;
  const std::array<variable<float, 1, D>, 2> parameters = {ones<float, D>({10}), ones<float, D>({1 << 20})};
  for (const auto& p : parameters) p.backward(ones_like(p.value()));
  TestType optimizer(parameters, options);
  empty_cache<D>();
  set_memory_limit<D>(memory<D>().bytes_in_use + (1 << 20));  // enough for the small one
  CHECK_THROWS_AS(optimizer.step(), out_of_memory);
  CHECK(parameters[0].value()(9) == 1);
  CHECK(parameters[1].value()(0) == 1);
  set_memory_limit<D>(0);
  optimizer.step();
  const float small = parameters[0].value()(9);
  CHECK(small < 1);
  CHECK(parameters[1].value()(0) == small);  // the first step of both
}

TEST_CASE("muon moves bfloat16 matrices in all directions alike, and leaves empty ones and zero gradients alone") {
  generator gen(1);
  const variable<bfloat16, 2> w = zeros<bfloat16>({40, 10});
  const variable<float, 2> still = ones<float>({3, 2}), empty = zeros<float>({0, 3});
  optim::muon optimizer(w, {.lr = 1, .weight_decay = 0});
  optimizer.add(std::vector{still, empty});
  set_gradient(w, cast<bfloat16>(randn(gen, {40, 10}) * 1e-3f));
  set_gradient(still, zeros<float>({3, 2}));
  set_gradient(empty, zeros<float>({0, 3}));
  optimizer.step();
  // The singular values of the step lie near 1, times the rate of the shape, 2.
  const tensor step = cast<float>(w.value());
  const tensor gram = matmul(step.transpose(), step);
  for (index_t i = 0; i < 10; ++i) CHECK(gram(i, i) == Approx(4).epsilon(0.6));
  CHECK(sum(square(gram)).item() == Approx(10 * 16).epsilon(0.4));
  CHECK(still(2, 1) == 1);
}

TEST_CASE("one optimizer holds parameters of any rank, type and device; those without gradient stay") {
  generator gen(1);
  const nn::linear on_cpu(3, 2, gen);
  const nn::linear<double, numa<0>> on_node(3, 2, gen);
  const std::array<variable<float, 0>, 2> scalars = {zeros<float>(), ones<float>()};
  optim::sgd optimizer(on_cpu, {.lr = 1});
  optimizer.add(on_node);
  optimizer.add(scalars);
  CHECK(optimizer.size() == 6);
  const tensor before = on_cpu.weight.value().clone();
  set_gradient(on_node.weight, ones<double, numa<0>>({2, 3}));
  set_gradient(scalars[1], full<float>(4));
  const double w = on_node.weight(1, 2);
  optimizer.step();
  CHECK(on_node.weight(1, 2) == Approx(w - 1));
  CHECK(scalars[1].item() == -3);
  CHECK(scalars[0].item() == 0);
  CHECK(on_cpu.weight(1, 2) == before(1, 2));
  optimizer.zero_grad();
  CHECK_FALSE(scalars[1].has_grad());
}

TEST_CASE("a step makes a graph recorded before it stale") {
  const variable<float, 1> w = ones<float>({3});
  const variable<float, 0> loss = sum(w * w);
  optim::sgd optimizer(w, {.lr = 0.1});
  set_gradient(w, ones<float>({3}));
  optimizer.step();
  CHECK_THROWS_AS(loss.backward(), autograd_error);
}

TEST_CASE("clip_grad_norm scales to the norm, and only then") {
  const variable<float, 1> a = zeros<float>({2});
  const variable<float, 1> b = zeros<float>({1});
  set_gradient(a, tensor<float, 1>{3, 0});
  set_gradient(b, tensor<float, 1>{4});
  const std::vector<variable<float, 1>> both = {a, b};
  CHECK(optim::clip_grad_norm(both, 10) == Approx(5));
  CHECK(a.grad()(0) == 3);
  CHECK(optim::clip_grad_norm(both, 2.5) == Approx(5));
  CHECK(a.grad()(0) == Approx(1.5));
  CHECK(b.grad()(0) == Approx(2));
  CHECK_THROWS_AS(optim::clip_grad_norm(a, -1), value_error);
  CHECK_THROWS_AS(optim::clip_grad_norm(a, NAN), value_error);
  const variable<float, 1> none = zeros<float>({2});
  CHECK(optim::clip_grad_norm(none, 1) == 0);
}

TEMPLATE_TEST_CASE("clip_grad_norm is right where squares leave the range of the gradients", "", float, double) {
  for (const double unit : {1e-38, 1e-30, 1., 1e30, std::is_same_v<TestType, float> ? 3e38 : 1e307}) {
    const std::vector<variable<TestType, 1>> both = {zeros<TestType>({16}), zeros<TestType>({9})};
    for (const auto& v : both) set_gradient(v, full<TestType>(v.shape(), static_cast<TestType>(unit)));
    const double norm = 5 * unit;
    CHECK(optim::clip_grad_norm(both, 1).item() == Approx(norm).epsilon(1e-6).margin(0));
    if (norm > 1) CHECK(static_cast<double>(both[1].grad()(8)) == Approx(0.2).epsilon(1e-5));
  }
}

TEST_CASE("clip_grad_norm of half gradients whose squares are no half") {
  const variable w = zeros<half>({2});
  (w * tensor<half, 1>{300, 400}).backward(ones<half>({2}));
  CHECK(optim::clip_grad_norm(w, 50) == Approx(500));
  CHECK(static_cast<float>(w.grad()(0)) == Approx(30).epsilon(1e-3));
  CHECK(static_cast<float>(w.grad()(1)) == Approx(40).epsilon(1e-3));
}

TEST_CASE("clip_grad_value clamps each element") {
  const variable<float, 2> a = zeros<float>({1, 3});
  set_gradient(a, tensor<float, 2>{{-5, 0.25f, 7}});
  optim::clip_grad_value(a, 0.5);
  CHECK(a.grad()(0, 0) == -0.5f);
  CHECK(a.grad()(0, 1) == 0.25f);
  CHECK(a.grad()(0, 2) == 0.5f);
  CHECK_THROWS_AS(optim::clip_grad_value(a, -1), value_error);
}

TEST_CASE("settings that make no sense are value errors that say which") {
  const variable<float, 1> w = zeros<float>({2});
  CHECK_THROWS_WITH(optim::sgd(w, {.lr = NAN}), Contains("the learning rate must be finite and not negative"));
  CHECK_THROWS_AS(optim::adam(w, {.lr = -0.1}), value_error);
  CHECK_THROWS_AS(optim::adam(w, {.lr = INFINITY}), value_error);
  CHECK_THROWS_WITH(optim::adam(w, {.beta1 = 1}), Contains("beta1 must be in [0, 1)"));
  CHECK_THROWS_WITH(optim::adamw(w, {.weight_decay = -1}), Contains("adamw: weight_decay"));
  CHECK_THROWS_AS(optim::rmsprop(w, {.alpha = -1}), value_error);
  CHECK_THROWS_WITH(optim::sgd(w, {.nesterov = true}), Contains("Nesterov"));
  CHECK_THROWS_WITH(optim::lamb(w, {.beta2 = 1}), Contains("lamb: beta2"));
  const variable<float, 2> matrix = zeros<float>({2, 2});
  CHECK_THROWS_WITH(optim::muon(matrix, {.momentum = -1}), Contains("muon: momentum"));
  CHECK_THROWS_WITH(optim::muon(matrix, {.ns_steps = 100}), Contains("ns_steps must be in [0, 100), but is 100"));
  optim::muon of_matrix(matrix);
  CHECK_THROWS_WITH(of_matrix.add(w), Contains("parameter (2,) is not a matrix"));
  CHECK_THROWS_WITH(of_matrix.add_param_group(w, [](auto&) {}), Contains("is not a matrix"));
  CHECK(of_matrix.groups() == 1);
  optim::sgd optimizer(w);
  CHECK_THROWS_AS(optimizer.set_lr(NAN), value_error);
  CHECK_THROWS_AS(optim::lr_scheduler(optimizer, optim::exponential_lr{-2}).step(), value_error);
  CHECK_THROWS_AS(optim::lr_scheduler(optimizer, optim::step_lr{0}), value_error);
  generator gen;
  CHECK_THROWS_WITH(optim::sgd(infer(nn::linear(2, 2, gen))), Contains("no tracked parameters"));
  CHECK_THROWS_AS(optim::sgd(std::vector<variable<float, 1>>()), value_error);
  const variable<float, 1> result = w * 2;
  CHECK_THROWS_WITH(optim::sgd(result), Contains("result of a statement"));
}

TEST_CASE("a parameter that is listed twice is one parameter", "[optim]") {
  variable w = tensor<float, 1>{1};
  optim::sgd step(std::vector{w, w}, {.lr = 0.1});
  step.add(w);
  CHECK(step.size() == 1);
  variable loss = sum(w * w);
  loss.backward();
  CHECK(optim::clip_grad_norm(std::vector{w, w}, 10.0) == Approx(2));
  step.step();
  CHECK(w(0) == Approx(0.8f));
}
