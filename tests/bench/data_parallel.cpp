// tests/bench/data_parallel.cpp: a training step on one device and over two replicas, one thread each.
//
//   g++ -std=c++20 -O3 -march=native -I include -isystem /usr/include/eigen3 tests/bench/data_parallel.cpp -pthread
#include <cstdio>
#include <vector>

#include <sinter/parallel.hpp>

#include "../../examples/models/alexnet.hpp"
#include "../../examples/models/resnet_cifar.hpp"
#include "timing.hpp"

using namespace sinter;

namespace {

template <class Net>
void compare(const char* name, const Net& one, index_t batch) {
  generator gen(1);
  const tensor x = randn<float>(gen, {batch, 3, 32, 32});
  const tensor labels = randint(gen, 0, 10, {batch});
  const auto many = nn::data_parallel<numa<0>, numa<1>>(one.template to<cpu>());
  optim::sgd of_one = make_optimizer(one), of_many = make_optimizer(many.module);
  const auto step = [&](const auto& net, auto& optimizer) {
    const variable loss = cross_entropy(net(x), labels);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  };
  std::vector<double> ours, theirs, ratios;
  for (int turn = -2; turn < 9; ++turn) {
    const double a = milliseconds([&] { step(one, of_one); }), b = milliseconds([&] { step(many, of_many); });
    if (turn < 0) continue;  // memory is new
    ours.push_back(a);
    theirs.push_back(b);
    ratios.push_back(a / b);
  }
  std::printf("%s: one device %.0f ms, two replicas %.0f ms, %.2f times as fast\n", name, median(ours), median(theirs),
              median(ratios));
}

}  // namespace

int main() {
  set_num_threads(1);
  set_num_threads<numa<0>>(1);
  set_num_threads<numa<1>>(1);
  generator gen(1);
  compare("AlexNet-R", models::alexnet_r<>(gen), 1024);
  compare("ResNet-56", models::resnet_cifar<models::resnet_variant::torch>(56, gen), 128);
}
