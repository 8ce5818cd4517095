// Trains a small network to read handwritten digits: the 8x8 ones in this repository, or MNIST if --data names it.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/01_digits.cpp -o digits -pthread
// ctest: --epochs 20 --out /tmp
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define SINTER_WITH_DATA 1  // datasets and files, which sinter.hpp leaves out otherwise
#include <sinter/sinter.hpp>

#include "command_line.hpp"

using namespace sinter;

const char* const help = R"(Trains a network on handwritten digits and shows what it gets wrong.

  --epochs N     passes over the training set (default: 30, for MNIST 5)
  --batch N      samples per step (default: 32, for MNIST 128)
  --lr X         learning rate of Adam at the start (default: 0.006, for MNIST 0.002)
  --seed N       of the initial weights and the order of the samples (default: 1)
  --threads N    threads of device cpu (default: all processors)
  --data DIR     folder with digits.csv, or with the idx files of MNIST, plain or .gz (default: $SINTER_DATA, else examples/data)
  --device D     cpu, or where this is built with nvcc, cuda (default: cpu)
  --out DIR      folder for learning_curve.svg and misclassified.svg (default: where this program is)
  --help         this text

Exit code: 0; 1 if the test accuracy is below 97 % or something went wrong; 2 for a wrong option.
)";

struct settings {
  int epochs = 0, batch = 0, threads = 0;
  std::uint64_t seed = 1;
  double lr = -1;
  std::string data, device = "cpu", out;
};

// ---- data
// ------------------------------------------------------------------------------------------------------------

using images = tensor<float, 2>;  // one a row, grey values from 0 to 1
using labels = tensor<std::int64_t, 1>;
struct digits {
  images train_x;
  labels train_y;
  images test_x;
  labels test_y;
};

bool exists(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  return file != nullptr && std::fclose(file) == 0;
}

// The 1797 lines in a random but fixed order: the first 1437 to train on, the other 360 to test.
digits read_digits(const std::string& path) {
  const tensor table = read_csv<float>(path);
  if (table.shape() != extents<2>{{1797, 65}})
    throw io_error(path + ": " + std::to_string(table.extent(0)) + " rows of " + std::to_string(table.extent(1)) +
                   " numbers, not 1797 of 65");
  generator gen(2024);
  const tensor mixed = index_select(table, 0, randperm(gen, 1797));
  const images x = mixed.slice(1, 0, 64) / 16.f;
  const labels y = cast<std::int64_t>(mixed.select(1, 64));
  return {x.slice(0, 0, 1437), y.slice(0, 0, 1437), x.slice(0, 1437, 1797), y.slice(0, 1437, 1797)};
}

digits read_mnist(const std::string& folder) {
  const auto path = [&](std::string name) { return exists(name = folder + "/" + name) ? name : name + ".gz"; };
  const auto read_x = [&](const char* name) -> images {
    const tensor x = read_idx<std::uint8_t, 3>(path(name));
    return cast<float>(x.reshape({x.extent(0), x.extent(1) * x.extent(2)})) / 255.f;
  };
  const auto read_y = [&](const char* name) -> labels {
    return cast<std::int64_t>(read_idx<std::uint8_t, 1>(path(name)));
  };
  return {read_x("train-images-idx3-ubyte"), read_y("train-labels-idx1-ubyte"), read_x("t10k-images-idx3-ubyte"),
          read_y("t10k-labels-idx1-ubyte")};
}

// ---- training
// --------------------------------------------------------------------------------------------------------

struct outcome {
  labels predicted;  // of the test images, at the end
  std::vector<double> loss, accuracy;
};

double percent_right(const labels& predicted, const labels& truth) {
  index_t right = 0;
  for (index_t i = 0; i < truth.numel(); ++i) right += predicted(i) == truth(i);
  return 100.0 * static_cast<double>(right) / static_cast<double>(truth.numel());
}

