// Trains one convolutional network on several devices in six ways, and shows what each way costs.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/05_devices.cpp -o devices -pthread
// ctest: --steps 6
// ctest: --steps 4 --advise
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#define SINTER_WITH_DATA 1      // datasets and files, and
#define SINTER_WITH_PARALLEL 1  // models over several devices, which sinter.hpp leaves out otherwise
#include <sinter/sinter.hpp>

#include "command_line.hpp"
#include "digits.hpp"

using namespace sinter;

const char* const help =
    R"(Trains a convolutional network on handwritten digits in six ways: on one device; convolutions and dense layers on
two; samples over two; four tiles of every image; two stages of a pipeline; and samples of the convolutions over three
with the dense layers on a fourth. All must give the same losses in the first 20 steps. A table shows what each way takes.

Built by g++ or clang++ the devices are numa:0 to numa:3: the processors of these NUMA nodes, or where there is one node,
all of them. Built by nvcc they are the GPUs 0 to 3; SINTER_CUDA_MAP=0,0,0,0 makes all of them the first one.

  --advise          also measures on which devices the layers of the network are best, and says why
  --steps N         training steps, of which the first two are not timed (default: 30)
  --batch N         samples of a step (default: 64)
  --microbatches N  into which the pipeline cuts a batch (default: 8)
  --threads N       of each host device (default: 1)
  --lr X            learning rate (default: 0.05)
  --seed N          of the initial weights, the dropout and the order of the samples (default: 1)
  --data DIR        folder with digits.csv, or with the idx files of MNIST (default: $SINTER_DATA, else examples/data)
  --device D        numa, or where this is built with nvcc, cuda (default: what it is built for)
  --help            this text

Exit code: 0; 1 if the losses differ or something went wrong; 2 for a wrong option.
)";

struct settings {
  int steps = 30, batch = 64, microbatches = 8, threads = 1;
  std::uint64_t seed = 1;
  double lr = 0.05;
  std::string data, device = SINTER_WITH_CUDA ? "cuda" : "numa";
  bool advise = false;
};

#if SINTER_WITH_CUDA
template <int I>
using place = cuda<I>;
#else
template <int I>
using place = numa<I>;
#endif
using home = place<0>;  // of the network that all ways begin with

// ---- the network

// (N, 1, 32, 32) => (N, 32, 8, 8)
auto make_convolutions(generator& gen) {
  return nn::sequential{nn::conv2d<float, home>(1, 16, 5, gen, {.padding = 2}),  nn::relu(), nn::max_pool2d(2),
                        nn::conv2d<float, home>(16, 32, 3, gen, {.padding = 1}), nn::relu(), nn::max_pool2d(2)};
}
// (N, 32, 8, 8) => (N, 10)
auto make_dense(generator& gen) {
  return nn::sequential{nn::flatten(), nn::linear<float, home>(32 * 8 * 8, 128, gen), nn::relu(), nn::dropout(0.2, gen),
                        nn::linear<float, home>(128, 10, gen)};
}
// Both as one chain of eleven layers.
auto make_chain(std::uint64_t seed) {
  generator gen(seed);
  const auto c = make_convolutions(gen);
  const auto d = make_dense(gen);
  return nn::sequential{c.get<0>(), c.get<1>(), c.get<2>(), c.get<3>(), c.get<4>(), c.get<5>(),
                        d.get<0>(), d.get<1>(), d.get<2>(), d.get<3>(), d.get<4>()};
}
const auto loss_of = [](const auto& scores, const auto& truth) { return cross_entropy(scores, truth); };

// ---- training

struct sample_batch {
  tensor<float, 4, home> x;
  tensor<std::int64_t, 1, home> y;
};

// The images at 32 x 32, in the batches that all ways train on. All are whole: none is larger than the set.
std::vector<sample_batch> make_batches(const digits& data, const settings& s) {
  std::vector<sample_batch> all;
  data_loader loader(tensor_dataset(data.train_x, data.train_y),
                     {.batch_size = s.batch, .shuffle = true, .drop_last = true, .seed = s.seed});
  while (static_cast<int>(all.size()) < s.steps)
    for (const auto& [x, y] : loader) {
      pictures large = data.is_mnist() ? eval(pad(x, {2, 2, 2, 2}))
                                       : eval(interpolate(x, {.size = {32, 32}, .mode = interpolation::bilinear}));
      all.push_back({large.template to<home>(), y.template to<home>()});
      if (static_cast<int>(all.size()) == s.steps) break;
    }
  return all;
}

