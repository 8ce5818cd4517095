// Trains a small network to read handwritten digits: the 8x8 ones in this repository, or MNIST if --data names it.
//   g++ -std=c++20 -O2 -march=native -I single_include $(pkg-config --cflags eigen3) examples/01_digits.cpp -o digits -pthread
// ctest: --epochs 30 --out /tmp
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <sinter/sinter.hpp>

using namespace sinter;

const char* const help = R"(Trains a network on handwritten digits and shows what it gets wrong.

  --epochs N     passes over the training set (default: 30, for MNIST 5)
  --batch N      samples per step (default: 32, for MNIST 128)
  --lr X         learning rate of Adam at the start (default: 0.003)
  --seed N       of the initial weights and the order of the samples (default: 1)
  --threads N    threads of device cpu (default: all processors)
  --data DIR     folder with digits.csv, or with the idx files of MNIST, plain or .gz (default: $SINTER_DATA, else examples/data)
  --device D     cpu, numa:0 or numa:1 (default: cpu)
  --out DIR      folder for learning_curve.svg and misclassified.svg (default: where this program is)
  --help         this text

Exit code: 0; 1 if the test accuracy is below 97 % or something went wrong; 2 for a wrong option.
)";

struct settings {
  index_t epochs = 0, batch = 0, threads = 0, seed = 1;
  double lr = 0.003;
  std::string data, device = "cpu", out = ".";
};

// ---- data ------------------------------------------------------------------------------------------------------------

using images = tensor<std::uint8_t, 3>;
using labels = tensor<std::int64_t, 1>;
struct digits {
  images train_x, test_x;
  labels train_y, test_y;
  float white;  // grey values go from 0 to this
};

bool exists(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  return file != nullptr && std::fclose(file) == 0;
}

// The 1797 lines in a random but fixed order: the first 1437 to train on, the other 360 to test.
digits read_digits(const std::string& path) {
  const tensor table = read_csv<std::uint8_t>(path);
  if (table.shape() != extents<2>{{1797, 65}})
    throw io_error(path + ": has " + std::to_string(table.extent(0)) + " rows of " + std::to_string(table.extent(1)) + " numbers, not 1797 of 65");
  generator gen(2024);
  const tensor mixed = index_select(table, 0, randperm(gen, 1797));
  const images x = mixed.slice(1, 0, 64).reshape({1797, 8, 8});
  const labels y = cast<std::int64_t>(mixed.select(1, 64));
  return {x.slice(0, 0, 1437), x.slice(0, 1437, 1797), y.slice(0, 0, 1437), y.slice(0, 1437, 1797), 16};
}

digits read_mnist(const std::string& folder) {
  const auto file = [&](const std::string& name) { return folder + "/" + name + (exists(folder + "/" + name) ? "" : ".gz"); };
  return {read_idx<std::uint8_t, 3>(file("train-images-idx3-ubyte")), read_idx<std::uint8_t, 3>(file("t10k-images-idx3-ubyte")),
          cast<std::int64_t>(read_idx<std::uint8_t, 1>(file("train-labels-idx1-ubyte"))),
          cast<std::int64_t>(read_idx<std::uint8_t, 1>(file("t10k-labels-idx1-ubyte"))), 255};
}

// ---- training --------------------------------------------------------------------------------------------------------

