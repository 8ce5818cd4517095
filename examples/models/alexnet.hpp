// examples/models/alexnet.hpp: AlexNet for pictures of 224 x 224 and its small relative for 32 x 32.
//
// A. Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", NIPS 2012, as benchmarked by
// S. Shi et al., "Benchmarking state-of-the-art deep learning software tools", 2016: in one piece, without local
// response normalisation and dropout.
#pragma once

#include <sinter/sinter.hpp>

namespace models {

using namespace sinter;

/// Pictures (N,3,224,224) => scores of the classes (N,1000). The benchmark's batch is 16.
///
///     models::alexnet_s<> net(gen);
///     optim::sgd optimizer = make_optimizer(net);
template <device D = cpu, class Kind = nn::tracked>
struct alexnet_s : nn::module<alexnet_s<D, Kind>> {
  nn::conv2d<float, D, Kind> conv1, conv2, conv3, conv4, conv5;
  nn::linear<float, D, Kind> fc6, fc7, fc8;

  alexnet_s() = default;
  explicit alexnet_s(generator& gen)
      : conv1(3, 96, 11, gen, {.stride = 4, .padding = 2}),
        conv2(96, 256, 5, gen, {.padding = 2}),
        conv3(256, 384, 3, gen, {.padding = 1}),
        conv4(384, 384, 3, gen, {.padding = 1}),
        conv5(384, 256, 3, gen, {.padding = 1}),
        fc6(256 * 6 * 6, 4096, gen),
        fc7(4096, 4096, gen),
        fc8(4096, 1000, gen) {}

  auto forward(const tensor<float, 4, D>& x) const {
    // A named result ends an expression. So the compiler sees few types, each for several layers.
    nn::parameter<float, 4, D, Kind> h = max_pool2d(relu(conv1(x)), 3, {.stride = 2});  // (N,96,27,27)
    h = max_pool2d(relu(conv2(h)), 3, {.stride = 2});                                   // (N,256,13,13)
    h = relu(conv3(h));                                                                 // (N,384,13,13)
    h = relu(conv4(h));
    h = max_pool2d(relu(conv5(h)), 3, {.stride = 2});  // (N,256,6,6)
    return fc8(relu(fc7(relu(fc6(h.reshape({x.extent(0), -1}))))));
  }
  SINTER_MEMBERS(conv1, conv2, conv3, conv4, conv5, fc6, fc7, fc8);
};

/// Pictures of CIFAR-10 (N,3,32,32) => scores of the classes (N,10). The benchmark's batch is 1024.
template <device D = cpu, class Kind = nn::tracked>
struct alexnet_r : nn::module<alexnet_r<D, Kind>> {
  nn::conv2d<float, D, Kind> conv1, conv2, conv3;
  nn::linear<float, D, Kind> fc;

  alexnet_r() = default;
  explicit alexnet_r(generator& gen)
      : conv1(3, 32, 5, gen, {.padding = 2}),
        conv2(32, 32, 5, gen, {.padding = 2}),
        conv3(32, 64, 5, gen, {.padding = 2}),
        fc(64 * 3 * 3, 10, gen) {}

  auto forward(const tensor<float, 4, D>& x) const {
    nn::parameter<float, 4, D, Kind> h = relu(max_pool2d(conv1(x), 3, {.stride = 2}));  // (N,32,15,15)
    h = max_pool2d(relu(conv2(h)), 3, {.stride = 2});                                   // (N,32,7,7)
    h = avg_pool2d(relu(conv3(h)), 3, {.stride = 2});                                   // (N,64,3,3)
    return fc(h.reshape({x.extent(0), -1}));
  }
  SINTER_MEMBERS(conv1, conv2, conv3, fc);
};

template <device D>
optim::sgd make_optimizer(const alexnet_s<D>& net) {
  return optim::sgd(net, {.lr = 0.01});
}
template <device D>
optim::sgd make_optimizer(const alexnet_r<D>& net) {
  return optim::sgd(net, {.lr = 0.001, .momentum = 0.9});
}

}  // namespace models
