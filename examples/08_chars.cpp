// Trains a recurrent network on a text, letter by letter, and writes some of its own.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/08_chars.cpp -o chars -pthread
// ctest: --epochs 1 --hidden 64 --letters 60 --mark 3
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

#define SINTER_WITH_DATA 1       // files, which sinter.hpp leaves out otherwise
#define SINTER_WITH_SEQUENCES 1  // and recurrent layers
#include <sinter/sinter.hpp>

#include "command_line.hpp"
#include "text.hpp"

using namespace sinter;

const char* const help = R"(Trains an LSTM on a text, letter by letter, and writes some of its own.

  --data FILE        the text (default: the beginning of Shakespeare's works, which is in this repository)
  --epochs N         passes over the text but for its last tenth (default: 12)
  --hidden N         hidden units (default: 256)
  --layers N         layers (default: 1)
  --batch N          parts of the text that are read side by side (default: 32)
  --steps N          letters from one update to the next (default: 64)
  --lr X             learning rate of Adam (default: 0.003)
  --dropout X        probability of dropout between layers (default: 0)
  --letters N        letters to write at the end (default: 400)
  --prompt TEXT      what they follow (default: a new line)
  --temperature X    below 1 it writes what is likelier, above 1 what is less likely (default: 0.8)
  --seed N           of the initial weights and of what it writes (default: 1)
  --save FILE        writes the weights to FILE, as safetensors
  --weights FILE     trains nothing: writes with these weights, of the same text and sizes
  --mark X           the loss on the last tenth of the text that may not be exceeded; by default, with the text and the
                     settings that are defaults too, 3 % above what PyTorch reaches
  --threads N        threads of device cpu (default: all processors)
  --device D         cpu, or where this is built with nvcc, cuda (default: cpu)
  --help             this text

Exit code: 0; 1 if the loss is above --mark or something went wrong; 2 for a wrong option.
)";

// The mean of three seeds, by examples/reference/chars.py.
constexpr double loss_of_pytorch = 1.5477;

struct settings {
  index_t epochs = 12, hidden = 256, layers = 1, batch = 32, steps = 64, letters = 400;
  int threads = 0;
  std::uint64_t seed = 1;
  double lr = 0.003, dropout = 0, temperature = 0.8, mark = 0;
  std::string data, prompt = "\n", save, weights, device = "cpu";
};

template <device D = cpu, class Kind = nn::tracked>
struct network : nn::module<network<D, Kind>> {
  nn::embedding<float, D, Kind> embedding;
  nn::lstm<float, D, Kind> lstm;
  nn::linear<float, D, Kind> scores;

  // What follows each letter of ids (T,N), as logits (T N, letters), and the state after the last.
  template <class State>
  auto read(const tensor<std::int64_t, 2, D>& ids, const State& state) const {
    const auto [output, last] = lstm(embedding(ids), state);
    const index_t width = output.shape()[2];
    return nn::recurrent_result{eval(scores(output.reshape({ids.numel(), width}))), last};
  }
  template <class Ids>
  auto forward(const Ids& ids) const {
    return read(ids, nn::zero_state).output;
  }
  SINTER_MEMBERS(embedding, lstm, scores);
};

// The mean loss over the streams, `steps` at a time; with an optimizer it learns from each.
template <class Network, device D, class Optimizer>
double read_through(const Network& network, const text_streams& text, const settings& s, Optimizer* optimizer) {
  const extents<3> shape{{s.layers, text.inputs.shape()[1], s.hidden}};
  nn::lstm_state state{zeros<float, D>(shape), zeros<float, D>(shape)};
  double total = 0;
  for (index_t t = 0; t < text.steps(); t += s.steps) {
    const index_t end = std::min(t + s.steps, text.steps());
    const auto inputs = text.inputs.slice(0, t, end).to<D>();
    const auto targets = text.targets.slice(0, t, end).contiguous().flatten().template to<D>();
    const auto [logits, last] = network.read(inputs, state);
    const auto loss = eval(cross_entropy(logits, targets));
    state = last.detach();
    if constexpr (is_tracked_v<decltype(loss)>) {
      optimizer->zero_grad();
      loss.backward();
      optim::clip_grad_norm(network, 1.0);
      optimizer->step();
    }
    total += static_cast<double>(loss.item()) * static_cast<double>(targets.numel());
  }
  return total / static_cast<double>(text.inputs.numel());
}

