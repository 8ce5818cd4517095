// examples/models/resnet50.hpp: the residual network of 50 layers for pictures of 224 x 224.
//
// K. He et al., "Deep residual learning for image recognition", CVPR 2016, table 1. The stride of a block is that of
// its 3 x 3 convolution, and names of weights are those of torchvision.
#pragma once

#include <sinter/sinter.hpp>

namespace models {

using namespace sinter;

/// (N,C,H,W) => (N,4M,H',W') by way of M channels; stride 2 halves height and width.
template <device D = cpu, class Kind = nn::tracked>
struct bottleneck : nn::module<bottleneck<D, Kind>> {
  using conv = nn::conv2d<float, D, Kind, false>;  // without a bias: the norm behind it has one
  using norm = nn::batch_norm2d<float, D, Kind>;
  using images = nn::parameter<float, 4, D, Kind>;  // a variable where the network is trained, a tensor in infer()

  conv conv1;
  norm bn1;
  conv conv2;
  norm bn2;
  conv conv3;
  norm bn3;
  nn::sequential<conv, norm> downsample;  // where the shape changes; otherwise it has no weights

  bottleneck() = default;
  bottleneck(index_t channels, index_t middle, index_t stride, generator& gen)
      : conv1(channels, middle, 1, gen),
        bn1(middle),
        conv2(middle, middle, 3, gen, {.stride = stride, .padding = 1}),
        bn2(middle),
        conv3(middle, 4 * middle, 1, gen),
        bn3(4 * middle) {
    if (channels != 4 * middle || stride != 1)
      downsample = nn::sequential{conv(channels, 4 * middle, 1, gen, {.stride = stride}), norm(4 * middle)};
  }

  images forward(const images& x) const {
    const auto y = bn3(conv3(relu(bn2(conv2(relu(bn1(conv1(x))))))));
    if (changes_shape()) return relu(y + downsample(x));
    return relu(y + x);
  }
  bool changes_shape() const { return downsample.template get<0>().weight.defined(); }

  // In place of SINTER_MEMBERS, since not every block has all members.
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("conv1", m.conv1...);
    f("bn1", m.bn1...);
    f("conv2", m.conv2...);
    f("bn2", m.bn2...);
    f("conv3", m.conv3...);
    f("bn3", m.bn3...);
    if ((m.changes_shape() || ...)) f("downsample", m.downsample...);
  }
};

/// Pictures (N,3,224,224) => scores of the classes (N,1000). The benchmark's batch is 16.
///
///     models::resnet50<> net(gen);
///     optim::sgd optimizer = make_optimizer(net);
template <device D = cpu, class Kind = nn::tracked>
struct resnet50 : nn::module<resnet50<D, Kind>> {
  using block = bottleneck<D, Kind>;

  typename block::conv conv1;
  typename block::norm bn1;
  nn::module_list<block> layer1, layer2, layer3, layer4;
  nn::linear<float, D, Kind> fc;

  resnet50() = default;
  explicit resnet50(generator& gen, index_t classes = 1000)
      : conv1(3, 64, 7, gen, {.stride = 2, .padding = 3}),
        bn1(64),
        layer1(3, group(64, 64, 1, gen)),
        layer2(4, group(256, 128, 2, gen)),
        layer3(6, group(512, 256, 2, gen)),
        layer4(3, group(1024, 512, 2, gen)),
        fc(2048, classes, gen) {
    this->for_each_parameter([&]<class P>(const auto&, P& p) {
      if constexpr (P::rank == 4)  // the weights of convolutions
        p.value() = nn::init::kaiming_uniform<float, D>(gen, p.shape());
    });
  }

  auto forward(const tensor<float, 4, D>& x) const {
    typename block::images h = max_pool2d(relu(bn1(conv1(x))), 3, {.stride = 2, .padding = 1});  // (N,64,56,56)
    for (const auto* layer : {&layer1, &layer2, &layer3, &layer4})
      for (const block& b : *layer) h = b(h);
    return fc(mean(h, {2, 3}));  // h is (N,2048,7,7)
  }
  SINTER_MEMBERS(conv1, bn1, layer1, layer2, layer3, layer4, fc);

 private:
  /// The blocks of a group; the first one changes the shape.
  static auto group(index_t channels, index_t middle, index_t stride, generator& gen) {
    return [=, &gen](index_t i) {
      return i == 0 ? block(channels, middle, stride, gen) : block(4 * middle, middle, 1, gen);
    };
  }
};

template <device D>
optim::sgd make_optimizer(const resnet50<D>& net) {
  return optim::sgd(net, {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true});
}

}  // namespace models
