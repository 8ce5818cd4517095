// Trains a small convolutional network to read handwritten digits: the 8x8 ones in this repository, or MNIST.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/03_convnet.cpp -o convnet -pthread
// ctest: --out /tmp
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define SINTER_WITH_DATA 1  // datasets and files, which sinter.hpp leaves out otherwise
#include <sinter/sinter.hpp>

#include "command_line.hpp"
#include "digits.hpp"

using namespace sinter;

const char* const help =
    R"(Trains a convolutional network on handwritten digits, shows what it gets wrong and what its filters look for.

  --epochs N     passes over the training set (default: 80, for MNIST 5)
  --batch N      samples per step (default: 32, for MNIST 128)
  --lr X         learning rate of Adam at the start (default: 0.005)
  --seed N       of the initial weights, the order of the samples and their shifts (default: 1)
  --threads N    threads of device cpu (default: all processors)
  --data DIR     folder with digits.csv, or with the idx files of MNIST, plain or .gz (default: $SINTER_DATA, else examples/data)
  --device D     cpu, or where this is built with nvcc, cuda (default: cpu)
  --out DIR      folder for convnet_curve.svg, convnet_misread.svg and convnet_filters.svg (default: where this program is)
  --help         this text

Exit code: 0; 1 if the test accuracy is below 98.5 % (MNIST: 99.2 %) or something went wrong; 2 for a wrong option.
)";

struct settings {
  int epochs = 0, batch = 0, threads = 0;
  std::uint64_t seed = 1;
  double lr = 0.005;
  std::string data, device = "cpu", out;
};

// ---- the network

// (N, 1, side, side) => (N, 10)
template <device D>
auto make_network(index_t side, generator& gen) {
  const index_t left = side / 4;  // of the side, after two poolings
  return nn::sequential{nn::conv2d<float, D>(1, 16, 5, gen, {.padding = 2}),
                        nn::batch_norm2d<float, D>(16),
                        nn::relu(),
                        nn::max_pool2d(2),
                        nn::conv2d<float, D>(16, 32, 3, gen, {.padding = 1}),
                        nn::batch_norm2d<float, D>(32),
                        nn::relu(),
                        nn::max_pool2d(2),
                        nn::conv2d<float, D>(32, 64, 3, gen, {.padding = 1}),
                        nn::batch_norm2d<float, D>(64),
                        nn::relu(),
                        nn::flatten(),
                        nn::dropout(0.3, gen),
                        nn::linear<float, D>(64 * left * left, 10, gen)};
}

// What the network reads in the images, in parts, so that a large test set needs little memory.
template <device D>
labels read_all(const auto& network, const pictures& x) {
  const auto reader = infer(network);  // on plain tensors: nothing is recorded; in eval() mode
  const index_t n = x.extent(0), part = 500;
  const labels y = empty<std::int64_t>({n});
  for (index_t begin = 0; begin < n; begin += part) {
    const index_t end = std::min(begin + part, n);
    const tensor read = argmax(reader(x.slice(0, begin, end).to<D>()), 1);
    y.slice(0, begin, end) = read.template to<cpu>();
  }
  return y;
}

// ---- training

struct outcome {
  labels predicted;  // of the test images, at the end
  std::vector<double> loss, accuracy;
  pictures filters;  // of the first layer, (16, 1, 5, 5)
};

