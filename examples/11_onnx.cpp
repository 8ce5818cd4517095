// Runs a network that PyTorch trained, as the header that cmake/onnx_to_sinter.py made of its ONNX file, and trains it
// further.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/11_onnx.cpp -o onnx -pthread
// ctest:
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#define SINTER_WITH_DATA 1  // datasets and files, which sinter.hpp leaves out otherwise
#include <sinter/sinter.hpp>

#include "command_line.hpp"
#include "models/digits_cnn.hpp"

using namespace sinter;

const char* const help =
    R"(Reads handwritten digits with a network that was trained in PyTorch, then trains it to read them white on black, too.

  --data DIR     folder with digits.csv and digits_scores.npy (default: examples/data)
  --weights F    the weights (default: examples/models/digits_cnn.safetensors)
  --epochs N     passes over the digits in white on black (default: 3)
  --threads N    threads of device cpu (default: all processors)
  --help         this text

With --model FILE.onnx, `bash examples/run.sh --example 11_onnx` converts another model, compiles it, and compares it with ONNX Runtime.
Exit code: 0; 1 if a score is not PyTorch's, if fewer than 97 % of the digits are right, or something went wrong; 2 for a wrong option.
)";

struct settings {
  std::string data, weights;
  int epochs = 3, threads = 0;
};

double right(const models::digits_cnn<>& model, const tensor<float, 4>& x, const tensor<std::int64_t, 1>& y) {
  metrics::accuracy accuracy;
  accuracy.add(infer(model)(x), y);
  return accuracy.value();
}

int run(const settings& s) {
  const tensor table = read_csv<float>(s.data + "/digits.csv");
  const tensor x = eval(table.slice(1, 0, 64).reshape({-1, 1, 8, 8}) / 16);
  const tensor y = eval(cast<std::int64_t>(table.select(1, 64)));
  const index_t n = x.size(0);
  const tensor is_test = eval(arange<std::int64_t>(n) % 5 == 0);  // the others are those that PyTorch trained on
  const tensor test_x = masked_select(x, 0, is_test), train_x = masked_select(x, 0, eval(!is_test));
  const tensor test_y = masked_select(y, 0, is_test), train_y = masked_select(y, 0, eval(!is_test));

  // [docs:use]
  generator gen(1);
  models::digits_cnn model(gen);
  nn::load(model, s.weights);
  const tensor scores = infer(model)(test_x.slice(0, 0, 10));
  // [docs:end]
  const double difference = max_abs_difference(scores, read_npy<float, 2>(s.data + "/digits_scores.npy"));
  std::printf("the scores of ten digits are those of PyTorch within %.1e\n", difference);

  std::vector<double> times;
  const auto view = infer(model);
  for (int i = 0; i < 200; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const tensor one = view(test_x.slice(0, i, i + 1));
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(times.begin(), times.end());
  std::printf("a digit takes %.0f us (median; 99 of 100 take at most %.0f us)\n", times[100], times[198]);

  const double before = right(model, test_x, test_y), inverted = right(model, eval(1 - test_x), test_y);
  std::printf("right: %.1f %% of the digits black on white, %.1f %% white on black\n", 100 * before, 100 * inverted);

  optim::adam optimizer(model, {.lr = 0.003});
  data_loader loader(tensor_dataset(concat(0, train_x, eval(1 - train_x)), concat(0, train_y, train_y)),
                     {.batch_size = 32, .shuffle = true});
  model.train();
  for (int epoch = 0; epoch < s.epochs; ++epoch)
    for (auto& [pictures, labels] : loader) {
      variable loss = cross_entropy(model(pictures), labels);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
    }
  model.eval();
  const double after = right(model, test_x, test_y), learnt = right(model, eval(1 - test_x), test_y);
  std::printf("after %d epochs of both: %.1f %% and %.1f %%\n", s.epochs, 100 * after, 100 * learnt);
  return difference < 1e-4 && before >= 0.97 && (s.epochs < 3 || learnt >= 0.9) ? 0 : 1;
}

int main(int argc, char** argv) {
  command_line line("onnx", help, argc, argv);
  settings s;
  s.data = folder_of(__FILE__) + "/data";
  s.weights = folder_of(__FILE__) + "/models/digits_cnn.safetensors";
  line.take("--data", s.data);
  line.take("--weights", s.weights);
  line.take("--epochs", s.epochs, 0, 1000);
  line.take("--threads", s.threads, 1, 1024);
  line.finish();
  try {
    if (s.threads > 0) set_num_threads(s.threads);
    return run(s);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "onnx: %s\n", e.what());
    return 1;
  }
}
