// tests/models/bert_test.cpp: the BERT and the tokenizer of examples, beside those of the library transformers.
#include <algorithm>
#include <fstream>

#include <sinter/io.hpp>
#include <sinter/sequences.hpp>

#include "../../examples/models/bert.hpp"
#include "../../examples/wordpiece.hpp"
#include "../io/folder.hpp"
#include "published.hpp"

using namespace sinter;
using published::distance;

namespace {

const std::string small = SINTER_REPOSITORY "/examples/data/bert/";

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE_FALSE(lines.empty());
  return lines;
}

/// The network that examples/reference/embed.py made.
models::bert<> small_network(double dropout = 0) {
  generator gen(1);
  const nn::state_dict weights = models::bert_weights(read_safetensors(small + "model.safetensors"));
  models::bert_settings s = models::bert_settings_of(weights, 3);
  s.dropout = dropout;
  const models::bert<> network(s, gen);
  nn::load_state(network, weights, {.convert = true});
  return network;
}

/// sentences.txt side by side, filled up to the longest and `more`.
struct sentence_batch {
  tensor<std::int64_t, 2> ids;
  tensor<bool, 2> words;

  explicit sentence_batch(index_t more = 0) {
    const wordpiece pieces(small + "vocab.txt");
    std::vector<std::vector<std::int64_t>> all;
    std::size_t longest = 0;
    for (const std::string& line : lines_of(small + "sentences.txt")) {
      all.push_back(pieces.ids_of(line, 48));
      longest = std::max(longest, all.back().size());
    }
    const extents<2> shape{{static_cast<index_t>(all.size()), static_cast<index_t>(longest) + more}};
    ids = full<std::int64_t>(shape, pieces.padding());
    words = zeros<bool>(shape);
    for (index_t n = 0; n < shape[0]; ++n)
      for (std::size_t t = 0; t < all[static_cast<std::size_t>(n)].size(); ++t) {
        ids(n, static_cast<index_t>(t)) = all[static_cast<std::size_t>(n)][t];
        words(n, static_cast<index_t>(t)) = true;
      }
  }
};

}  // namespace

TEST_CASE("wordpiece: lines become the pieces of the library tokenizers") {
  const wordpiece pieces(small + "vocab.txt");
  for (const std::string& line : lines_of(small + "lines.tsv")) {
    const std::size_t tab = line.find('\t');
    std::string ids;
    for (const std::int64_t id : pieces.ids_of(std::string_view(line).substr(tab + 1), 100000))
      ids += (ids.empty() ? "" : " ") + std::to_string(id);
    INFO(line.substr(tab + 1));
    CHECK(ids == line.substr(0, tab));
  }
}

TEST_CASE("wordpiece: what is too long is cut") {
  const wordpiece pieces(small + "vocab.txt");
  const auto all = pieces.ids_of("the cat sleeps", 6), five = pieces.ids_of("the cat sleeps", 5),
             none = pieces.ids_of("the cat sleeps", 2);
  REQUIRE(all.size() == 6);  // [CLS] the cat sleep ##s [SEP]
  CHECK(five == std::vector{all[0], all[1], all[2], all[3], all[5]});
  CHECK(none == std::vector{all[0], all[5]});
  CHECK(pieces.ids_of("", 5) == none);
  CHECK(pieces.ids_of("the \xff\xc3 cat", 9) ==
        std::vector{all[0], all[1], all[2], all[5]});  // bytes that are no UTF-8
  CHECK(pieces.ids_of("[SEP]", 9).size() == 7);        // a text, not its end
}

TEST_CASE("wordpiece: lists of pieces") {
  const folder scratch;
  const std::string json =
      R"({"version": "1.0", "added_tokens": [{"id": 0, "special": true}], "model": {"type": "WordPiece",
    "vocab": {"[PAD]": 0, "[UNK]": 4, "[CLS]": 1, "[SEP]": 2, "c\u00e6": 3, "##t": 7}}})";
  const wordpiece pieces(scratch.file("tokenizer.json", json));
  CHECK(pieces.size() == 8);
  CHECK(pieces.ids_of("C\u00c6tt dog", 9) == std::vector<std::int64_t>{1, 3, 7, 7, 4, 2});
  CHECK(wordpiece(scratch.file("windows.txt", "[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\na")).ids_of("a", 9) ==
        std::vector<std::int64_t>{2, 4, 3});

  const auto refused = [&](const std::string& path) {
    return message_of<io_error>([&] { wordpiece{path}; }, "nothing is wrong");
  };
  CHECK_THAT(refused(scratch.file("none")), Catch::Contains("none: cannot be read; give the vocab.txt"));
  CHECK_THAT(refused(scratch.file("text", "a\nb\n")),
             Catch::Contains("text: lists no piece [UNK]; give the vocab.txt"));
  CHECK_THAT(refused(scratch.file("cut.json", R"({"model": {"vocab": {"a": 1)")), Catch::Contains("cut.json, byte 27"));
  CHECK_THAT(refused(scratch.file("bpe.json", R"({"model": {"type": "BPE"}})")),
             Catch::Contains("a tokenizer of type BPE, not WordPiece"));
}

