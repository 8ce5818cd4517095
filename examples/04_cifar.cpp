// Trains a residual network on CIFAR-10, or on pictures made up here, and evaluates trained weights.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/04_cifar.cpp -o cifar -pthread
// ctest: --depth 8 --pictures 800 --epochs 2 --mark 80 --out /tmp
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#define SINTER_WITH_DATA 1  // datasets and files, which sinter.hpp leaves out otherwise
#include <sinter/sinter.hpp>

#include "command_line.hpp"
#include "models/resnet_cifar.hpp"

using namespace sinter;

const char* const help = R"(Trains a residual network on CIFAR-10 and evaluates trained ones.

  --data PATH     folder with *.bin files of CIFAR-10's binary version, or one such file. test_batch.bin, or where there
                  is none a tenth of the pictures, is held out for testing (default: synthetic pictures)
  --pictures N    only the first N pictures of the data (default: all; of synthetic ones 2000)
  --depth N       layers, 6n + 2, such as 20 or 56 (default: 20)
  --epochs N      passes over the training set (default: 30, for synthetic pictures 3)
  --batch N       pictures per step (default: 128, for synthetic pictures 32)
  --lr X          highest learning rate of SGD (default: 0.1)
  --seed N        of the initial weights, the order of the pictures, crops and flips (default: 1)
  --save FILE     writes the weights to FILE, as safetensors, after each epoch
  --weights FILE  trains nothing: evaluates these weights on all pictures; their number tells the depth
  --mark X        accuracy in % on the test pictures, or those of --weights, that has to be reached (default: 0)
  --threads N     threads of device cpu (default: all processors)
  --device D      cpu, or where this is built with nvcc, cuda (default: cpu)
  --out DIR       folder for cifar_curve.svg (default: where this program is)
  --help          this text

Exit code: 0; 1 if the accuracy is below --mark or something went wrong; 2 for a wrong option.
)";

struct settings {
  index_t depth = 20, epochs = 0, batch = 0, pictures = 0;
  int threads = 0;
  std::uint64_t seed = 1;
  double lr = 0.1, mark = 0;
  std::string data, save, weights, device = "cpu", out;
};

// ---- data

using pictures = tensor<std::uint8_t, 4>;  // (N, 3, 32, 32), from 0 to 255
using labels = tensor<std::int64_t, 1>;
using picture_set = batch<pictures, labels>;
struct data_set {
  picture_set train, test;
};

picture_set part_of(const picture_set& all, index_t begin, index_t end) {
  return {all.inputs.slice(0, begin, end), all.targets.slice(0, begin, end)};
}

// Each class has a hue and waves of a length of its own, on which lies noise.
picture_set make_pictures(index_t n) {
  generator gen(2024);
  const labels y = randint<std::int64_t>(gen, 0, 10, {n});
  const tensor kind = cast<float>(y.reshape({n, 1, 1, 1}));
  const tensor colour = arange<float>(3).reshape({1, 3, 1, 1}), row = arange<float>(32).reshape({1, 1, 32, 1});
  const tensor phase = uniform<float>(gen, 0, 6.28f, {n, 1, 1, 1}), noise = randn<float>(gen, {n, 3, 32, 32});
  const auto hue = cos(0.63f * kind + 2.1f * colour);
  const auto waves = sin((0.2f + 0.1f * kind) * row + phase);
  return {cast<std::uint8_t>(clamp(128.f + 40.f * hue + 30.f * waves + 30.f * noise, 0.f, 255.f)), y};
}

picture_set read_pictures(const settings& s) {
  if (s.data.empty()) return make_pictures(s.pictures);
  const picture_set all = read_cifar10(s.data);
  return part_of(all, 0, s.pictures > 0 ? std::min(s.pictures, all.size()) : all.size());
}

bool exists(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  return file != nullptr && std::fclose(file) == 0;
}

