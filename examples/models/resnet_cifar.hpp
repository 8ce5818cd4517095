// examples/models/resnet_cifar.hpp: residual networks of 6n + 2 layers for pictures of 32 x 32.
//
// K. He et al., "Deep residual learning for image recognition", CVPR 2016, section 4.2: ResNet-20, 32, 44, 56, ...
#pragma once

#include <sinter/sinter.hpp>

namespace models {

using namespace sinter;

enum class resnet_variant {
  he,    ///< as published: no bias in convolutions, relu behind each addition; PyTorch's names of weights
  torch  ///< as benchmarked by Shi et al. in 2016: biases in convolutions, no relu behind additions
};

/// (N,C,H,W) => (N,F,H,W), or (N,F,H/2,W/2) with stride 2: two convolutions, and a way around them without weights.
template <resnet_variant V, device D = cpu, class Kind = nn::tracked>
struct cifar_block : nn::module<cifar_block<V, D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <device To, class K>
  using rebind = cifar_block<V, To, K>;
  using conv = nn::conv2d<float, D, Kind, V == resnet_variant::torch>;
  using norm = nn::batch_norm2d<float, D, Kind>;
  using images = nn::parameter<float, 4, D, Kind>;  // a variable where the network is trained, a tensor in infer()

  cifar_block() = default;
  cifar_block(index_t channels, index_t filters, index_t stride, generator& gen)
      : conv1(channels, filters, 3, gen, {.stride = stride, .padding = 1}),
        bn1(filters),
        conv2(filters, filters, 3, gen, {.padding = 1}),
        bn2(filters) {}

  images forward(const images& x) const {
    const auto sum = bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x);
    if constexpr (V == resnet_variant::he) return relu(sum);
    else return sum;
  }

  /// x, or where the block makes more channels of half the size, every other pixel with channels of zeros beside.
  images shortcut(const images& x) const {
    const index_t more = bn1.weight.extent(0) - x.extent(1);
    if (more == 0) return x;
    const index_t before = V == resnet_variant::he ? more / 2 : 0;
    const auto pixels = x.slice(2, 0, x.extent(2), 2).slice(3, 0, x.extent(3), 2);
    return pad(pixels, {0, 0, 0, 0, before, more - before});
  }

  conv conv1;
  norm bn1;
  conv conv2;
  norm bn2;
  SINTER_MEMBERS(conv1, bn1, conv2, bn2);
};

/// Pictures (N,3,32,32) => scores of the classes (N,classes).
///
///     models::resnet_cifar<> net(20, gen);
///     variable loss = cross_entropy(net(pictures), labels);
template <resnet_variant V = resnet_variant::he, device D = cpu, class Kind = nn::tracked>
struct resnet_cifar : nn::module<resnet_cifar<V, D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <device To, class K>
  using rebind = resnet_cifar<V, To, K>;
  using block = cifar_block<V, D, Kind>;

  resnet_cifar() = default;
  /// Errors: value_error for a depth that is not 6n + 2 with n of 1 or more.
  resnet_cifar(index_t depth, generator& gen, index_t classes = 10)
      : conv1(3, 16, 3, gen, {.padding = 1}),
        bn1(16),
        layer1(blocks_of(depth), group(16, 16, 1, gen)),
        layer2(blocks_of(depth), group(16, 32, 2, gen)),
        layer3(blocks_of(depth), group(32, 64, 2, gen)),
        linear(64, classes, gen) {
    this->for_each_parameter([&]<class P>(const auto&, P& p) {
      if constexpr (P::rank == 4)  // the weights of convolutions
        p.value() = nn::init::kaiming_uniform<float, D>(gen, p.shape());
    });
  }

  auto forward(const tensor<float, 4, D>& x) const {
    typename block::images h = relu(bn1(conv1(x)));
    for (const auto* layer : {&layer1, &layer2, &layer3})
      for (const block& b : *layer) h = b(h);
    return linear(mean(h, {2, 3}));
  }

  typename block::conv conv1;
  typename block::norm bn1;
  nn::module_list<block> layer1, layer2, layer3;
  nn::linear<float, D, Kind> linear;
  SINTER_MEMBERS(conv1, bn1, layer1, layer2, layer3, linear);

 private:
  static index_t blocks_of(index_t depth) {
    if (depth < 8 || depth % 6 != 2)
      throw value_error("resnet_cifar: a depth of " + std::to_string(depth) + "; it must be 6n + 2, such as 20 or 56");
    return (depth - 2) / 6;
  }
  /// The blocks of a group; the first one changes the shape.
  static auto group(index_t channels, index_t filters, index_t stride, generator& gen) {
    return [=, &gen](index_t i) {
      return i == 0 ? block(channels, filters, stride, gen) : block(filters, filters, 1, gen);
    };
  }
};

/// The optimizer of the paper that the variant is from.
template <resnet_variant V, device D>
optim::sgd make_optimizer(const resnet_cifar<V, D>& net) {
  constexpr bool he = V == resnet_variant::he;
  return optim::sgd(net, {.lr = he ? 0.1 : 0.01, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = !he});
}

}  // namespace models
