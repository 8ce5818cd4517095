// tests/optim/averaged_model_test.cpp: averages of models over their training.
#include "../catch.hpp"
#include "reference.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

double gradient(int t, index_t i) {
  return (1 + static_cast<double>(i) / 10) * std::cos(3 * t + static_cast<double>(i)) / (1 + t);
}

template <device D>
void follow(const std::string& name, const optim::averaging_options& options) {
  INFO(name);
  const std::vector<double> expected = table("averages.csv").at(name);
  REQUIRE(expected.size() == 50);
  nn::batch_norm1d<double, D> model(3);
  optim::averaged_model average(model, options);
  auto at = expected.begin();
  for (int t = 0; t < 5; ++t) {
    for (index_t i = 0; i < 3; ++i) {
      model.weight.value()(i) = gradient(t, i);
      model.bias.value()(i) = gradient(t + 1, i);
    }
    tensor<double, 2> x = zeros<double>({2, 3});
    for (index_t i = 0; i < 6; ++i) x(i / 3, i % 3) = gradient(t, i);
    eval(model(x.to<D>()));
    average.update_parameters(model);
    INFO("update " << t);
    const auto& inner = average.model();
    for (index_t i = 0; i < 3; ++i) CHECK(inner.weight(i) == Approx(*at++).epsilon(1e-12));
    for (index_t i = 0; i < 3; ++i) CHECK(inner.bias(i) == Approx(*at++).epsilon(1e-12));
    for (index_t i = 0; i < 3; ++i) CHECK(inner.running_mean.value()(i) == Approx(*at++).epsilon(1e-9));
    ++at;  // the counter, of which PyTorch makes no average either
    CHECK(inner.num_batches_tracked.value().item() == t + 1);
  }
  CHECK(average.n_averaged() == 5);
}

}  // namespace

TEST_CASE("averages of models are PyTorch's") {
  follow<cpu>("swa", {});
  follow<cpu>("ema", {.decay = 0.9});
  follow<numa<1>>("ema_buffers", {.decay = 0.9, .use_buffers = true});
}

TEST_CASE("an average has memory of its own, is evaluated, and is saved with PyTorch's names") {
  generator gen(1);
  nn::sequential model{nn::linear(3, 4, gen), nn::dropout(0.5, gen), nn::linear(4, 2, gen)};
  optim::averaged_model average(model);
  const tensor x = randn(gen, {5, 3});
  const tensor first = infer(model)(x);
  CHECK(allclose(infer(average)(x), first));  // even before an update
  average.update_parameters(model);
  model.for_each_parameter([](const std::string&, const auto& p) { p.value() *= 3.f; });
  CHECK(allclose(infer(average)(x), first));
  average.update_parameters(model);  // the mean of 1 and 3 times the weights
  model.for_each_parameter([](const std::string&, const auto& p) { p.value() *= 2 / 3.f; });
  CHECK(allclose(infer(average)(x), infer(model)(x), {.rtol = 1e-4, .atol = 1e-5}));
  average.eval();
  CHECK(allclose(average(x), infer(model)(x), {.rtol = 1e-4, .atol = 1e-5}));

  const nn::state_dict state = nn::state(average);
  REQUIRE(state.size() == 5);
  CHECK(state[0].name == "n_averaged");
  CHECK(state[1].name == "module.0.weight");
  optim::averaged_model other(nn::sequential{nn::linear(3, 4, gen), nn::dropout(0.5, gen), nn::linear(4, 2, gen)});
  nn::load_state(other, state);
  CHECK(other.n_averaged() == 2);
  CHECK(allclose(infer(other)(x), infer(average)(x)));
  const auto there = average.to<numa<1>>();
  CHECK(there.n_averaged() == 2);
  CHECK(allclose(eval(infer(there)(x.to<numa<1>>())).to<cpu>(), infer(average)(x)));
  copy_state(average.model(), model);  // swap in
  CHECK(allclose(infer(model)(x), infer(average)(x)));
  CHECK_THROWS_WITH(average(randn(gen, {5, 7})), Contains("linear"));
}

