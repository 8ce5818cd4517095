// tests/bench/placement.cpp: predicted and measured times of every cut of AlexNet-R between a device of two threads and
// one of one thread, and what placed() takes for the same cuts.
//
//   g++ -std=c++20 -O2 -march=native -I include -isystem /usr/include/eigen3 tests/bench/placement.cpp -pthread
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <vector>

#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

using fast = numa<0>;
using slow = numa<1>;

/// models::alexnet_r as a chain.
auto alexnet_r(generator& gen) {
  return nn::sequential{nn::conv2d(3, 32, 5, gen, {.padding = 2}),
                        nn::max_pool2d(3, {.stride = 2}),
                        nn::relu(),
                        nn::conv2d(32, 32, 5, gen, {.padding = 2}),
                        nn::relu(),
                        nn::max_pool2d(3, {.stride = 2}),
                        nn::conv2d(32, 64, 5, gen, {.padding = 2}),
                        nn::relu(),
                        nn::avg_pool2d(3, {.stride = 2}),
                        nn::flatten(),
                        nn::linear(64 * 3 * 3, 10, gen)};
}

template <class Chain>
std::function<double()> step_of(const Chain& model, const tensor<float, 4>& images,
                                const tensor<std::int64_t, 1>& labels) {
  auto optimizer = std::make_shared<optim::sgd>(model, optim::sgd_options{.lr = 0.001, .momentum = 0.9});
  return [=] {
    const double begin = nn::detail::seconds_now();
    const variable y = model(images.to<device_of<Chain>>());
    const variable loss = cross_entropy(y, labels.to<device_of<decltype(y)>>());
    optimizer->zero_grad();
    loss.backward();
    optimizer->step();
    return nn::detail::seconds_now() - begin;
  };
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads<fast>(2);
  set_num_threads<slow>(1);
  const index_t batch = argc > 1 ? std::atoi(argv[1]) : 128;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 11;
  generator gen(1);
  const auto chain = alexnet_r(gen);
  const tensor images = randn<float>(gen, {batch, 3, 32, 32});
  const tensor labels = randint(gen, 0, 10, {batch});
  const nn::advice a = nn::advise<fast, slow>(
      chain, nn::cuts<1, 3, 4, 6, 7, 9>{}, images, labels,
      [](const auto& scores, const auto& l) { return cross_entropy(scores, l); },
      {.repeats = repeats, .every_cut = true},
      [](const auto& m) { return optim::sgd(m, {.lr = 0.001, .momentum = 0.9}); });
  std::cout << a;

  std::vector<std::function<double()>> steps{
      step_of(chain.to<slow>(), images, labels),
      step_of(nn::placed<nn::cut<0, fast>, nn::cut<1, slow>>(chain), images, labels),
      step_of(nn::placed<nn::cut<0, fast>, nn::cut<3, slow>>(chain), images, labels),
      step_of(nn::placed<nn::cut<0, fast>, nn::cut<4, slow>>(chain), images, labels),
      step_of(nn::placed<nn::cut<0, fast>, nn::cut<6, slow>>(chain), images, labels),
      step_of(nn::placed<nn::cut<0, fast>, nn::cut<7, slow>>(chain), images, labels),
      step_of(nn::placed<nn::cut<0, fast>, nn::cut<9, slow>>(chain), images, labels),
      step_of(chain.to<fast>(), images, labels)};
  std::vector<std::vector<double>> seconds(steps.size());
  for (int round = -2; round < repeats; ++round)
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const double t = steps[i]();
      if (round >= 0) seconds[i].push_back(t);
    }
  std::vector<double> predicted, measured;
  std::printf("\nprograms with placed()\npredicted ms  measured ms\n");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    predicted.push_back(a.cuts[i].predicted);
    measured.push_back(nn::detail::median_of(seconds[i]).median);
    std::printf("%12.3f %12.3f  %s\n", 1e3 * predicted[i], 1e3 * measured[i], a.cuts[i].code.c_str());
  }
  std::printf("rank correlation %.3f\n", nn::detail::rank_correlation(predicted, measured));
}
