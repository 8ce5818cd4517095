// tests/optim/grad_scaler_test.cpp: loss scaling as torch.amp.GradScaler's, and training in bfloat16 and half with it.
#include "../catch.hpp"
#include "reference.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

const auto infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("a scaler grows after steps without overflow, skips those with it and backs off") {
  const variable<float, 1> w = ones<float>({3});
  optim::sgd optimizer(w, {.lr = 0.5});
  optim::grad_scaler scaler({.init_scale = 8, .growth_factor = 4, .backoff_factor = 0.25, .growth_interval = 2});
  const auto step = [&](float gradient) {
    optimizer.zero_grad();
    set_gradient(w, full<float>({3}, gradient));
    const bool taken = scaler.step(optimizer);
    scaler.update();
    return taken;
  };
  CHECK(eval(scaler.scale(w * 2))(0) == 16);
  CHECK(step(8));
  CHECK(w(0) == 0.5f);  // the gradient is 8 / 8
  CHECK(scaler.get_scale() == 8);
  CHECK(step(8));
  CHECK(w(0) == 0);
  CHECK(scaler.get_scale() == 32);
  for (const float bad : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) CHECK_FALSE(step(bad));
  CHECK(w(0) == 0);
  CHECK(scaler.get_scale() == 0.5);
  CHECK(step(1));
  CHECK(scaler.get_scale() == 0.5);  // the interval starts anew
  CHECK(step(1));
  CHECK(scaler.get_scale() == 2);
  CHECK(w(0) == -2);
}

TEST_CASE("unscaled gradients may be clipped; nothing is unscaled or stepped twice") {
  const variable<float, 1> w = ones<float>({2}), unused = ones<float>({2});
  optim::sgd optimizer(w, {.lr = 1});
  optimizer.add(unused);
  optim::grad_scaler scaler({.init_scale = 4});
  set_gradient(w, full<float>({2}, 4));
  scaler.unscale(optimizer);
  CHECK(w.grad()(1) == 1);
  CHECK_THROWS_WITH(scaler.unscale(optimizer), Contains("unscale()") && Contains("update()"));
  CHECK(scaler.step(optimizer));
  CHECK(w(1) == 0);
  CHECK(unused(0) == 1);
  CHECK_THROWS_WITH(scaler.step(optimizer), Contains("step()") && Contains("update()"));
  scaler.update();
  CHECK_THROWS_WITH(scaler.update(), Contains("without a step()"));
  scaler.update(16.);
  CHECK(scaler.get_scale() == 16);

  optim::grad_scaler off({.enabled = false});
  CHECK(eval(off.scale(w + 3))(0) == 3);
  set_gradient(w, full<float>({2}, infinity));
  CHECK(off.step(optimizer));
  off.update();
  CHECK(off.get_scale() == 1);
}

TEST_CASE("one optimizer's overflow backs off for all; a scaler refuses settings that make no sense") {
  const variable<double, 2> a = ones<double>({40, 3});
  const variable<half, 1> b = ones<half>({2});
  optim::sgd first(a, {.lr = 1});
  optim::adam second(b);
  optim::grad_scaler scaler({.init_scale = 2});
  set_gradient(a, ones<double>({40, 3}));
  set_gradient(b, tensor<half, 1>{1, infinity});
  CHECK(scaler.step(first));
  CHECK_FALSE(scaler.step(second));
  scaler.update();
  CHECK(scaler.get_scale() == 1);
  CHECK(a(39, 2) == 0.5);
  CHECK(b(0) == 1);
  CHECK_THROWS_AS(optim::grad_scaler({.init_scale = 0}), value_error);
  CHECK_THROWS_AS(optim::grad_scaler({.growth_factor = 0.5}), value_error);
  CHECK_THROWS_AS(optim::grad_scaler({.backoff_factor = 2}), value_error);
  CHECK_THROWS_AS(optim::grad_scaler({.growth_interval = 0}), value_error);
  CHECK_THROWS_AS(scaler.update(-1), value_error);
}

TEST_CASE("scaled gradients that half cannot hold are skipped until the scale fits; then w is learnt") {
  const variable<half, 1> w = full<half>({4}, 3);
  optim::sgd optimizer(w, {.lr = 0.25});
  optim::grad_scaler scaler({.init_scale = 0x1p24});
  int skipped = 0;
  for (int i = 0; i < 40; ++i) {
    const variable loss = mean(square(w - 1));
    optimizer.zero_grad();
    variable(scaler.scale(loss)).backward();
    skipped += !scaler.step(optimizer);
    scaler.update();
    if (i == 0) CHECK(w(0) == 3);
  }
  CHECK(skipped == 9);  // a gradient of 1 times 2^24 is infinite down to a scale of 2^16
  CHECK(scaler.get_scale() == 32768);
  CHECK(w(0) == Approx(1).epsilon(0.1));
}

TEST_CASE("a gradient below half's least number survives with a scale") {
  const auto move = [](bool enabled) {
    const variable<half, 1> w = zeros<half>({1});
    optim::sgd optimizer(w, {.lr = 1e6});
    optim::grad_scaler scaler({.init_scale = 32768, .enabled = enabled});
    const variable tiny = w * 1e-4f;
    variable(scaler.scale(variable(sum(tiny * 1e-5f)))).backward();
    scaler.step(optimizer);
    return static_cast<double>(w(0));
  };
  CHECK(move(false) == 0);
  CHECK(move(true) == Approx(-1e-3).epsilon(0.01));
}

TEST_CASE("a model in bfloat16 learns without one") {
  generator gen(1);
  const nn::sequential model{nn::linear<bfloat16>(4, 16, gen), nn::relu(), nn::linear<bfloat16>(16, 2, gen)};
  const tensor x = randn<bfloat16>(gen, {64, 4});
  const tensor<std::int64_t, 1> labels = cast<std::int64_t>(sum(x, 1) > 0);
  optim::adam optimizer(model, {.lr = 0.02});
  double first = 0, last = 0;
  for (int i = 0; i < 80; ++i) {
    const variable loss = cross_entropy(model(x), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    last = static_cast<double>(loss.item());
    if (i == 0) first = last;
  }
  CHECK(last < 0.2 * first);
}