template <device D>
int train(const digits& data, const settings& s) {
  const index_t pixels = data.train_x.extent(1) * data.train_x.extent(2);
  const auto prepare = [&](const images& x) -> tensor<float, 2> { return cast<float>(x.reshape({x.extent(0), pixels})) / data.white; };
  const tensor test_x = prepare(data.test_x).template to<D>();
  const tensor test_y = data.test_y.template to<D>();
  data_loader loader(tensor_dataset(prepare(data.train_x), data.train_y),
                     {.batch_size = s.batch, .shuffle = true, .seed = static_cast<std::uint64_t>(s.seed)});

  generator gen(static_cast<std::uint64_t>(s.seed));
  const nn::sequential model(nn::linear<float, D>(pixels, 256, gen), nn::relu(), nn::dropout(0.2, gen),
                             nn::linear<float, D>(256, 10, gen));
  optim::adam optimizer(model, {.lr = s.lr});
  optim::lr_scheduler schedule(optimizer, optim::cosine_lr{.period = s.epochs});
  std::printf("%lld parameters, %lld training and %lld test samples, on %s\n", static_cast<long long>(model.parameter_count()),
              static_cast<long long>(data.train_y.numel()), static_cast<long long>(data.test_y.numel()), device_name<D>().c_str());

  line_plot losses{"loss", "epoch", {{"train", {}}, {"test", {}}}}, accuracies{"test accuracy, %", "epoch", {{"", {}}}};
  labels predicted;
  double accuracy = 0, seconds = 0;
  for (index_t epoch = 1; epoch <= s.epochs; ++epoch, schedule.step()) {
    char text[128];
    std::snprintf(text, sizeof text, "epoch %2lld", static_cast<long long>(epoch));
    progress_bar bar(text, loader.size());
    const auto start = std::chrono::steady_clock::now();
    double loss_sum = 0;
    for (const auto& batch : loader) {
      const auto [x, y] = batch.template to<D>();
      const variable loss = cross_entropy(model(x), y);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      loss_sum += static_cast<double>(loss.item()) * static_cast<double>(batch.size());
      bar.advance();
    }
    const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    seconds += spent;

    const tensor scores = infer(model)(test_x);  // plain tensors: nothing is recorded
    predicted = eval(argmax(scores, 1)).template to<cpu>();
    index_t right = 0;
    for (index_t i = 0; i < predicted.numel(); ++i) right += predicted(i) == data.test_y(i);
    accuracy = 100.0 * static_cast<double>(right) / static_cast<double>(predicted.numel());
    const double n = static_cast<double>(data.train_y.numel());
    losses.lines[0].y.push_back(loss_sum / n);
    losses.lines[1].y.push_back(static_cast<double>(eval(cross_entropy(scores, test_y)).item()));
    accuracies.lines[0].y.push_back(accuracy);
    std::snprintf(text, sizeof text, "loss %.4f  test loss %.4f  test accuracy %.2f %%  %.0f samples/s", loss_sum / n, losses.lines[1].y.back(),
                  accuracy, n / spent);
    bar.finish(text);
  }

  index_t confusion[10][10] = {};
  std::vector<index_t> wrong;
  std::vector<std::string> captions;
  for (index_t i = 0; i < predicted.numel(); ++i) {
    ++confusion[data.test_y(i)][predicted(i)];
    if (predicted(i) == data.test_y(i) || wrong.size() == 40) continue;
    wrong.push_back(i);
    captions.push_back(std::to_string(data.test_y(i)) + " read as " + std::to_string(predicted(i)));
  }
  std::printf("\nconfusion matrix: rows are the digits, columns what they were read as\n     ");
  for (int c = 0; c < 10; ++c) std::printf("%5d", c);
  for (int r = 0; r < 10; ++r) {
    std::printf("\n%5d", r);
    for (index_t count : confusion[r]) std::printf("%5lld", static_cast<long long>(count));
  }
  write_plots(s.out + "/learning_curve.svg", {losses, accuracies});
  const tensor picked = index_select(data.test_x, 0, from_data<std::int64_t>(wrong, {static_cast<index_t>(wrong.size())}));
  const float white = data.white;
  write_image_grid(s.out + "/misclassified.svg", cast<std::uint8_t>(255.f - cast<float>(picked) * (255.f / white)), captions, "Misread digits");
  std::printf("\n\ntest accuracy %.2f %%, %.0f samples/s in training\nwrote %s/learning_curve.svg and %s/misclassified.svg\n", accuracy,
              static_cast<double>(data.train_y.numel() * s.epochs) / seconds, s.out.c_str(), s.out.c_str());
  if (accuracy >= 97) return 0;
  std::fprintf(stderr, "digits: the test accuracy is below 97 %%\n");
  return 1;
}

// ---- options ---------------------------------------------------------------------------------------------------------

[[noreturn]] void wrong_option(const std::string& text) {
  std::fprintf(stderr, "digits: %s\nTry --help.\n", text.c_str());
  std::exit(2);
}

double number(const std::string& option, const std::string& text, double least, double most, bool whole) {
  char* end = nullptr;
  const double x = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(x >= least && x <= most) || (whole && x != static_cast<double>(static_cast<index_t>(x))))
    wrong_option(option + " needs a " + (whole ? "whole " : "") + "number from " + std::to_string(index_t(least)) + " to " +
                 std::to_string(index_t(most)) + ", not '" + text + "'");
  return x;
}

int main(int argc, char** argv) {
  settings s;
  const std::string program = argv[0], source = __FILE__;
  if (const auto slash = program.rfind('/'); slash != std::string::npos) s.out = program.substr(0, slash);
  if (const char* folder = std::getenv("SINTER_DATA")) s.data = folder;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--help" || option == "-h") return std::fputs(help, stdout) < 0;
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : (wrong_option(option + " needs a value"), ""); };
    const auto whole = [&](double least, double most) { return static_cast<index_t>(number(option, value(), least, most, true)); };
    if (option == "--epochs") s.epochs = whole(1, 100000);
    else if (option == "--batch") s.batch = whole(1, 1000000);
    else if (option == "--seed") s.seed = whole(0, 1e15);
    else if (option == "--threads") s.threads = whole(1, 1024);
    else if (option == "--lr") s.lr = number(option, value(), 0, 100, false);
    else if (option == "--data") s.data = value();
    else if (option == "--device") s.device = value();
    else if (option == "--out") s.out = value();
    else wrong_option("unknown option " + option);
  }
  if (s.device.starts_with("cuda")) wrong_option("--device " + s.device + ": this program was built without CUDA; use cpu, numa:0 or numa:1");
  if (s.data.empty()) s.data = source.substr(0, source.rfind('/') + 1) + "data";
  try {
    const std::string mnist = s.data + "/train-images-idx3-ubyte";
    const bool is_mnist = exists(mnist) || exists(mnist + ".gz");
    if (!is_mnist && !exists(s.data + "/digits.csv"))
      throw io_error(s.data + ": holds neither digits.csv nor train-images-idx3-ubyte(.gz); name the folder with --data");
    const digits data = is_mnist ? read_mnist(s.data) : read_digits(s.data + "/digits.csv");
    if (s.epochs == 0) s.epochs = is_mnist ? 5 : 30;
    if (s.batch == 0) s.batch = is_mnist ? 128 : 32;
    if (s.threads > 0) set_num_threads(static_cast<int>(s.threads));
    return with_device<cpu, numa<0>, numa<1>>(s.device, [&](auto d) { return train<decltype(d)>(data, s); });
  } catch (const device_error&) {
    wrong_option("--device " + s.device + ": use cpu, numa:0 or numa:1");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "digits: %s\n", e.what());
    return 1;
  }
}
