// tests/models/step_test.cpp: the networks of examples/models: parameters, and a training step beside PyTorch's.
#include "../catch.hpp"

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "../../examples/models/alexnet.hpp"
#include "../../examples/models/fcn.hpp"
#include "../../examples/models/resnet50.hpp"
#include "../../examples/models/resnet_cifar.hpp"

using namespace sinter;

namespace {

/// Of a gradient or buffer, times numbers() the second; of a loss, the value.
struct figures {
  double first = 0, second = 0;
};

/// What reference/make.py stored for a network.
std::map<std::string, figures> reference(const std::string& network) {
  std::ifstream file(SINTER_REPOSITORY "/tests/models/reference/steps.tsv");
  std::map<std::string, figures> all;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string name, what;
    std::getline(fields, name, '\t');
    std::getline(fields, what, '\t');
    figures f;
    fields >> f.first >> f.second;
    if (name == network) all[what] = f;
  }
  REQUIRE_FALSE(all.empty());
  return all;
}

/// From -1 to 1, each from its index by the finaliser of MurmurHash3. The same in make.py.
float number(index_t i, unsigned seed) {
  std::uint32_t h = static_cast<std::uint32_t>(i) + seed * 0x9E3779B9u;
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  h ^= h >> 16;
  return static_cast<float>(h >> 8) * 0x1p-23f - 1.f;
}

template <int R>
tensor<float, R> numbers(const extents<R>& shape, unsigned seed) {
  const auto x = tensor<float, R>::uninitialized(shape);
  for (index_t i = 0; i < x.numel(); ++i) x.data()[i] = number(i, seed);
  return x;
}

template <int R>
figures figures_of(const tensor<float, R>& x) {
  const tensor rows = x.contiguous();
  figures f;
  for (index_t i = 0; i < rows.numel(); ++i) {
    const auto v = static_cast<double>(rows.data()[i]);
    f.first += v * v;
    f.second += v * static_cast<double>(number(i, 0));
  }
  f.first = std::sqrt(f.first);
  return f;
}

/// The same in make.py, which says why.
template <class Net>
void fill(Net& net) {
  unsigned seed = 0;
  net.for_each_parameter([&]<class P>(std::string_view name, P& p) {
    const tensor v = numbers(p.shape(), ++seed);
    if constexpr (P::rank > 1)
      p.value() = v * static_cast<float>(std::sqrt(0.5 / static_cast<double>(nn::init::fan_in(p.shape()))));
    else if (name.find("bn") == name.npos && name.find("downsample.1") == name.npos) p.value() = v;
    else if (name.ends_with("weight")) p.value() = 0.1f + 0.01f * v;
    else p.value() = 2.f * v;
  });
}

/// One step with a batch of two samples of a shape. `tolerance` is that of gradients and buffers, relative to their
/// norm.
template <class Net, std::size_t N>
void check_step(const std::string& name, Net& net, const index_t (&sample)[N], index_t classes, double tolerance) {
  const auto wanted = reference(name);
  extents<N + 1> shape;
  shape[0] = 2;
  for (std::size_t d = 0; d < N; ++d) shape[static_cast<int>(d) + 1] = sample[d];
  const tensor x = numbers(shape, 1000);
  const tensor<std::int64_t, 1> labels = {0, 7 % classes};
  fill(net);
  optim::sgd optimizer = make_optimizer(net);

  variable loss = cross_entropy(net(x), labels);
  loss.backward();
  CHECK(std::abs(static_cast<double>(loss.item()) / wanted.at("loss").first - 1) < 1e-5);

  double largest = 0;
  for (const auto& [what, f] : wanted)
    if (what.starts_with("gradient")) largest = std::max(largest, f.first);
  std::size_t compared = 0;
  const auto compare = [&](const std::string& what, const auto& values, double least) {
    const figures is = figures_of(values), should = wanted.at(what);
    const double error =
        std::max(std::abs(is.first - should.first), std::abs(is.second - should.second)) / (should.first + least);
    INFO(what << ": norm " << is.first << ", not " << should.first << "; times numbers " << is.second << ", not "
              << should.second);
    CHECK(error < tolerance);
    ++compared;
  };
  // The bias of a convolution in front of a norm has a gradient of zero and rounding errors.
  net.for_each_parameter([&](std::string_view parameter, auto& p) {
    compare("gradient " + std::string(parameter), p.grad(), 0.01 * largest);
  });
  net.for_each_buffer([&](std::string_view buffer, auto& b) {
    if constexpr (std::decay_t<decltype(b.value())>::rank == 1) compare("buffer " + std::string(buffer), b.value(), 0);
  });
  CHECK(compared == wanted.size() - 2);

  optimizer.step();
  const double after = static_cast<double>(eval(cross_entropy(net(x), labels)).item());
  CHECK(std::abs(after / wanted.at("loss after").first - 1) < 10 * tolerance);
}

}  // namespace