template <device D>
outcome train(const digits& data, const settings& s) {
  generator gen(s.seed);
  const index_t side = data.train_x.extent(3);
  const auto network = make_network<D>(side, gen);
  data_loader loader(tensor_dataset(data.train_x, data.train_y),
                     {.batch_size = s.batch, .shuffle = true, .seed = s.seed});
  optim::adamw optimizer(network, {.lr = s.lr, .weight_decay = 0.01});
  optim::lr_scheduler schedule(optimizer, optim::cosine_lr{.period = s.epochs * loader.size()});
  std::printf("%d parameters, %d training and %d test samples, on %s\n", static_cast<int>(network.parameter_count()),
              static_cast<int>(data.train_y.numel()), static_cast<int>(data.test_y.numel()), device_name<D>().c_str());

  outcome result;
  for (int epoch = 1; epoch <= s.epochs; ++epoch) {
    progress_bar bar("epoch " + std::to_string(epoch), loader.size());
    const auto start = std::chrono::steady_clock::now();
    double loss_sum = 0;
    for (const auto& [x, y] : loader) {
      // Moves each image by a pixel or two, so that the network never sees the same one twice.
      const pictures moved = random_crop(gen, x, {side, side}, {.padding = data.is_mnist() ? 2 : 1});
      const variable loss = cross_entropy(network(moved.to<D>()), y.template to<D>());
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      schedule.step();
      loss_sum += static_cast<double>(loss.item());
      bar.advance();
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;

    result.predicted = read_all<D>(network, data.test_x);
    result.loss.push_back(loss_sum / static_cast<double>(loader.size()));
    const tensor right = mean(cast<double>(result.predicted == data.test_y));
    result.accuracy.push_back(100 * right.item());
    char text[96];
    std::snprintf(text, sizeof text, "loss %.4f  test accuracy %.2f %%  %.0f samples/s", result.loss.back(),
                  result.accuracy.back(), static_cast<double>(data.train_y.numel()) / spent.count());
    bar.finish(text);
  }
  result.filters = network.template get<0>().weight.value().template to<cpu>();
  return result;
}

// ---- the report

// Each filter with its own range of greys: black is its least weight, white its largest.
void draw_filters(const std::string& path, const pictures& filters) {
  const index_t n = filters.extent(0);
  const tensor w = filters.squeeze(1).reshape({n, -1});
  const tensor low = min(w, 1, keepdim), high = max(w, 1, keepdim);
  const tensor<std::uint8_t, 2> grey = cast<std::uint8_t>(255.f * (w - low) / (high - low));
  std::vector<std::string> captions;
  for (index_t i = 0; i < n; ++i) captions.push_back("filter " + std::to_string(i));
  write_image_grid(path, grey.reshape({n, filters.extent(2), filters.extent(3)}), captions,
                   "Filters of the first layer");
}

int report(const outcome& result, const digits& data, const settings& s) {
  int confusion[10][10] = {};
  std::vector<std::int64_t> wrong;
  std::vector<std::string> captions;
  for (index_t i = 0; i < data.test_y.numel(); ++i) {
    const std::int64_t truth = data.test_y(i), read = result.predicted(i);
    ++confusion[truth][read];
    if (truth == read || wrong.size() == 40) continue;
    wrong.push_back(i);
    captions.push_back(std::to_string(truth) + " read as " + std::to_string(read));
  }
  std::printf("\nconfusion matrix: rows are the digits, columns what they were read as\n     ");
  for (int c = 0; c < 10; ++c) std::printf("%5d", c);
  for (int r = 0; r < 10; ++r) {
    std::printf("\n%5d", r);
    for (int count : confusion[r]) std::printf("%5d", count);
  }
  write_plots(s.out + "/convnet_curve.svg", {{"training loss", "epoch", {{"", result.loss}}},
                                             {"test accuracy, %", "epoch", {{"", result.accuracy}}}});
  const auto n = static_cast<index_t>(wrong.size());
  const tensor ink = index_select(data.test_x.squeeze(1), 0, from_data<std::int64_t>(wrong, {n}));
  const tensor<std::uint8_t, 3> grey = cast<std::uint8_t>(255.f - 255.f * ink);
  write_image_grid(s.out + "/convnet_misread.svg", grey, captions, "Misread digits");
  draw_filters(s.out + "/convnet_filters.svg", result.filters);
  std::printf("\n\ntest accuracy %.2f %%\nwrote convnet_curve.svg, convnet_misread.svg and convnet_filters.svg in %s\n",
              result.accuracy.back(), s.out.c_str());
  const double mark = data.is_mnist() ? 99.2 : 98.5;
  if (result.accuracy.back() >= mark) return 0;
  std::fprintf(stderr, "convnet: the test accuracy is below %.1f %%\n", mark);
  return 1;
}

int main(int argc, char** argv) {
  command_line line("convnet", help, argc, argv);
  settings s;
  s.out = folder_of(argv[0]);
  s.data = default_data(__FILE__);
  line.take("--epochs", s.epochs, 1, 100000);
  line.take("--batch", s.batch, 1, 1000000);
  line.take("--lr", s.lr, 0, 100);
  line.take("--seed", s.seed, 0, 1e15);
  line.take("--threads", s.threads, 1, 1024);
  line.take("--data", s.data);
  line.take("--device", s.device);
  line.take("--out", s.out);
  line.finish();
  if (s.device.starts_with("cuda") && !SINTER_WITH_CUDA)
    line.refuse("--device " + s.device + ": this program was built without CUDA; use cpu");
  try {
    const digits data = read_digits(s.data);
    const bool mnist = data.is_mnist();
    if (s.epochs == 0) s.epochs = mnist ? 5 : 80;
    if (s.batch == 0) s.batch = mnist ? 128 : 32;
    if (s.threads > 0) set_num_threads(s.threads);
    const auto on_its_device = [&](auto d) { return train<decltype(d)>(data, s); };
#if SINTER_WITH_CUDA
    return report(with_device<cpu, cuda<0>>(s.device, on_its_device), data, s);
#else
    return report(with_device<cpu>(s.device, on_its_device), data, s);
#endif
  } catch (const device_error& e) {
    line.refuse(e.what());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "convnet: %s\n", e.what());
    return 1;
  }
}
