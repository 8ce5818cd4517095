// tests/models/trained.cpp: a trained ResNet-20 beside what PyTorch made of it. Usage: trained WEIGHTS PICTURES
// STEP_DIR
//
// trained.py compiles and runs it. STEP_DIR holds the loss, gradients and buffers of a training step as .npy files.
#include <cmath>
#include <cstdio>
#include <string>

#include <sinter/data.hpp>
#include <sinter/io.hpp>

#include "../../examples/models/resnet_cifar.hpp"

using namespace sinter;

namespace {

tensor<float, 4> normalised(const tensor<std::uint8_t, 4>& x) {
  const tensor mean = tensor<float, 1>{0.485f, 0.456f, 0.406f}.reshape({3, 1, 1});
  const tensor deviation = tensor<float, 1>{0.229f, 0.224f, 0.225f}.reshape({3, 1, 1});
  return (cast<float>(x) / 255.f - mean) / deviation;
}

/// The distance relative to the norm of what is wanted.
template <int R>
double distance(const tensor<float, R>& x, const std::string& file) {
  const tensor wanted = read_npy<float, R>(file);
  return static_cast<double>(norm(x - wanted).item()) / (1e-12 + static_cast<double>(norm(wanted).item()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string weights = argv[1], pictures = argv[2], step = std::string(argv[3]) + "/";
  generator gen(1);
  models::resnet_cifar<> net(20, gen);
  nn::load_state(net, read_safetensors(weights));
  const auto set = read_cifar10(pictures);

  const auto reader = infer(net);
  index_t right = 0;
  double loss = 0;
  for (index_t at = 0; at < 4000; at += 500) {
    const tensor labels = cast<std::int64_t>(set.targets.slice(0, at, at + 500));
    const tensor scores = reader(normalised(set.inputs.slice(0, at, at + 500)));
    right += static_cast<index_t>(sum(cast<std::int64_t>(argmax(scores, 1) == labels)).item());
    loss += static_cast<double>(eval(cross_entropy(scores, labels, reduction::sum)).item()) / 4000;
  }
  std::printf("%d of 4000 right, mean loss %.5f\n", static_cast<int>(right), loss);

  const variable of_step =
      cross_entropy(net(normalised(set.inputs.slice(0, 0, 16))), cast<std::int64_t>(set.targets.slice(0, 0, 16)));
  of_step.backward();
  double gradients = 0, buffers = 0;
  net.for_each_parameter([&](const std::string& name, auto& p) {
    gradients = std::max(gradients, distance(p.grad(), step + "grad." + name + ".npy"));
  });
  net.for_each_buffer([&]<class B>(const std::string& name, const B& b) {
    if constexpr (B::rank == 1) buffers = std::max(buffers, distance(b.value(), step + "after." + name + ".npy"));
  });
  std::printf("loss of a step %.8f; largest distance of a gradient %.1e, of a buffer %.1e\n",
              static_cast<double>(of_step.item()), gradients, buffers);
  const bool same_loss = std::abs(static_cast<double>(of_step.item()) / 0.00219788 - 1) < 1e-3;
  return right == 3992 && same_loss && gradients < 1e-3 && buffers < 1e-5 ? 0 : 1;
}