struct outcome {
  std::string name;
  std::vector<double> loss;
  int timed = 0;  // steps
  usage_report usage;
};

// `step` runs forward and backward of a batch and returns the loss.
template <device... D>
outcome train(const char* name, const auto& model, const std::vector<sample_batch>& batches, const settings& s,
              const auto& step) {
  outcome result{name, {}, 0, {}};
  optim::sgd optimizer(model, {.lr = s.lr, .momentum = 0.9});
  usage_meter<D...> meter;
  for (std::size_t i = 0; i < batches.size(); ++i) {
    if (i == 2) meter.restart();
    optimizer.zero_grad();
    result.loss.push_back(step(batches[i].x, batches[i].y));
    optimizer.step();
  }
  result.usage = meter.report();
  result.timed = static_cast<int>(batches.size()) - (batches.size() > 2 ? 2 : 0);
  return result;
}

// For models that are called with the images and give the scores.
auto called(const auto& model) {
  return [&model](const auto& x, const auto& y) {
    const auto scores = eval(model(x));
    const variable loss = loss_of(scores, y.template to<device_of<decltype(scores)>>());
    loss.backward();
    return static_cast<double>(loss.item());
  };
}

std::vector<outcome> train_in_six_ways(const std::vector<sample_batch>& batches, const settings& s) {
  std::vector<outcome> all;
  {
    const auto model = make_chain(s.seed);
    all.push_back(train<home>("one device", model, batches, s, called(model)));
  }
  {
    const auto model = nn::placed<nn::cut<0, home>, nn::cut<6, cpu>>(make_chain(s.seed));
    all.push_back(train<home, cpu>("convolutions, and dense layers on the cpu", model, batches, s, called(model)));
  }
  {
    const auto model = nn::data_parallel<home, place<1>>(make_chain(s.seed));
    all.push_back(train<home, place<1>>("samples over two", model, batches, s,
                                        [&](const auto& x, const auto& y) { return model.backward(x, y, loss_of); }));
  }
  {
    generator gen(s.seed);
    const auto convolutions = make_convolutions(gen);
    using grid = nn::tiles<2, 2, home, place<1>, place<2>, place<3>>;
    const nn::sequential model{nn::tile_parallel<grid>(convolutions), make_dense(gen)};
    all.push_back(train<home, place<1>, place<2>, place<3>>("convolutions on four tiles of each image", model, batches,
                                                            s, called(model)));
  }
  {
    generator gen(s.seed);
    const auto convolutions = make_convolutions(gen);
    const auto dense = make_dense(gen);
    const nn::pipeline model{
        nn::sequential{convolutions.get<0>(), convolutions.get<1>(), convolutions.get<2>()},
        nn::sequential{convolutions.get<3>(), convolutions.get<4>(), convolutions.get<5>(), dense}.to<place<1>>()};
    all.push_back(train<home, place<1>>("two stages", model, batches, s, [&](const auto& x, const auto& y) {
      return model.step(x, y, loss_of, {.microbatches = s.microbatches}).loss;
    }));
  }
  {
    generator gen(s.seed);
    const auto convolutions = nn::data_parallel<home, place<1>, place<2>>(make_convolutions(gen));
    const nn::sequential model{convolutions, nn::transfer<home, place<3>>(), make_dense(gen).to<place<3>>()};
    all.push_back(train<home, place<1>, place<2>, place<3>>("convolutions over three, dense layers on a fourth", model,
                                                            batches, s, called(model)));
  }
  return all;
}

// ---- the report

