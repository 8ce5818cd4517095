// examples/models/fcn.hpp: the fully connected networks FCN-S and FCN-R.
//
// S. Shi et al., "Benchmarking state-of-the-art deep learning software tools", 2016.
#pragma once

#include <sinter/sinter.hpp>

namespace models {

using namespace sinter;

/// (N,26752) => scores of the classes (N,26752). The benchmark's batch is 64.
///
///     models::fcn_s<> net(gen);
///     optim::sgd optimizer = make_optimizer(net);
template <device D = cpu, class Kind = nn::tracked>
struct fcn_s : nn::module<fcn_s<D, Kind>> {
  nn::linear<float, D, Kind> fc1, fc2, fc3, fc4;

  fcn_s() = default;
  explicit fcn_s(generator& gen)
      : fc1(26752, 2048, gen), fc2(2048, 2048, gen), fc3(2048, 2048, gen), fc4(2048, 26752, gen) {}

  auto forward(const tensor<float, 2, D>& x) const { return fc4(sigmoid(fc3(sigmoid(fc2(sigmoid(fc1(x))))))); }
  SINTER_MEMBERS(fc1, fc2, fc3, fc4);
};

/// (N,784), pictures of MNIST => scores of the classes (N,10). The benchmark's batch is 1024.
template <device D = cpu, class Kind = nn::tracked>
struct fcn_r : nn::module<fcn_r<D, Kind>> {
  nn::linear<float, D, Kind> fc1, fc2, fc3, fc4;

  fcn_r() = default;
  explicit fcn_r(generator& gen)
      : fc1(784, 2048, gen), fc2(2048, 4096, gen), fc3(4096, 1024, gen), fc4(1024, 10, gen) {}

  auto forward(const tensor<float, 2, D>& x) const { return fc4(sigmoid(fc3(sigmoid(fc2(sigmoid(fc1(x))))))); }
  SINTER_MEMBERS(fc1, fc2, fc3, fc4);
};

template <device D>
optim::sgd make_optimizer(const fcn_s<D>& net) {
  return optim::sgd(net, {.lr = 0.01});
}
template <device D>
optim::sgd make_optimizer(const fcn_r<D>& net) {
  return optim::sgd(net, {.lr = 0.05, .momentum = 0.9});
}

}  // namespace models