TEST_CASE("bert: vectors of sentences are those of PyTorch, whatever the padding") {
  const models::bert<> network = small_network();
  const auto reader = infer(network);
  const tensor wanted = read_npy<float, 2>(small + "vectors.npy");
  const sentence_batch few, many(7);
  const tensor vectors = models::mean_of_words(reader(few.ids, few.words), few.words);
  CHECK(distance(vectors, wanted) < 1e-5);
  CHECK(distance(models::mean_of_words(reader(many.ids, many.words), many.words), wanted) < 1e-5);
  CHECK(distance(models::mean_of_words(reader(many.ids), many.words), wanted) > 1e-3);  // which sees the padding
  const variable recorded = models::mean_of_words(network(few.ids, few.words), few.words);
  CHECK(distance(recorded.value(), wanted) < 1e-5);
}

TEST_CASE("bert: one sentence") {
  const std::string path = small + "model.safetensors", vocabulary = small + "vocab.txt";
  generator gen(1);
  // [docs:load]
  const nn::state_dict weights = models::bert_weights(read_safetensors(path));
  const models::bert<> network(models::bert_settings_of(weights, 3), gen);  // weights do not tell the number of heads
  nn::load_state(network, weights, {.convert = true});
  const std::vector ids = wordpiece(vocabulary).ids_of("A cat sleeps on the warm window sill.", 48);
  const auto length = static_cast<index_t>(ids.size());
  const tensor of_pieces = infer(network)(from_data(ids, {1, length}));                   // (1,T,24)
  const tensor vector = models::mean_of_words(of_pieces, full<bool>({1, length}, true));  // (1,24), of length 1
  // [docs:end]
  CHECK(distance(vector, read_npy<float, 2>(small + "vectors.npy").slice(0, 0, 1)) < 1e-5);
}

TEST_CASE("bert: gradients are those of PyTorch") {
  const models::bert<> network = small_network();
  const sentence_batch batch;
  const auto kinds = zeros<std::int64_t>(batch.ids.shape());
  kinds.slice(1, 5, kinds.extent(1)) = std::int64_t{1};
  const tensor ramp = arange<float>(24) / 11.5f - 1.f;
  const variable y = network(batch.ids, batch.words, kinds);
  const variable loss = sum(y * ramp * cast<float>(batch.words.unsqueeze(2))) + sum(network.pooled(y) * ramp);
  loss.backward();
  published::check_gradients(network, SINTER_REPOSITORY "/tests/models/reference/bert.tsv");
}

TEST_CASE("bert: dropout is for training") {
  const sentence_batch batch;
  const models::bert<> dropping = small_network(0.2);
  const tensor wanted = read_npy<float, 2>(small + "vectors.npy");
  const auto vectors = [&](const auto& network) {
    return sinter::eval(models::mean_of_words(network(batch.ids, batch.words), batch.words));
  };
  const tensor first = vectors(dropping).value(), second = vectors(dropping).value();
  CHECK(distance(first, second) > 1e-3);
  CHECK(distance(first, wanted) > 1e-3);
  CHECK(distance(vectors(infer(dropping)), wanted) < 1e-5);
}

TEST_CASE("bert: published names") {
  nn::state_dict old;
  for (nn::named_tensor entry : nn::state_dict(read_safetensors(small + "model.safetensors"))) {
    std::string& name = entry.name;
    if (const auto at = name.find("LayerNorm.weight"); at != name.npos) name.replace(at, name.npos, "LayerNorm.gamma");
    if (const auto at = name.find("LayerNorm.bias"); at != name.npos) name.replace(at, name.npos, "LayerNorm.beta");
    if (name.starts_with("pooler.")) continue;
    name = "bert." + name;
    old.push_back(entry);
  }
  const tensor<std::int64_t, 2> positions = zeros<std::int64_t>({1, 48});
  old.push_back({"bert.embeddings.position_ids", positions});
  old.push_back({"cls.predictions.bias", zeros<float>({510})});
  const nn::state_dict weights = models::bert_weights(old);
  const models::bert_settings s = models::bert_settings_of(weights, 3);
  CHECK(s.vocabulary == 510);
  CHECK(s.context == 48);
  CHECK(s.kinds == 2);
  CHECK(s.layers == 2);
  CHECK(s.features == 24);
  CHECK(s.hidden == 48);
  CHECK_FALSE(s.pooler);
  generator gen(1);
  const models::bert<> network(s, gen);
  nn::load_state(network, weights, {.convert = true});
  const sentence_batch batch;
  const tensor vectors = models::mean_of_words(infer(network)(batch.ids, batch.words), batch.words);
  CHECK(distance(vectors, read_npy<float, 2>(small + "vectors.npy")) < 1e-5);
  CHECK_THROWS_WITH(network.pooled(network(batch.ids)), Catch::Contains("a network without a pooler"));

  CHECK_THROWS_WITH(models::bert_settings_of({}, 3),
                    Catch::Contains("no BERT: no matrix is named embeddings.word_embeddings.weight"));
  CHECK_THROWS_WITH(models::bert<>(models::bert_settings_of(weights, 5), gen),
                    Catch::Contains("5 heads do not divide 24 features"));
  nn::state_dict cut = weights;
  cut.pop_back();
  CHECK_THROWS_WITH(nn::load_state(network, cut, {.convert = true}), Catch::Contains("is missing in the state"));
  CHECK_THROWS_WITH(network(zeros<std::int64_t>({1, 49})),
                    Catch::Contains("a text of 49 tokens; the network reads no more than 48"));
}
