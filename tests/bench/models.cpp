// tests/bench/models.cpp: a training step of a network of examples/models, the input in memory.
//
// models.py compiles it for each network, with NAME, NETWORK, ARGUMENTS, SAMPLE, CLASSES, BATCH and DEVICE, beside
// models_main.cpp.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>

#include "../../examples/models/alexnet.hpp"
#include "../../examples/models/fcn.hpp"
#include "../../examples/models/resnet50.hpp"
#include "../../examples/models/resnet_cifar.hpp"

using namespace sinter;

std::function<void()> make_step(int threads) {
  set_num_threads(threads);
  generator gen(1);
  const auto net = std::make_shared<NETWORK>(ARGUMENTS gen);
  const std::shared_ptr<optim::sgd> optimizer(new optim::sgd(make_optimizer(*net)));
  const auto x = randn<float>(gen, {BATCH, SAMPLE}).to<DEVICE>();
  const auto labels = randint(gen, 0, CLASSES, {BATCH}).to<DEVICE>();
  return [=] {
    variable loss = cross_entropy((*net)(x), labels);
    optimizer->zero_grad();
    loss.backward();
    optimizer->step();
    if (std::isnan(loss.item())) std::exit(1);
  };
}
