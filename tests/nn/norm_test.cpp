// tests/nn/norm_test.cpp: layers that normalise.
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

template <class A, class B>
double distance(const A& a, const B& b) {
  return eval(max(abs(cast<double>(a) - cast<double>(b)))).item();
}

}  // namespace

TEST_CASE("a batch norm has PyTorch's parameters and buffers", "[nn][norm]") {
  const nn::sequential model{nn::batch_norm2d(4)};
  const auto state = nn::state(model);
  std::vector<std::string> names;
  for (const auto& entry : state) names.push_back(entry.name);
  CHECK(names ==
        std::vector<std::string>{"0.weight", "0.bias", "0.running_mean", "0.running_var", "0.num_batches_tracked"});
  CHECK(model.named_parameters().size() == 2);
  CHECK(nn::state(nn::batch_norm1d(4, {}, nn::no_affine)).size() == 3);
  CHECK(nn::state(nn::batch_norm3d(4, {}, nn::no_running_moments)).size() == 2);
}

TEST_CASE("a batch norm loads a state without its counter, as files from before PyTorch 0.4.1 are", "[nn][norm]") {
  const nn::sequential from{nn::batch_norm2d(2)}, to{nn::batch_norm2d(2)};
  from.get<0>().running_mean.value() += 3.0f;
  to.get<0>().num_batches_tracked.value() += 7;
  nn::state_dict state = nn::state(from);
  state.pop_back();
  nn::load_state(to, state);
  CHECK(to.get<0>().running_mean.value()(1) == 3.0f);
  CHECK(to.get<0>().num_batches_tracked.value().item() == 7);
  state.pop_back();
  CHECK_THROWS_WITH(nn::load_state(to, state), Catch::Contains("'0.running_var' is missing in the state"));
}

TEST_CASE("a batch norm follows its batches in training, and stands still otherwise", "[nn][norm]") {
  generator gen(1);
  const auto x = eval(randn<float>(gen, {8, 3, 4, 4}) * 3.0f + 1.0f);
  nn::batch_norm2d norm(3, {.momentum = 0.5});
  const tensor<float, 2> moments = batch_moments(x);
  const tensor y = eval(norm(x)).detach();
  CHECK(distance(mean(y), 0.0 * sum(y)) < 1e-5);
  CHECK(distance(norm.running_mean.value(), moments[0] * 0.5f) < 1e-6);
  CHECK(distance(norm.running_var.value(), 0.5f + moments[1] * (0.5f * 128 / 127)) < 1e-5);
  CHECK(norm.num_batches_tracked.value().item() == 1);
  norm.eval();
  const tensor before = norm.running_mean.value().clone();
  const tensor z = eval(norm(x)).detach();
  CHECK(distance(norm.running_mean.value(), before) == 0);
  CHECK(norm.num_batches_tracked.value().item() == 1);
  CHECK(distance(y, z) > 0.1);
  norm.train();
  CHECK(distance(infer(norm)(x), z) == 0);
}

TEST_CASE("without a momentum running moments are averages", "[nn][norm]") {
  generator gen(2);
  const nn::batch_norm1d norm(5, {.momentum = std::nullopt});
  tensor<float, 1> sum = zeros<float>({5});
  for (int i = 0; i < 3; ++i) {
    const auto x = randn<float>(gen, {16, 5});
    eval(norm(x));
    sum = sum + tensor(batch_moments(x))[0];
  }
  CHECK(distance(norm.running_mean.value(), sum / 3.0f) < 1e-6);
}

TEST_CASE("without running moments those of the batch serve eval too", "[nn][norm]") {
  generator gen(3);
  const auto x = randn<float>(gen, {16, 5, 3});
  nn::batch_norm1d norm(5, {}, nn::no_running_moments);
  const tensor y = eval(norm(x)).detach();
  norm.eval();
  CHECK(distance(norm(x), y) == 0);
  CHECK(distance(infer(norm)(x), y) == 0);
}

TEST_CASE("norms move to other devices and keep the names of their members", "[nn][norm]") {
  generator gen(4);
  const auto x = randn<float>(gen, {4, 6, 5, 5});
  const nn::sequential model{nn::conv2d(6, 8, 3, gen),
                             nn::batch_norm2d(8),
                             nn::relu(),
                             nn::group_norm(2, 8),
                             nn::instance_norm(8, 1e-5, nn::affine),
                             nn::instance_norm(8),
                             nn::layer_norm(3)};
  const auto there = model.to<numa<0>>();
  CHECK(distance(eval(there(x.to<numa<0>>())).detach().to<cpu>(), eval(model(x)).detach()) == 0);
  CHECK(model.named_parameters().size() == 2 + 2 + 2 + 2 + 2);
  const auto& moved = there.get<1>().running_mean.value();
  CHECK(distance(moved.to<cpu>(), model.get<1>().running_mean.value()) == 0);
  CHECK(nn::summary(model, {4, 6, 5, 5}).parameters == 6 * 8 * 9 + 8 + 16 + 16 + 16 + 6);
}

