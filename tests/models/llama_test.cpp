// tests/models/llama_test.cpp: the Llama of examples with published weights, beside the library transformers.
#include <cmath>
#include <fstream>
#include <span>

#include <sinter/io.hpp>
#include <sinter/sequences.hpp>

#include "../../examples/models/llama.hpp"
#include "../io/folder.hpp"
#include "published.hpp"

using namespace sinter;
using published::check_gradients, published::distance, published::tokens;

namespace {

const std::string reference = SINTER_REPOSITORY "/tests/models/reference/";

nn::state_dict weights_of(const std::string& name) {
  return models::llama_weights(read_safetensors(reference + name + ".safetensors"));
}

models::llama<> network_of(const nn::state_dict& weights, const models::llama_settings& s) {
  generator gen(1);
  const models::llama<> network(models::llama_settings_of(weights, s), gen);
  nn::load_state(network, weights, {.convert = true});
  return network;
}
models::llama<> network_of(const std::string& name) {
  return network_of(weights_of(name), models::read_llama_settings(reference + name + ".json"));
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  REQUIRE(at != text.npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("llama: scores with published weights are those of PyTorch") {
  for (const std::string name : {"llama", "qwen2"}) {
    INFO(name);
    const models::llama<> network = network_of(name);
    const tensor wanted = read_npy<float, 3>(reference + name + ".npy");
    REQUIRE(wanted.shape() == extents<3>{{2, 20, 61}});
    CHECK(distance(network(tokens()).value(), wanted) < 1e-5);
    const auto reader = infer(network);
    CHECK(distance(reader(tokens()), wanted) < 1e-5);

    for (const std::vector<index_t>& ends : {std::vector<index_t>{7, 8, 9, 15, 20}, {1, 2, 3, 20}, {19, 20}}) {
      auto caches = reader.make_caches(2, 20);
      index_t begin = 0;
      for (const index_t end : ends) {
        const tensor scores = reader.next(tokens().slice(1, begin, end), caches);
        CHECK(distance(scores, wanted.select(1, end - 1)) < 1e-5);
        begin = end;
      }
    }
    auto caches = reader.make_caches(2);  // one by one
    for (index_t t = 0; t < 20; ++t)
      CHECK(distance(reader.next(tokens().slice(1, t, t + 1), caches), wanted.select(1, t)) < 1e-5);
  }
}

TEST_CASE("llama: gradients and names are those of PyTorch") {
  for (const std::string name : {"llama", "qwen2"}) {
    const models::llama<> network = network_of(name);
    const variable scores = network(tokens());
    cross_entropy(scores.slice(1, 0, 19).reshape({38, 61}), tokens().slice(1, 1, 20).contiguous().flatten()).backward();
    check_gradients(network, reference + name + ".tsv");
  }
}

TEST_CASE("llama: it writes what it would read again") {
  const auto reader = infer(network_of("llama"));
  auto caches = reader.make_caches();
  const auto next = [&](std::span<const std::int64_t> ids) {
    return reader.next(from_data(ids, {1, static_cast<index_t>(ids.size())}), caches);
  };
  generator gen(1);
  std::vector<std::int64_t> all{3, 1, 4};
  for (const std::int64_t id : nn::generate(next, all, {.max_tokens = 12, .temperature = 0}, gen)) all.push_back(id);
  REQUIRE(all.size() == 15);
  const tensor scores = reader(from_data(all, {1, 15}));
  for (index_t t = 3; t < 15; ++t)
    CHECK(static_cast<std::int64_t>(argmax(scores.select(0, 0).select(0, t - 1)).item()) ==
          all[static_cast<std::size_t>(t)]);
}

TEST_CASE("llama: settings of a config.json") {
  const models::llama_settings s = models::read_llama_settings(reference + "llama.json");
  CHECK(s.vocabulary == 61);
  CHECK(s.context == 64);
  CHECK(s.layers == 2);
  CHECK(s.heads == 4);
  CHECK(s.features == 24);
  CHECK(s.hidden == 40);
  CHECK(s.key_heads == 2);
  CHECK(s.head_features == 8);
  CHECK(s.epsilon == 1e-5);
  CHECK(s.positions.base == 50);
  REQUIRE(s.positions.llama3);
  CHECK(s.positions.llama3->factor == 8);
  CHECK(s.positions.llama3->low == 1);
  CHECK(s.positions.llama3->high == 4);
  CHECK(s.positions.llama3->context == 32);
  CHECK_FALSE(s.tied);
  CHECK_FALSE(s.biases);
  const models::llama_settings q = models::read_llama_settings(reference + "qwen2.json");
  CHECK(q.head_features == 0);
  CHECK(q.epsilon == 1e-6);
  CHECK(q.positions.base == 10000);
  CHECK_FALSE(q.positions.llama3);
  CHECK(q.tied);
  CHECK(q.biases);

  // Older ones write positions otherwise, and leave out what is as it was in the first Llama.
  const folder scratch;
  const std::string old = R"({"model_type" : "mistral","hidden_act":"silu","vocab_size":61,"hidden_size":24,
    "intermediate_size":40,"num_hidden_layers":2,"num_attention_heads":6,"max_position_embeddings":64,
    "rms_norm_eps":1e-5,"sliding_window":48, "rope_theta":5e5, "rope_scaling":{"type":"linear","factor":2.5},"head_dim": null})";
  const models::llama_settings m = models::read_llama_settings(scratch.file("old.json", old));
  CHECK(m.context == 48);
  CHECK(m.key_heads == 6);
  CHECK(m.head_features == 0);
  CHECK(m.positions.base == 5e5);
  CHECK(m.positions.factor == 2.5);
  CHECK_FALSE(m.positions.llama3);
  const auto without = models::read_llama_settings(
      scratch.file("none.json", replaced(old, R"({"type":"linear","factor":2.5})", "null")));
  CHECK(without.positions.factor == 1);

  const auto refused = [&](const std::string& text) {
    return message_of<io_error>([&] { models::read_llama_settings(scratch.file("config.json", text)); },
                                "nothing is wrong");
  };
  CHECK_THAT(message_of<io_error>([&] { models::read_llama_settings(scratch.file("absent")); }, ""),
             Catch::Contains("absent: cannot be read"));
  CHECK_THAT(refused(replaced(old, "}", "")), Catch::Contains("config.json, byte "));
  CHECK_THAT(refused("{}"), Catch::Contains("config.json: a network with model_type that is not told"));
  CHECK_THAT(refused(replaced(old, "mistral", "gemma")),
             Catch::Contains(R"(a network with model_type "gemma"; llama computes those with "llama")"));
  CHECK_THAT(refused(replaced(old, "silu", "gelu")), Catch::Contains(R"(hidden_act "gelu")"));
  CHECK_THAT(refused(replaced(old, "linear", "yarn")), Catch::Contains(R"(type "yarn")"));
  CHECK_THAT(refused(replaced(old, "num_attention_heads", "n_head")), Catch::Contains("tells no num_attention_heads"));
  CHECK_THAT(refused(replaced(old, "factor", "by")), Catch::Contains("tells no factor"));
  CHECK_THAT(refused(replaced(old, "\"vocab_size\":61", "\"vocab_size\":6.1")), Catch::Contains("vocab_size is 6.1"));
}

TEST_CASE("llama: files of other networks") {
  const nn::state_dict weights = weights_of("llama");
  const models::llama_settings s = models::read_llama_settings(reference + "llama.json");
  const tensor wanted = read_npy<float, 3>(reference + "llama.npy");

  // Files of LlamaModel have no "model." in front, and old ones hold frequencies. Weights tell all but the heads.
  nn::state_dict old;
  for (nn::named_tensor entry : nn::state_dict(read_safetensors(reference + "llama.safetensors"))) {
    if (entry.name.starts_with("model.")) entry.name.erase(0, 6);
    old.push_back(entry);
  }
  old.push_back({"layers.0.self_attn.rotary_emb.inv_freq", zeros<float>({4})});
  const models::llama<> network =
      network_of(models::llama_weights(old), {.context = 20, .heads = 4, .positions = s.positions});
  CHECK(distance(infer(network)(tokens()), wanted) < 1e-5);
  CHECK_THROWS_WITH(network(zeros<std::int64_t>({1, 21})), Catch::Contains("token 21 lies behind the context of 20"));

  generator gen(1);
  CHECK_THROWS_WITH(models::llama_settings_of(weights_of("gpt2"), s),
                    Catch::Contains("no Llama: no matrix is named model.layers.0.self_attn.q_proj.weight"));
  CHECK_THROWS_WITH(models::llama_settings_of(weights, {.heads = 3}), Catch::Contains("3 heads and 0 of keys do not"));
  CHECK_THROWS_WITH(models::llama_settings_of(weights, {.heads = 8, .key_heads = 2}),
                    Catch::Contains("8 heads and 2 of keys do not fit weights of 32 and 16 rows"));
  CHECK_THROWS_WITH(models::llama<>({.heads = 6}, gen), Catch::Contains("heads divide features"));
  CHECK_THROWS_WITH(models::llama<>({.heads = 8, .key_heads = 3}, gen), Catch::Contains("heads and 3 of keys"));
  nn::state_dict cut = weights, more = weights;
  cut.pop_back();
  CHECK_THROWS_WITH(network_of(cut, s), Catch::Contains("is missing in the state"));
  more.push_back({"model.layers.0.self_attn.o_proj.bias", zeros<float>({24})});
  CHECK_THROWS_WITH(network_of(more, s), Catch::Contains("model.layers.0.self_attn.o_proj.bias"));
}

TEST_CASE("llama: a new one begins as published ones did") {
  generator gen(1);
  const models::llama<> network({.vocabulary = 61,
                                 .context = 32,
                                 .layers = 1,
                                 .heads = 4,
                                 .features = 32,
                                 .hidden = 64,
                                 .key_heads = 1,
                                 .tied = false},
                                gen);
  CHECK(network.parameter_count() == 2 * 61 * 32 + 2 * 32 * 32 + 2 * 32 * 8 + 3 * 32 * 64 + 3 * 32);
  network.for_each_parameter([](const std::string& name, const auto& p) {
    INFO(name);
    const double deviation = static_cast<double>(norm(p.value()).item()) / std::sqrt(static_cast<double>(p.numel()));
    CHECK(std::abs(deviation - (name.ends_with("norm.weight") ? 1 : 0.02)) < 0.002);
  });
}
