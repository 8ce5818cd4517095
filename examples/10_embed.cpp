// Turns sentences into vectors with a trained BERT, and tells which are alike.
//   g++ -std=c++20 -O2 -march=native -I single_include -isystem /usr/include/eigen3 examples/10_embed.cpp -o embed -pthread
// ctest:
// ctest: --batch 1
// ctest: --max-tokens 8 --tokens
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#define SINTER_WITH_DATA 1       // files, which sinter.hpp leaves out otherwise
#define SINTER_WITH_SEQUENCES 1  // and attention
#include <sinter/sinter.hpp>

#include "command_line.hpp"
#include "models/bert.hpp"
#include "wordpiece.hpp"

using namespace sinter;

const char* const help =
    R"(Turns sentences into vectors with a BERT, and prints the cosine of the angle between each two of them.

  --weights FILE     the weights of a BERT, as safetensors, such as all-MiniLM-L6-v2's model.safetensors (default: a
                     small network with random weights, which is in this repository; its vectors mean nothing, but they
                     have to be those that PyTorch makes of it)
  --vocab FILE       its pieces of words, vocab.txt or tokenizer.json; the network has to be "uncased"
                     (default: vocab.txt beside the weights)
  --heads N          the heads of attention in each layer, which the weights do not tell (default: what config.json
                     beside the weights says, or 12, as many as BERT base and MiniLM have)
  --text FILE        the sentences, one a line (default: a few that are in this repository)
  --batch N          sentences that the network reads at once (default: 32)
  --max-tokens N     what follows so many pieces of a sentence is left out, or fewer where the network cannot read as
                     many (default: 256)
  --save FILE        writes the vectors, as an array of NumPy with a row for each sentence
  --tokens           prints the numbers of each sentence's pieces, and nothing else
  --threads N        threads of device cpu (default: all processors)
  --help             this text

A vector is the mean of those that the network makes of a sentence's pieces, divided by its length.
Exit code: 0; 1 if a vector of the small network is not that of PyTorch, or something went wrong; 2 for a wrong option.
)";

struct settings {
  std::string weights, vocab, text, save, wanted;  // wanted: the file of the vectors that PyTorch makes
  index_t heads = 0, batch = 32, max_tokens = 256;
  int threads = 0;
  bool tokens = false;
};

using token_list = std::vector<std::int64_t>;

std::vector<std::string> read_lines(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw io_error(path + ": cannot be read");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  if (lines.empty()) throw io_error(path + ": holds no sentence");
  return lines;
}

bool exists(const std::string& path) { return std::ifstream(path).good(); }

// The number of heads that a config.json tells; 0 where it tells none.
index_t read_heads(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  index_t heads = 0;
  sinter::detail::json_reader json(text, path);
  json.object([&](const std::string& member) {
    if (member == "num_attention_heads") {
      heads = json.natural();
    } else if (member == "hidden_act") {
      if (const std::string name = json.string(); name != "gelu")
        json.fail({"a network with ", name, "; this example computes those with gelu"});
    } else {
      json.skip();
    }
  });
  return heads;
}

models::bert<> read_network(const settings& s) {
  index_t heads = s.heads;
  if (const std::string config = folder_of(s.weights) + "/config.json"; heads == 0 && exists(config))
    heads = read_heads(config);
  generator gen(1);
  try {
    const nn::state_dict weights = models::bert_weights(read_safetensors(s.weights, {.map = true}));
    const models::bert<> network(models::bert_settings_of(weights, heads > 0 ? heads : 12), gen);
    nn::load_state(network, weights, {.convert = true});
    return network;
  } catch (const value_error& e) {
    throw io_error(s.weights + ": " + e.what());
  }
}

// A vector of length 1 for each text, (texts,features).
tensor<float, 2> vectors_of(const models::bert<>& network, const std::vector<token_list>& texts,
                            const wordpiece& pieces, index_t batch) {
  const auto reader = infer(network);  // on plain tensors: nothing is recorded; in eval() mode
  const auto count = static_cast<index_t>(texts.size());
  std::vector<std::size_t> order(texts.size());  // the longest together, so that there is little padding
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return texts[a].size() > texts[b].size(); });
  const auto vectors = zeros<float>({count, network.norm.weight.extent(0)});
  for (index_t begin = 0; begin < count; begin += batch) {
    const index_t n = std::min(batch, count - begin);
    const auto text = [&](index_t i) -> const token_list& { return texts[order[static_cast<std::size_t>(begin + i)]]; };
    const auto length = static_cast<index_t>(text(0).size());
    const auto ids = full<std::int64_t>({n, length}, pieces.padding());
    const auto words = zeros<bool>({n, length});
    for (index_t i = 0; i < n; ++i)
      for (std::size_t t = 0; t < text(i).size(); ++t) {
        ids(i, static_cast<index_t>(t)) = text(i)[t];
        words(i, static_cast<index_t>(t)) = true;
      }
    const tensor made = models::mean_of_words(reader(ids, words), words);
    for (index_t i = 0; i < n; ++i)
      vectors.select(0, static_cast<index_t>(order[static_cast<std::size_t>(begin + i)])) = made.select(0, i);
  }
  return vectors;
}