template <device D>
outcome train(const digits& data, const settings& s) {
  generator gen(s.seed);
  const nn::sequential model{nn::linear<float, D>(data.train_x.extent(1), 256, gen), nn::relu(),
                             nn::linear<float, D>(256, 10, gen)};
  optim::adam optimizer(model, {.lr = s.lr});
  optim::lr_scheduler schedule(optimizer, optim::cosine_lr{.period = s.epochs});
  data_loader loader(tensor_dataset(data.train_x, data.train_y),
                     {.batch_size = s.batch, .shuffle = true, .seed = s.seed});
  const tensor test_x = data.test_x.to<D>();
  std::printf("%d parameters, %d training and %d test samples, on %s\n", static_cast<int>(model.parameter_count()),
              static_cast<int>(data.train_y.numel()), static_cast<int>(data.test_y.numel()), device_name<D>().c_str());

  outcome result;
  double seconds = 0;
  for (int epoch = 1; epoch <= s.epochs; ++epoch) {
    progress_bar bar("epoch " + std::to_string(epoch), loader.size());
    const auto start = std::chrono::steady_clock::now();
    double loss_sum = 0;
    for (const auto& [x, y] : loader) {
      const variable loss = cross_entropy(model(x.template to<D>()), y.template to<D>());
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      loss_sum += static_cast<double>(loss.item());
      bar.advance();
    }
    schedule.step();
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    seconds += spent;

    const tensor predicted = argmax(infer(model)(test_x), 1);  // plain tensors: nothing is recorded
    result.predicted = predicted.template to<cpu>();
    result.loss.push_back(loss_sum / static_cast<double>(loader.size()));
    result.accuracy.push_back(percent_right(result.predicted, data.test_y));
    char text[96];
    std::snprintf(text, sizeof text, "loss %.4f  test accuracy %.2f %%  %.0f samples/s", result.loss.back(),
                  result.accuracy.back(), static_cast<double>(data.train_y.numel()) / spent);
    bar.finish(text);
  }
  std::printf("%.0f samples per second in training\n", static_cast<double>(data.train_y.numel()) * s.epochs / seconds);
  return result;
}

// ---- the report
// ------------------------------------------------------------------------------------------------------

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
  write_plots(s.out + "/learning_curve.svg", {{"training loss", "epoch", {{"", result.loss}}},
                                              {"test accuracy, %", "epoch", {{"", result.accuracy}}}});
  const auto n = static_cast<index_t>(wrong.size());
  const index_t side = data.test_x.extent(1) == 64 ? 8 : 28;
  const tensor ink = index_select(data.test_x, 0, from_data<std::int64_t>(wrong, {n}));
  const tensor<std::uint8_t, 2> grey = cast<std::uint8_t>(255.f - 255.f * ink);
  write_image_grid(s.out + "/misclassified.svg", grey.reshape({n, side, side}), captions, "Misread digits");
  std::printf("\n\ntest accuracy %.2f %%\nwrote %s/learning_curve.svg and misclassified.svg\n", result.accuracy.back(),
              s.out.c_str());
  if (result.accuracy.back() >= 97) return 0;
  std::fprintf(stderr, "digits: the test accuracy is below 97 %%\n");
  return 1;
}

int main(int argc, char** argv) {
  command_line line("digits", help, argc, argv);
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
    const bool mnist = exists(s.data + "/train-images-idx3-ubyte") || exists(s.data + "/train-images-idx3-ubyte.gz");
    if (!mnist && !exists(s.data + "/digits.csv"))
      throw io_error(s.data +
                     ": holds neither digits.csv nor train-images-idx3-ubyte(.gz); name the folder with --data");
    const digits data = mnist ? read_mnist(s.data) : read_digits(s.data + "/digits.csv");
    if (s.epochs == 0) s.epochs = mnist ? 5 : 30;
    if (s.batch == 0) s.batch = mnist ? 128 : 32;
    if (s.lr < 0) s.lr = mnist ? 0.002 : 0.006;
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
    std::fprintf(stderr, "digits: %s\n", e.what());
    return 1;
  }
}
