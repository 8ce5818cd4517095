// Trains a small GPT on a text, letter by letter, stops and goes on, and writes some of its own.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/09_gpt.cpp -o gpt -pthread
// ctest: --steps 20 --layers 2 --features 32 --context 32 --letters 40 --mark 4
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>

#define SINTER_WITH_RANKS 1      // checkpoints of runs, which sinter.hpp leaves out otherwise
#define SINTER_WITH_SEQUENCES 1  // and attention
#include <sinter/sinter.hpp>

#include "command_line.hpp"
#include "models/gpt.hpp"
#include "text.hpp"

using namespace sinter;

const char* const help = R"(Trains a small GPT on a text, letter by letter, and writes some of its own.

  --data FILE        the text (default: the beginning of Shakespeare's works, which is in this repository)
  --steps N          updates (default: 600)
  --batch N          pieces of the text in each update (default: 16)
  --context N        letters in a piece, and as far back as the network sees (default: 64)
  --layers N, --heads N, --features N
                     the network's blocks, the heads of attention in each, and their width (default: 3, 4, 128)
  --dropout X        probability of dropout (default: 0)
  --lr X             learning rate of AdamW (default: 0.001)
  --checkpoint FILE  saves there every 100 updates and at the end; where FILE is there already, goes on from it
  --letters N        letters to write at the end (default: 400)
  --prompt TEXT      what they follow (default: a new line)
  --temperature X    below 1 it writes what is likelier, above 1 what is less likely (default: 0.8)
  --top-k N          chooses among so many of the likeliest letters (default: 0, all)
  --seed N           of the initial weights, the pieces, and what it writes (default: 1)
  --mark X           the loss on the last tenth of the text that may not be exceeded; by default, with the text and the
                     settings that are defaults too, 3 % above what PyTorch reaches
  --threads N        threads of device cpu (default: all processors)
  --help             this text

Exit code: 0; 1 if the loss is above --mark or something went wrong; 2 for a wrong option.
)";

// The mean of three seeds, by examples/reference/gpt.py.
constexpr double loss_of_pytorch = 1.9467;

struct settings {
  index_t steps = 600, batch = 16, context = 64, layers = 3, heads = 4, features = 128, letters = 400, top_k = 0;
  int threads = 0;
  std::uint64_t seed = 1;
  double dropout = 0, lr = 0.001, temperature = 0.8, mark = 0;
  std::string data, checkpoint, prompt = "\n";
};

using ids = tensor<std::int64_t, 2>;

// Pieces of the text, which begin at these letters, and what follows each letter of them.
struct pieces {
  ids inputs, targets;

  pieces(std::span<const std::int64_t> text, const std::vector<index_t>& starts, index_t context)
      : inputs(zeros<std::int64_t>({static_cast<index_t>(starts.size()), context})), targets(inputs.clone()) {
    for (index_t n = 0; n < inputs.extent(0); ++n)
      for (index_t t = 0; t < context; ++t) {
        const auto at = static_cast<std::size_t>(starts[static_cast<std::size_t>(n)] + t);
        inputs(n, t) = text[at];
        targets(n, t) = text[at + 1];
      }
  }
};

template <class Network>
auto loss_of(const Network& network, const pieces& p) {
  const auto scores = network(p.inputs);
  return eval(cross_entropy(scores.reshape({p.inputs.numel(), scores.extent(2)}), p.targets.flatten()));
}

// The mean loss on a text that the network was not trained on.
double validate(const models::gpt<>& network, std::span<const std::int64_t> text, const settings& s) {
  const auto reader = infer(network);
  double sum = 0;
  index_t count = 0;
  std::vector<index_t> starts;
  const index_t last = static_cast<index_t>(text.size()) - s.context;
  for (index_t at = 0; at < last; at += s.context) {
    starts.push_back(at);
    if (starts.size() < 16 && at + s.context < last) continue;
    sum += static_cast<double>(loss_of(reader, pieces(text, starts, s.context)).item()) *
           static_cast<double>(starts.size());
    count += static_cast<index_t>(starts.size());
    starts.clear();
  }
  return sum / static_cast<double>(count);
}

void write_letters(const models::gpt<>& network, const letter_text& text, const settings& s) {
  const auto reader = infer(network);
  auto caches = reader.make_caches();
  generator gen(s.seed);
  std::vector<std::int64_t> prompt = text.ids_of(s.prompt);
  std::printf("%s", s.prompt.c_str());
  const auto start = std::chrono::steady_clock::now();
  index_t left = s.letters, written = 0;
  while (left > 0) {
    // A context holds so many letters; the next begins with the second half of the one before.
    if (static_cast<index_t>(prompt.size()) > s.context / 2)
      prompt.erase(prompt.begin(), prompt.end() - static_cast<std::ptrdiff_t>(s.context / 2));
    for (auto& cache : caches) cache.clear();
    const index_t room = std::min(left, s.context - static_cast<index_t>(prompt.size()));
    const auto next = [&](std::span<const std::int64_t> tokens) {
      return reader.next(from_data(tokens, {1, static_cast<index_t>(tokens.size())}), caches);
    };
    const auto letters =
        nn::generate(next, prompt, {.max_tokens = room, .temperature = s.temperature, .top_k = s.top_k}, gen,
                     [&](std::int64_t id) { std::putchar(text.letters[static_cast<std::size_t>(id)]); });
    prompt.insert(prompt.end(), letters.begin(), letters.end());
    left -= room;
    written += room;
  }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  std::printf("\n%.0f letters a second\n", static_cast<double>(written) / spent.count());
}