data_set read_data(const settings& s) {
  if (const std::string test = s.data + "/test_batch.bin"; exists(test)) {
    const picture_set all = read_cifar10(s.data, {.prefix = "data_batch"});
    return {part_of(all, 0, s.pictures > 0 ? std::min(s.pictures, all.size()) : all.size()), read_cifar10(test)};
  }
  const picture_set all = read_pictures(s);
  if (all.size() < 10)
    throw value_error(std::to_string(all.size()) + " pictures are too few to hold out a tenth of them");
  generator gen(2024);
  const tensor order = randperm(gen, all.size());
  const picture_set mixed{index_select(all.inputs, 0, order), index_select(all.targets, 0, order)};
  const index_t held_out = all.size() / 10;
  return {part_of(mixed, held_out, all.size()), part_of(mixed, 0, held_out)};
}

// What the network takes: colours less their mean over a large collection of photographs, by their deviation.
template <device D>
tensor<float, 4, D> normalised(const pictures& x) {
  const tensor mean = tensor<float, 1>{0.485f, 0.456f, 0.406f}.reshape({3, 1, 1}).to<D>();
  const tensor deviation = tensor<float, 1>{0.229f, 0.224f, 0.225f}.reshape({3, 1, 1}).to<D>();
  return (cast<float>(x.to<D>()) / 255.f - mean) / deviation;
}

// ---- evaluation

template <device D>
using network_on = models::resnet_cifar<models::resnet_variant::he, D>;

struct score {
  index_t right = 0, pictures = 0;
  double loss = 0;  // the mean
  double accuracy() const { return 100 * static_cast<double>(right) / static_cast<double>(pictures); }
};

template <device D>
score evaluate(const network_on<D>& network, const picture_set& set) {
  const auto reader = infer(network);  // on plain tensors: nothing is recorded; in eval() mode
  score result{.pictures = set.size()};
  data_loader loader(tensor_dataset(set.inputs, set.targets), {.batch_size = 250});
  for (const auto& [x, y] : loader) {
    const tensor scores = reader(normalised<D>(x));
    const tensor truth = y.template to<D>();
    const tensor right = sum(cast<std::int64_t>(argmax(scores, 1) == truth));
    result.right += right.template to<cpu>().item();
    result.loss += static_cast<double>(eval(cross_entropy(scores, truth, reduction::sum)).item());
  }
  result.loss /= static_cast<double>(result.pictures);
  return result;
}

int exit_code(const score& result, const settings& s) {
  if (result.accuracy() >= s.mark) return 0;
  std::fprintf(stderr, "cifar: the accuracy is below %g %%\n", s.mark);
  return 1;
}

template <device D>
int evaluate_weights(const settings& s) {
  const safetensors file = read_safetensors(s.weights);
  index_t blocks = 0;
  while (file.contains("layer1." + std::to_string(blocks) + ".conv1.weight")) ++blocks;
  if (blocks == 0)
    throw io_error(s.weights + ": holds no residual network for CIFAR-10: no tensor is named layer1.0.conv1.weight");
  const index_t depth = 6 * blocks + 2;
  generator gen(s.seed);
  const network_on<D> network(depth, gen);
  try {
    nn::load_state(network, file);
  } catch (const value_error& e) {
    throw io_error(s.weights + ": is no ResNet-" + std::to_string(depth) + " for CIFAR-10: " + e.what());
  }
  const score result = evaluate(network, read_pictures(s));
  std::printf("ResNet-%d of %s: %d of %d right, %.2f %%, mean loss %.5f\n", static_cast<int>(depth), s.weights.c_str(),
              static_cast<int>(result.right), static_cast<int>(result.pictures), result.accuracy(), result.loss);
  return exit_code(result, s);
}

// ---- training