void print_cosines(const tensor<float, 2>& vectors, const std::vector<std::string>& sentences) {
  const index_t shown = std::min<index_t>(vectors.extent(0), 12);
  for (index_t i = 0; i < shown; ++i)
    std::printf("%3d  %s\n", static_cast<int>(i + 1), sentences[static_cast<std::size_t>(i)].c_str());
  if (shown < vectors.extent(0)) std::printf("     and %d more\n", static_cast<int>(vectors.extent(0) - shown));
  const tensor few = vectors.slice(0, 0, shown), cosines = matmul(few, few.transpose(0, 1));
  std::printf("\n    ");
  for (index_t i = 0; i < shown; ++i) std::printf("%6d", static_cast<int>(i + 1));
  for (index_t i = 0; i < shown; ++i) {
    std::printf("\n%4d", static_cast<int>(i + 1));
    for (index_t j = 0; j < shown; ++j) std::printf("%6.2f", static_cast<double>(cosines(i, j)));
  }
  std::printf("\n\n");
}

void print_numbers(const token_list& text) {
  for (std::size_t i = 0; i < text.size(); ++i)
    std::printf("%d%c", static_cast<int>(text[i]), i + 1 < text.size() ? ' ' : '\n');
}

int run(const settings& s) {
  if (!exists(s.weights)) throw io_error(s.weights + ": cannot be read; give the safetensors file of a BERT");
  const std::vector<std::string> sentences = read_lines(s.text);
  const wordpiece pieces(s.vocab);
  if (s.tokens) {
    for (const std::string& sentence : sentences) print_numbers(pieces.ids_of(sentence, s.max_tokens));
    return 0;
  }
  const models::bert<> network = read_network(s);
  const index_t listed = pieces.size(), known = network.word_embeddings.weight.extent(0);
  if (listed > known)
    throw io_error(s.vocab + ": lists " + std::to_string(listed) + " pieces, but the network of " + s.weights +
                   " knows " + std::to_string(known) + "; give the list that belongs to it");
  const index_t most = std::min(s.max_tokens, network.position_embeddings.weight.extent(0));
  std::printf("a BERT of %d parameters, %d layers and %d heads\n", static_cast<int>(network.parameter_count()),
              static_cast<int>(network.layers.size()), static_cast<int>(network.layers[0].heads));
  const auto start = std::chrono::steady_clock::now();
  std::vector<token_list> texts;
  for (const std::string& sentence : sentences) texts.push_back(pieces.ids_of(sentence, most));
  const tensor<float, 2> vectors = vectors_of(network, texts, pieces, s.batch);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  print_cosines(vectors, sentences);
  std::printf("%.2f ms a sentence\n", spent.count() / static_cast<double>(sentences.size()));
  if (!s.save.empty()) write_npy(s.save, vectors);
  if (s.wanted.empty()) return 0;
  const auto far = static_cast<double>(max(abs(vectors - read_npy<float, 2>(s.wanted))).item());
  std::printf("the vectors are those of PyTorch but for %.1e\n", far);
  if (far <= 1e-5) return 0;
  std::fprintf(stderr, "embed: the vectors are not those of PyTorch\n");
  return 1;
}

int main(int argc, char** argv) {
  command_line line("embed", help, argc, argv, {"--tokens"});
  settings s;
  line.take("--weights", s.weights);
  line.take("--vocab", s.vocab);
  if (s.weights.empty() && !s.vocab.empty()) line.refuse("--vocab belongs to --weights");
  const std::string small = folder_of(__FILE__) + "/data/bert";
  const bool own = s.weights.empty();
  if (own) s.weights = small + "/model.safetensors", s.heads = 3;
  if (s.vocab.empty()) s.vocab = folder_of(s.weights) + "/vocab.txt";
  line.take("--heads", s.heads, 1, 10000);
  line.take("--text", s.text);
  line.take("--batch", s.batch, 1, 1000000);
  line.take("--max-tokens", s.max_tokens, 3, 1000000);
  line.take("--save", s.save);
  line.take("--threads", s.threads, 1, 1024);
  s.tokens = line.has("--tokens");
  line.finish();
  if (own && s.text.empty() && s.heads == 3 && s.max_tokens == settings().max_tokens) s.wanted = small + "/vectors.npy";
  if (s.text.empty()) s.text = small + "/sentences.txt";
  try {
    if (s.threads > 0) set_num_threads(s.threads);
    return run(s);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "embed: %s\n", e.what());
    return 1;
  }
}
