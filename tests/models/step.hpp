// tests/models/step.hpp: a training step of a network of examples/models beside PyTorch's.
#pragma once

#include <sinter/sinter.hpp>
#include "../catch.hpp"

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

namespace steps {

using namespace sinter;

/// Of a gradient or buffer, times numbers() the second; of a loss, the value.
struct figures {
  double first = 0, second = 0;
};

/// What reference/make.py stored for a network.
inline std::map<std::string, figures> reference(const std::string& network) {
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
inline float number(index_t i, unsigned seed) {
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

/// One step of `loss`, for the optimizer of the network. `tolerance` is that of gradients and buffers, relative to
/// their norm.
template <class Net, class Loss>
void check_step(const std::string& name, Net& net, const Loss& loss_of_step, double tolerance) {
  const auto wanted = reference(name);
  fill(net);
  auto optimizer = make_optimizer(net);

  variable loss = loss_of_step();
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

  if constexpr (requires { Net::largest_gradient; }) optim::clip_grad_norm(net, Net::largest_gradient);
  optimizer.step();
  const double after = static_cast<double>(eval(loss_of_step()).item());
  CHECK(std::abs(after / wanted.at("loss after").first - 1) < 10 * tolerance);
}

}  // namespace steps