TEST_CASE("models: FCN-S") {
  generator gen(1);
  models::fcn_s<> net(gen);
  CHECK(net.parameter_count() == 117'997'696);
  check_step("fcn_s", net, {26752}, 26752, 1e-5);
}

TEST_CASE("models: FCN-R") {
  generator gen(1);
  models::fcn_r<> net(gen);
  CHECK(net.parameter_count() == 14'205'962);
  check_step("fcn_r", net, {784}, 10, 1e-5);
}

TEST_CASE("models: AlexNet-S") {
  generator gen(1);
  models::alexnet_s<> net(gen);
  CHECK(net.parameter_count() == 62'378'344);
  check_step("alexnet_s", net, {3, 224, 224}, 1000, 1e-3);
}

TEST_CASE("models: AlexNet-R") {
  generator gen(1);
  models::alexnet_r<> net(gen);
  CHECK(net.parameter_count() == 85'098);
  check_step("alexnet_r", net, {3, 32, 32}, 10, 1e-5);
}

TEST_CASE("models: ResNet-50") {
  generator gen(1);
  models::resnet50<> net(gen);
  CHECK(net.parameter_count() == 25'557'032);
  CHECK(net.layer2[0].changes_shape());
  CHECK_FALSE(net.layer2[1].changes_shape());
  // One sign that rounding changes in front of a relu moves gradients by so much; PyTorch in float is 4e-3 off.
  check_step("resnet50", net, {3, 224, 224}, 1000, 1e-2);
}

TEST_CASE("models: ResNet-56 of the benchmark") {
  generator gen(1);
  models::resnet_cifar<models::resnet_variant::torch> net(56, gen);
  CHECK(net.parameter_count() == 855'050);
  check_step("resnet56", net, {3, 32, 32}, 10, 1e-4);
}

TEST_CASE("models: ResNet-20, 32, 44 and 56 as published") {
  generator gen(1);
  models::resnet_cifar<> net(20, gen);
  CHECK(net.parameter_count() == 269'722);
  CHECK(models::resnet_cifar<>(32, gen).parameter_count() == 464'154);
  CHECK(models::resnet_cifar<>(44, gen).parameter_count() == 658'586);
  CHECK(models::resnet_cifar<>(56, gen).parameter_count() == 853'018);
  CHECK_THROWS_AS(models::resnet_cifar<>(21, gen), value_error);
  check_step("resnet20", net, {3, 32, 32}, 10, 1e-4);
}

TEST_CASE("models: a step asks the system for no memory after the first two") {
  generator gen(1);
  const models::resnet_cifar<> net(8, gen);
  optim::sgd optimizer = make_optimizer(net);
  const tensor x = numbers(extents<4>{{2, 3, 32, 32}}, 1000);
  const tensor<std::int64_t, 1> labels = {0, 7};
  std::size_t before = 0;
  for (int step = 0; step < 4; ++step) {
    const variable loss = cross_entropy(net(x), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (step == 1) before = memory<cpu>().system_allocations;
  }
  CHECK(memory<cpu>().system_allocations == before);
}