TEST_CASE("tied weights, other orders in memory, modules without a type, half") {
  generator gen(1);
  nn::linear fc(4, 4, gen);
  nn::sequential tied{nn::any_module<float, 2>(fc), nn::any_module<float, 2>(fc)};
  optim::averaged_model average(tied, {.decay = 0.75});
  average.update_parameters(tied);
  const float before = fc.weight(1, 2);
  fc.weight.value() *= 5.f;
  average.update_parameters(tied);
  const nn::state_dict state = nn::state(average);
  const auto* const weight = reinterpret_cast<const float*>(state[1].value.bytes.data());
  CHECK(weight[6] == Approx(2 * before));  // 3 / 4 of it and a quarter of 5 of it, once

  nn::linear<half> small(2, 3, gen);
  optim::averaged_model of_half(small);
  of_half.update_parameters(small);
  small.weight = variable<half, 2>(cast<half>(tensor<float, 2>{{1, 2, 3}, {4, 5, 6}}).transpose());
  const half old = of_half.model().weight(2, 0);
  of_half.update_parameters(small);
  CHECK(static_cast<float>(of_half.model().weight(2, 0)) == Approx((static_cast<float>(old) + 3) / 2).epsilon(1e-2));

  CHECK_THROWS_WITH(optim::averaged_model(fc, {.decay = 1.5}), Contains("decay must be in [0, 1], but is 1.5"));
  CHECK_THROWS_AS(optim::averaged_model(fc, {.decay = NAN}), value_error);
  const nn::sequential three{nn::any_module<float, 2>(fc), nn::any_module<float, 2>(nn::relu())};
  CHECK_THROWS_WITH(average.update_parameters(three), Contains("is built otherwise"));
  CHECK(average.n_averaged() == 2);
  nn::sequential plain{nn::linear(2, 3, gen), nn::linear(3, 2, gen)};
  const nn::sequential wider{nn::linear(2, 3, gen), nn::linear(3, 4, gen)};
  optim::averaged_model of_plain(plain);
  of_plain.update_parameters(plain);
  const tensor kept = of_plain.model().get<0>().weight.value().clone();
  CHECK_THROWS_WITH(of_plain.update_parameters(wider),
                    Contains("averaged_model: 1.weight has the shape (4, 3) in the model and (2, 3)"));
  CHECK(allclose(of_plain.model().get<0>().weight.value(), kept, {.rtol = 0, .atol = 0}));
  CHECK(of_plain.n_averaged() == 1);
}

TEST_CASE("update_bn averages the moments of all batches") {
  generator gen(1);
  nn::sequential model{nn::linear(3, 4, gen), nn::batch_norm1d(4), nn::relu(), nn::linear(4, 2, gen)};
  optim::averaged_model average(model);
  const std::vector<tensor<float, 2>> loader = {randn(gen, {6, 3}), randn(gen, {6, 3}) + 2, randn(gen, {6, 3}) * 3};
  eval(model(loader[1]));
  average.update_parameters(model);
  auto& norm = average.model().get<1>();
  optim::update_bn(loader, average);
  CHECK(norm.num_batches_tracked.value().item() == 3);
  CHECK(norm.settings.momentum == 0.1);
  CHECK_FALSE(norm.state.training);
  tensor means = zeros<float>({4}), vars = zeros<float>({4});
  for (const auto& x : loader) {
    const tensor y = infer(average.model().get<0>())(x);
    means = means + mean(y, 0) / 3;
    vars = vars + var(y, 0) / 3;
  }
  CHECK(allclose(norm.running_mean.value(), means, {.rtol = 1e-4, .atol = 1e-5}));
  CHECK(allclose(norm.running_var.value(), vars, {.rtol = 1e-4, .atol = 1e-5}));
  CHECK(model.get<1>().num_batches_tracked.value().item() == 1);

  struct pair {
    tensor<float, 2> inputs;
  };
  optim::update_bn(std::vector<pair>{{loader[0]}}, average);
  CHECK(norm.num_batches_tracked.value().item() == 1);
  nn::sequential hidden{nn::any_module<float, 2>(nn::batch_norm1d(3))};
  CHECK_THROWS_WITH(optim::update_bn(loader, hidden), Contains("inside an any_module"));
  nn::sequential none{nn::any_module<float, 2>(nn::relu())};
  optim::update_bn(loader, none);

  // What throws leaves moments and modes.
  const tensor kept = norm.running_mean.value().clone();
  norm.state.training = true;
  auto odd = loader;
  odd.push_back(zeros({1, 3}));
  for (const auto& bad : {odd, std::vector<tensor<float, 2>>()}) {
    CHECK_THROWS_AS(optim::update_bn(bad, average), error);
    CHECK(all(norm.running_mean.value() == kept).item());
    CHECK(norm.num_batches_tracked.value().item() == 1);
    CHECK(norm.settings.momentum == 0.1);
    CHECK(norm.state.training);
  }
  CHECK_THROWS_WITH(optim::update_bn(std::vector<tensor<float, 2>>(), average),
                    Contains("update_bn: the loader has no"));
}