void print(const std::vector<outcome>& all) {
  std::printf("\n%-49s %8s %8s   %9s %8s   %-7s %8s %8s %9s\n", "per step", "ms", "of one", "transfer", "MB", "device",
              "busy ms", "idle ms", "peak MB");
  for (const outcome& o : all) {
    const double n = o.timed, ms = 1e3 * o.usage.seconds / n;
    const double one = 1e3 * all[0].usage.seconds / all[0].timed;
    for (std::size_t i = 0; i < o.usage.devices.size(); ++i) {
      const device_usage& d = o.usage.devices[i];
      if (i == 0)
        std::printf("%-49s %8.2f %8.2f %9.3f ms %8.3f   ", o.name.c_str(), ms, ms / one,
                    1e3 * o.usage.transfer_seconds() / n, 1e-6 * static_cast<double>(o.usage.transfer_bytes()) / n);
      else std::printf("%-49s %8s %8s %9s    %8s   ", "", "", "", "", "");
      std::printf("%-7s %8.2f %8.2f %9.2f\n", d.device.c_str(), 1e3 * d.busy / n, 1e3 * d.idle / n,
                  1e-6 * static_cast<double>(d.peak_bytes));
    }
  }
}

// The largest relative difference of a loss from that of one device. Rounding differs between the ways, and training
// makes these differences grow, so later steps do not tell whether the ways are the same.
constexpr std::size_t compared = 20;
double largest_difference(const std::vector<outcome>& all) {
  double largest = 0;
  for (const outcome& o : all)
    for (std::size_t i = 0; i < std::min(compared, o.loss.size()); ++i) {
      const double d = std::fabs(o.loss[i] - all[0].loss[i]) / std::fabs(all[0].loss[i]);
      if (!(d <= largest)) largest = d;
      if (std::isnan(d)) return d;
    }
  return largest;
}

int main(int argc, char** argv) {
  command_line line("devices", help, argc, argv, {"--advise"});
  settings s;
  s.data = default_data(__FILE__);
  s.advise = line.has("--advise");
  line.take("--steps", s.steps, 1, 1e6);
  line.take("--batch", s.batch, 1, 1e5);
  line.take("--microbatches", s.microbatches, 1, 1e5);
  line.take("--threads", s.threads, 1, 1024);
  line.take("--lr", s.lr, 0, 1e30);
  line.take("--seed", s.seed, 0, 1e15);
  line.take("--data", s.data);
  line.take("--device", s.device);
  line.finish();
  if (s.device != (SINTER_WITH_CUDA ? "cuda" : "numa"))
    line.refuse("--device " + s.device + ": this program was built for " + (SINTER_WITH_CUDA ? "cuda" : "numa"));
  try {
#if !SINTER_WITH_CUDA
    set_num_threads<numa<0>>(s.threads);
    set_num_threads<numa<1>>(s.threads);
    set_num_threads<numa<2>>(s.threads);
    set_num_threads<numa<3>>(s.threads);
#endif
    set_num_threads(s.threads);
    const digits data = read_digits(s.data);
    if (const index_t samples = data.train_y.numel(); s.batch > samples)
      line.refuse("--batch " + std::to_string(s.batch) + ": there are only " + std::to_string(samples) +
                  " training samples in " + s.data + "; give a number up to that");
    const std::vector<sample_batch> batches = make_batches(data, s);
    std::printf("steps: %d of %d samples, with %d thread%s for each host device\n", s.steps, s.batch, s.threads,
                s.threads == 1 ? "" : "s");
    const std::vector<outcome> all = train_in_six_ways(batches, s);
    print(all);
    const double difference = largest_difference(all);
    std::printf(
        "\nloss of the first step %.6f, of the last %.6f; in the first %d steps six ways differ by %.1e of "
        "it at most\n",
        all[0].loss.front(), all[0].loss.back(), static_cast<int>(std::min(compared, all[0].loss.size())), difference);
    if (s.advise) {
      std::printf("\n");
      std::cout << nn::advise<home, cpu>(make_chain(s.seed), nn::cuts<3, 6>{}, batches[0].x, batches[0].y, loss_of,
                                         {.repeats = 7, .microbatches = std::min(s.microbatches, s.batch)},
                                         [&s](const auto& m) { return optim::sgd(m, {.lr = s.lr, .momentum = 0.9}); });
    }
    if (difference < 1e-3) return 0;
    std::fprintf(stderr, "devices: the losses differ\n");
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "devices: %s\n", e.what());
    return 1;
  }
}