// Letters that follow the prompt, each drawn by what the network holds likely.
template <device D>
std::string write_letters(const network<D>& trained, const letter_text& text, const settings& s) {
  const auto reader = infer(trained);
  generator gen(s.seed);
  const extents<3> shape{{s.layers, 1, s.hidden}};
  nn::lstm_state state{zeros<float, D>(shape), zeros<float, D>(shape)};
  std::vector<std::int64_t> ids = text.ids_of(s.prompt);
  std::string written;
  for (index_t i = 0; i < s.letters; ++i) {
    const auto n = static_cast<index_t>(ids.size());
    const auto [logits, last] = reader.read(from_data<std::int64_t, D>(ids, {n, 1}), state);
    state = last;
    const auto likely = softmax(logits.slice(0, n - 1, n) * static_cast<float>(1 / s.temperature), 1);
    const std::int64_t id = multinomial(gen, likely, 1).template to<cpu>()(0, 0);
    written += text.letters[static_cast<std::size_t>(id)];
    ids = {id};
  }
  return written;
}

template <device D>
int run(const settings& s) {
  const letter_text text = read_text(s.data);
  const std::size_t held_out = text.ids.size() / 10, end = text.ids.size() - held_out;
  const auto letters = static_cast<index_t>(text.letters.size());
  generator gen(s.seed);
  network<D> model{{},
                   nn::embedding<float, D>(letters, 64, gen),
                   nn::lstm<float, D>(64, s.hidden, gen, {.layers = s.layers, .dropout = s.dropout}),
                   nn::linear<float, D>(s.hidden, letters, gen)};
  double loss = 0;
  if (!s.weights.empty()) {
    nn::load_state(model, read_safetensors(s.weights));
  } else {
    const text_streams training(text, 0, end, s.batch), validation(text, end, text.ids.size(), 8);
    std::printf("an LSTM of %d parameters, %d letters of %d kinds, on %s\n", static_cast<int>(model.parameter_count()),
                static_cast<int>(text.ids.size()), static_cast<int>(letters), device_name<D>().c_str());
    optim::adam optimizer(model, {.lr = s.lr});
    for (index_t epoch = 1; epoch <= s.epochs; ++epoch) {
      const auto start = std::chrono::steady_clock::now();
      const double learnt = read_through<network<D>, D>(model, training, s, &optimizer);
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      const auto reader = infer(model);
      loss = read_through<decltype(reader), D, optim::adam>(reader, validation, s, nullptr);
      std::printf("epoch %2d: training loss %.4f, validation loss %.4f, %.0f letters a second\n",
                  static_cast<int>(epoch), learnt, loss, static_cast<double>(training.inputs.numel()) / spent.count());
      std::fflush(stdout);
    }
    if (!s.save.empty()) write_safetensors(s.save, nn::state(model));
  }
  std::printf("%s%s\n", s.prompt.c_str(), write_letters(model, text, s).c_str());
  if (s.weights.empty() && s.mark > 0 && !(loss <= s.mark)) {
    std::fprintf(stderr, "chars: the validation loss is above %g\n", s.mark);
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  command_line line("chars", help, argc, argv);
  settings s;
  line.take("--data", s.data);
  line.take("--epochs", s.epochs, 1, 100000);
  line.take("--hidden", s.hidden, 1, 100000);
  line.take("--layers", s.layers, 1, 1000);
  line.take("--batch", s.batch, 1, 1000000);
  line.take("--steps", s.steps, 1, 1000000);
  line.take("--lr", s.lr, 0, 100);
  line.take("--dropout", s.dropout, 0, 1);
  line.take("--letters", s.letters, 0, 1e9);
  line.take("--prompt", s.prompt);
  line.take("--temperature", s.temperature, 1e-3, 1000);
  line.take("--seed", s.seed, 0, 1e15);
  line.take("--save", s.save);
  line.take("--weights", s.weights);
  const settings defaults;
  const bool as_in_pytorch = s.data.empty() && s.epochs == defaults.epochs && s.hidden == defaults.hidden &&
                             s.layers == 1 && s.batch == defaults.batch && s.steps == defaults.steps &&
                             s.lr == defaults.lr;
  if (as_in_pytorch) s.mark = 1.03 * loss_of_pytorch;
  line.take("--mark", s.mark, 0, 100);
  line.take("--threads", s.threads, 1, 1024);
  line.take("--device", s.device);
  line.finish();
  if (s.data.empty()) s.data = folder_of(__FILE__) + "/data/shakespeare.txt";
  if (!s.weights.empty() && !s.save.empty()) line.refuse("--save has nothing to save where --weights is given");
  if (s.device.starts_with("cuda") && !SINTER_WITH_CUDA)
    line.refuse("--device " + s.device + ": this program was built without CUDA; use cpu");
  try {
    if (s.threads > 0) set_num_threads(s.threads);
    const auto on_its_device = [&](auto d) { return run<decltype(d)>(s); };
#if SINTER_WITH_CUDA
    return with_device<cpu, cuda<0>>(s.device, on_its_device);
#else
    return with_device<cpu>(s.device, on_its_device);
#endif
  } catch (const device_error& e) {
    line.refuse(e.what());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "chars: %s\n", e.what());
    return 1;
  }
}