template <device D>
int train(const settings& s) {
  generator gen(s.seed);
  const network_on<D> network(s.depth, gen);
  const auto [training, test] = read_data(s);
  data_loader loader(tensor_dataset(training.inputs, training.targets),
                     {.batch_size = s.batch, .shuffle = true, .drop_last = training.size() > s.batch, .seed = s.seed});
  // The learning rate rises during the first twentieth of the steps, then falls along half a cosine.
  optim::sgd optimizer(network, {.lr = s.lr, .momentum = 0.9, .weight_decay = 1e-4, .nesterov = true});
  const index_t steps = s.epochs * loader.size(), rise = steps / 20;
  optim::lr_scheduler schedule(optimizer,
                               optim::then_lr{rise, optim::warm_up_lr{rise, 0.1}, optim::cosine_lr{steps - rise}});
  std::printf("ResNet-%d, %d parameters, %d training and %d test pictures, on %s\n", static_cast<int>(s.depth),
              static_cast<int>(network.parameter_count()), static_cast<int>(training.size()),
              static_cast<int>(test.size()), device_name<D>().c_str());

  score result;
  std::vector<double> training_loss, test_loss, accuracy;
  for (index_t epoch = 1; epoch <= s.epochs; ++epoch) {
    progress_bar bar("epoch " + std::to_string(epoch), loader.size());
    const auto start = std::chrono::steady_clock::now();
    double loss_sum = 0;
    for (const auto& [x, y] : loader) {
      const pictures changed = random_horizontal_flip(gen, random_crop(gen, x, {32, 32}, {.padding = 4}));
      const variable loss = cross_entropy(network(normalised<D>(changed)), y.template to<D>());
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      schedule.step();
      loss_sum += static_cast<double>(loss.item());
      bar.advance();
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;

    result = evaluate(network, test);
    training_loss.push_back(loss_sum / static_cast<double>(loader.size()));
    test_loss.push_back(result.loss);
    accuracy.push_back(result.accuracy());
    char text[128];
    std::snprintf(text, sizeof text, "loss %.4f  test loss %.4f  test accuracy %.2f %%  %.0f pictures/s",
                  training_loss.back(), result.loss, result.accuracy(),
                  static_cast<double>(training.size()) / spent.count());
    bar.finish(text);
    if (!s.save.empty()) write_safetensors(s.save, nn::state(network));
  }
  write_plots(s.out + "/cifar_curve.svg", {{"loss", "epoch", {{"training", training_loss}, {"test", test_loss}}},
                                           {"test accuracy, %", "epoch", {{"", accuracy}}}});
  std::printf("wrote %s/cifar_curve.svg%s%s\n", s.out.c_str(), s.save.empty() ? "" : " and ", s.save.c_str());
  return exit_code(result, s);
}

int main(int argc, char** argv) {
  command_line line("cifar", help, argc, argv);
  settings s;
  s.out = folder_of(argv[0]);
  line.take("--data", s.data);
  line.take("--pictures", s.pictures, 1, 1e9);
  line.take("--depth", s.depth, 8, 10000);
  line.take("--epochs", s.epochs, 1, 100000);
  line.take("--batch", s.batch, 1, 1000000);
  line.take("--lr", s.lr, 0, 100);
  line.take("--seed", s.seed, 0, 1e15);
  line.take("--save", s.save);
  line.take("--weights", s.weights);
  line.take("--mark", s.mark, 0, 100);
  line.take("--threads", s.threads, 1, 1024);
  line.take("--device", s.device);
  line.take("--out", s.out);
  line.finish();
  if (s.depth % 6 != 2) line.refuse("--depth needs a number 6n + 2, such as 20, 32, 44 or 56");
  if (!s.weights.empty() && !s.save.empty()) line.refuse("--save has nothing to save where --weights is given");
  if (s.device.starts_with("cuda") && !SINTER_WITH_CUDA)
    line.refuse("--device " + s.device + ": this program was built without CUDA; use cpu");
  const bool synthetic = s.data.empty();
  if (synthetic) std::printf("no --data: the pictures are synthetic, and no measure of a network\n");
  if (s.pictures == 0 && synthetic) s.pictures = 2000;
  if (s.epochs == 0) s.epochs = synthetic ? 3 : 30;
  if (s.batch == 0) s.batch = synthetic ? 32 : 128;
  try {
    if (s.threads > 0) set_num_threads(s.threads);
    const auto on_its_device = [&](auto d) {
      return s.weights.empty() ? train<decltype(d)>(s) : evaluate_weights<decltype(d)>(s);
    };
#if SINTER_WITH_CUDA
    return with_device<cpu, cuda<0>>(s.device, on_its_device);
#else
    return with_device<cpu>(s.device, on_its_device);
#endif
  } catch (const device_error& e) {
    line.refuse(e.what());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "cifar: %s\n", e.what());
    return 1;
  }
}