TEST_CASE("a layer norm takes one axis or several, with or without a weight and a bias", "[nn][norm]") {
  generator gen(7);
  const auto x = randn<float>(gen, {2, 3, 4, 5});
  nn::layer_norm whole({3, 4, 5});
  const nn::layer_norm one(extents<1>{{5}}), same(5);
  whole.weight.value().in_place() = randn<float>(gen, {3, 4, 5});
  whole.bias.value().in_place() = randn<float>(gen, {3, 4, 5});
  const tensor rows = layer_norm(x, {3, 4, 5});
  CHECK(distance(infer(whole)(x), rows * whole.weight.value() + whole.bias.value()) < 1e-5);
  CHECK(distance(eval(one(x)).detach(), eval(same(x)).detach()) == 0);
  nn::layer_norm scaled({4, 5}, 1e-3, nn::no_bias);
  CHECK(nn::state(scaled).size() == 1);
  scaled.weight.value().in_place() *= 2;
  CHECK(distance(eval(scaled(x)).detach(), layer_norm(x, {4, 5}, 1e-3) * 2.0f) < 1e-6);
  const nn::layer_norm line(5, 1e-3, nn::no_bias);
  const nn::layer_norm bare({4, 5}, 1e-3, nn::no_affine);
  CHECK(distance(eval(line(x)).detach(), layer_norm(x, 1e-3)) < 1e-6);
  CHECK(nn::state(bare).empty());
  CHECK(distance(eval(bare.to<numa<0>>()(x.to<numa<0>>())).to<cpu>(), layer_norm(x, {4, 5}, 1e-3)) == 0);
  CHECK_THROWS_AS(eval(bare(randn<float>(gen, {2, 5, 4}))), shape_error);
  CHECK_THROWS_AS(eval(nn::layer_norm(4, 1e-5, nn::no_affine)(x)), shape_error);
  CHECK_THROWS_AS(nn::layer_norm({2, -1}), shape_error);
  nn::layer_norm loaded({3, 4, 5});
  nn::load_state(loaded, nn::state(whole));
  CHECK(distance(infer(loaded)(x), infer(whole)(x)) == 0);
}

TEST_CASE("a network with batch norm learns, and infers as it evaluates", "[nn][norm]") {
  generator gen(5);
  nn::sequential model{nn::conv2d(1, 8, 3, gen, {.padding = 1}, nn::no_bias), nn::batch_norm2d(8), nn::relu(),
                       nn::flatten(), nn::linear(8 * 36, 2, gen)};
  const auto x = randn<float>(gen, {32, 1, 6, 6});
  const tensor<std::int64_t, 1> labels = cast<std::int64_t>(sum(x.slice(2, 0, 3), {1, 2, 3}) > 0.0f);
  optim::sgd optimizer(model, {.lr = 0.05, .momentum = 0.9});
  float loss = 1;
  for (int i = 0; i < 40; ++i) {
    optimizer.zero_grad();
    variable l = cross_entropy(model(x), labels);
    l.backward();
    optimizer.step();
    loss = l.value().item();
  }
  CHECK(loss < 0.1f);
  model.eval();
  CHECK(distance(infer(model)(x), eval(model(x)).detach()) < 1e-5);
}

TEST_CASE("batch norms fold into the convolutions before them", "[nn][norm]") {
  generator gen(6);
  nn::sequential model{nn::conv2d(3, 8, 3, gen),
                       nn::batch_norm2d(8),
                       nn::relu(),
                       nn::sequential{nn::conv2d(8, 4, 3, gen, {}, nn::no_bias), nn::batch_norm2d(4)},
                       nn::conv2d(4, 4, 1, gen, {}, nn::no_bias),
                       nn::batch_norm2d(4, {}, nn::no_affine),
                       nn::relu(),
                       nn::batch_norm2d(4)};
  const auto x = randn<float>(gen, {8, 3, 9, 9});
  for (int i = 0; i < 5; ++i) eval(model(x));  // moves the running moments
  model.get<1>().weight.value().in_place() = uniform<float>(gen, 0.5f, 2.0f, {8});
  model.get<1>().bias.value().in_place() = randn<float>(gen, {8});
  model.get<3>().get<1>().bias.value().in_place() = randn<float>(gen, {4});
  model.eval();
  const tensor y = infer(model)(x);
  CHECK(nn::fold_batch_norm(model) == 3);  // behind relu there is no convolution
  CHECK(distance(infer(model)(x), y) < 1e-4);
  CHECK(distance(model.get<1>().running_mean.value(), zeros<float>({8})) == 0);
  CHECK(distance(model.get<5>().running_mean.value(), zeros<float>({4})) > 0);
}

TEST_CASE("an rms norm divides rows by their root mean square and scales them", "[nn]") {
  generator gen(4);
  const tensor x = randn<float>(gen, {3, 5});
  nn::rms_norm norm(5, 1e-3);
  CHECK(norm.named_parameters().size() == 1);
  CHECK(distance(eval(norm(x)).detach(), rms_norm(x, 1e-3)) == 0);
  norm.weight.value() = 2.0f;
  CHECK(distance(eval(norm(x)).detach(), rms_norm(x, 1e-3) * 2.0f) < 1e-6);
  CHECK(distance(eval(infer(norm)(x)), rms_norm(x, 1e-3) * 2.0f) < 1e-6);
  sum(norm(x)).backward();
  CHECK(distance(norm.weight.grad(), sum(rms_norm(x, 1e-3), 0)) < 1e-6);
  CHECK_THROWS_AS(eval(nn::rms_norm(4)(x)), shape_error);
  CHECK_THROWS_AS(nn::rms_norm(-1), shape_error);
}
