// tests/bench/checkpoint.cpp: time and bytes of a training step of ResNet-56, each block as it is and as a checkpoint.
//
//   g++ -std=c++20 -O3 -march=native -I include -isystem /usr/include/eigen3 tests/bench/checkpoint.cpp -pthread
#include <cstdio>
#include <vector>

#include <sinter/parallel.hpp>

#include "../../examples/models/resnet_cifar.hpp"
#include "timing.hpp"

using namespace sinter;

namespace {

using network = models::resnet_cifar<>;

/// network::forward, each block run by `run`.
template <class Run>
auto forward(const network& net, const tensor<float, 4>& x, const Run& run) {
  variable h = relu(net.bn1(net.conv1(x)));
  for (const auto* layer : {&net.layer1, &net.layer2, &net.layer3})
    for (const auto& block : *layer) h = run(block, h);
  return net.linear(mean(h, {2, 3}));
}

struct cost {
  double milliseconds;
  std::size_t bytes;
};

}  // namespace

int main() {
  generator gen(1);
  const network net(56, gen);
  auto optimizer = make_optimizer(net);
  const tensor x = randn<float>(gen, {128, 3, 32, 32});
  const tensor labels = randint(gen, 0, 10, {128});
  const auto step = [&](const auto& run) {
    reset_peak_memory();
    const double time = milliseconds([&] {
      const variable loss = cross_entropy(forward(net, x, run), labels);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    });
    return cost{time, memory().peak_bytes};
  };
  std::vector<double> times, of_checkpoints, ratios;
  cost plainly{}, again{};
  for (int turn = -2; turn < 9; ++turn) {
    plainly = step([](const auto& block, const auto& h) { return block(h); });
    again = step([](const auto& block, const auto& h) { return checkpoint(block, h); });
    if (turn < 0) continue;  // memory is new
    times.push_back(plainly.milliseconds);
    of_checkpoints.push_back(again.milliseconds);
    ratios.push_back(again.milliseconds / plainly.milliseconds);
  }
  const auto mib = [](std::size_t bytes) { return static_cast<double>(bytes) / 1024 / 1024; };
  std::printf("ResNet-56, batch 128: %.0f ms and %.0f MiB a step; with checkpoints %.0f ms and %.0f MiB\n",
              median(times), mib(plainly.bytes), median(of_checkpoints), mib(again.bytes));
  std::printf("time %.2f, bytes %.2f\n", median(ratios), mib(again.bytes) / mib(plainly.bytes));
}