int run(const settings& s) {
  const letter_text text = read_text(s.data);
  const auto held_out = static_cast<index_t>(text.ids.size()) / 10,
             end = static_cast<index_t>(text.ids.size()) - held_out;
  if (held_out <= s.context)
    throw value_error("the text of " + std::to_string(text.ids.size()) + " letters is too short for a context of " +
                      std::to_string(s.context));
  const auto all = std::span<const std::int64_t>(text.ids);
  const auto training = all.first(static_cast<std::size_t>(end)),
             validation = all.subspan(static_cast<std::size_t>(end));
  generator gen(s.seed);
  models::gpt<> network({.vocabulary = static_cast<index_t>(text.letters.size()),
                         .context = s.context,
                         .layers = s.layers,
                         .heads = s.heads,
                         .features = s.features,
                         .dropout = s.dropout},
                        gen);
  optim::adamw optimizer(network, {.lr = s.lr, .weight_decay = 0.1});
  std::printf("a GPT of %d parameters, %d letters of %d kinds\n", static_cast<int>(network.parameter_count()),
              static_cast<int>(text.ids.size()), static_cast<int>(text.letters.size()));

  std::int64_t step = 0, batch = s.batch;
  const auto save = [&] {
    if (!s.checkpoint.empty()) run_checkpoint(s.checkpoint).save(network, optimizer, gen, step, batch);
  };
  if (!s.checkpoint.empty() && run_checkpoint(s.checkpoint).exists()) {
    run_checkpoint(s.checkpoint).load(network, optimizer, gen, step, batch);
    if (batch != s.batch)
      throw value_error(s.checkpoint + ": was saved by a run with --batch " + std::to_string(batch) + ", not " +
                        std::to_string(s.batch) + "; go on with that, or name another file");
    std::printf("goes on after update %d\n", static_cast<int>(step));
  }
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t first = step;
  while (step < s.steps) {
    const tensor drawn = randint<std::int64_t>(gen, 0, end - s.context, {s.batch});
    const variable loss =
        loss_of(network, pieces(training, std::vector<index_t>(drawn.begin(), drawn.end()), s.context));
    optimizer.zero_grad();
    loss.backward();
    optim::clip_grad_norm(network, 1.0);
    optimizer.step();
    ++step;
    if (step % 100 != 0 && step != s.steps) continue;
    save();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    std::printf("update %4d: training loss %.6f, %.0f letters a second\n", static_cast<int>(step),
                static_cast<double>(loss.item()),
                static_cast<double>((step - first) * s.batch * s.context) / spent.count());
    std::fflush(stdout);
  }
  const double loss = validate(network, validation, s);
  std::printf("validation loss %.6f, perplexity %.3f\n", loss, std::exp(loss));
  write_letters(network, text, s);
  if (s.mark > 0 && !(loss <= s.mark)) {
    std::fprintf(stderr, "gpt: the validation loss is above %g\n", s.mark);
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  command_line line("gpt", help, argc, argv);
  settings s;
  line.take("--data", s.data);
  line.take("--steps", s.steps, 0, 1e9);
  line.take("--batch", s.batch, 1, 1000000);
  line.take("--context", s.context, 2, 1000000);
  line.take("--layers", s.layers, 1, 1000);
  line.take("--heads", s.heads, 1, 10000);
  line.take("--features", s.features, 1, 100000);
  line.take("--dropout", s.dropout, 0, 1);
  line.take("--lr", s.lr, 0, 100);
  line.take("--checkpoint", s.checkpoint);
  line.take("--letters", s.letters, 0, 1e9);
  line.take("--prompt", s.prompt);
  line.take("--temperature", s.temperature, 0, 1000);
  line.take("--top-k", s.top_k, 0, 1e9);
  line.take("--seed", s.seed, 0, 1e15);
  const settings d;
  const bool as_in_pytorch = s.data.empty() && s.steps == d.steps && s.batch == d.batch && s.context == d.context &&
                             s.layers == d.layers && s.heads == d.heads && s.features == d.features && s.lr == d.lr &&
                             s.dropout == 0;
  if (as_in_pytorch) s.mark = 1.03 * loss_of_pytorch;
  line.take("--mark", s.mark, 0, 100);
  line.take("--threads", s.threads, 1, 1024);
  line.finish();
  if (s.features % s.heads != 0) line.refuse("--heads needs a number that divides --features");
  if (s.data.empty()) s.data = folder_of(__FILE__) + "/data/shakespeare.txt";
  try {
    if (s.threads > 0) set_num_threads(s.threads);
    return run(s);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpt: %s\n", e.what());
    return 1;
  }
}
