// tests/bench/models.cpp: a training step of a network of examples/models, the input in memory. Usage: models THREADS
//
// models.py compiles it for each network, with NAME, NETWORK, ARGUMENTS, SAMPLE, CLASSES, BATCH and DEVICE.
#include <cmath>
#include <cstdlib>

#include "../../examples/models/alexnet.hpp"
#include "../../examples/models/fcn.hpp"
#include "../../examples/models/resnet50.hpp"
#include "../../examples/models/resnet_cifar.hpp"
#include "rows.hpp"

using namespace sinter;

int main(int argc, char** argv) {
  set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  generator gen(1);
  NETWORK net(ARGUMENTS gen);
  optim::sgd optimizer = make_optimizer(net);
  const auto x = randn<float>(gen, {BATCH, SAMPLE}).to<DEVICE>();
  const auto labels = randint(gen, 0, CLASSES, {BATCH}).to<DEVICE>();
  const auto step = [&] {
    variable loss = cross_entropy(net(x), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    if (std::isnan(loss.item())) std::exit(1);
  };
  return serve({{"sinter " NAME, 1, 0, step}});
}
