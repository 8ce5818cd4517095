// digits_cnn.hpp: made by onnx_to_sinter.py 0.2.0 from digits.onnx. It is yours to change.
//
//     input x: float (n, 1, 8, 8)
//     output scores: float (n, 10)
#pragma once

#include <sinter/sinter.hpp>

namespace models {

namespace nn = sinter::nn;

template <sinter::device D = sinter::cpu, class Kind = nn::tracked>
struct digits_cnn : nn::module<digits_cnn<D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <sinter::device To, class K>
  using rebind = digits_cnn<To, K>;

  digits_cnn() = default;
  /// With new weights; nn::load(model, "digits_cnn.safetensors") reads those of the file.
  explicit digits_cnn(sinter::generator& gen)
      : conv1(1, 8, 3, gen, {.padding = 1}, nn::no_bias),
        bn1(8),
        conv2(8, 16, 3, gen, {.padding = 1}, nn::no_bias),
        bn2(16),
        fc(64, 10, gen) {}

  template <class X>
  auto forward(const X& x) const {
    using namespace sinter;
    const index_t n = x.size(0);
    auto h = eval(relu(bn1(conv1(x))));
    h = eval(max_pool2d(h, 2));
    h = eval(relu(bn2(conv2(h))));
    h = eval(max_pool2d(h, 2));
    const auto flatten = h.reshape({n, -1});
    return eval(fc(flatten));
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("conv1", m.conv1...);
    f("bn1", m.bn1...);
    f("conv2", m.conv2...);
    f("bn2", m.bn2...);
    f("fc", m.fc...);
  }

  nn::conv2d<float, D, Kind, false> conv1;
  nn::batch_norm2d<float, D, Kind> bn1;
  nn::conv2d<float, D, Kind, false> conv2;
  nn::batch_norm2d<float, D, Kind> bn2;
  nn::linear<float, D, Kind> fc;
};

}  // namespace models
