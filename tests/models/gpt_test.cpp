// tests/models/gpt_test.cpp: the GPT of examples with the weights of a GPT-2, beside the library transformers.
#include <sinter/io.hpp>
#include <sinter/sequences.hpp>

#include "../../examples/models/gpt.hpp"
#include "published.hpp"

using namespace sinter;
using published::distance, published::tokens;

namespace {

const std::string reference = SINTER_REPOSITORY "/tests/models/reference/gpt2";

models::gpt<> network_of(const nn::state_dict& weights) {
  generator gen(1);
  const models::gpt<> network(models::gpt_settings_of(weights, 3), gen);
  nn::load_state(network, weights, {.convert = true});
  return network;
}

}  // namespace

TEST_CASE("gpt: scores with the weights of a GPT-2 are those of PyTorch") {
  const models::gpt<> network = network_of(models::gpt_weights(read_safetensors(reference + ".safetensors")));
  const tensor wanted = read_npy<float, 3>(reference + ".npy");
  REQUIRE(wanted.shape() == extents<3>{{2, 20, 61}});
  CHECK(distance(network(tokens()).value(), wanted) < 1e-5);
  const auto reader = infer(network);
  CHECK(distance(reader(tokens()), wanted) < 1e-5);

  auto caches = reader.make_caches(2);
  const index_t ends[] = {7, 8, 9, 15, 20};  // a few at a time, and one by one
  index_t begin = 0;
  for (const index_t end : ends) {
    const tensor scores = reader.next(tokens().slice(1, begin, end), caches);
    CHECK(distance(scores, wanted.select(1, end - 1)) < 1e-5);
    begin = end;
  }
}

TEST_CASE("gpt: published names of GPT-2") {
  // Files of GPT2Model have no "transformer." in front, and old ones hold masks.
  nn::state_dict old;
  for (nn::named_tensor entry : nn::state_dict(read_safetensors(reference + ".safetensors"))) {
    REQUIRE(entry.name.starts_with("transformer."));
    entry.name.erase(0, 12);
    old.push_back(entry);
  }
  old.push_back({"h.0.attn.bias", full<bool>({1, 1, 24, 24}, true)});
  old.push_back({"h.0.attn.masked_bias", full<float>(-1e4f)});
  old.push_back({"lm_head.weight", zeros<float>({61, 24})});
  const nn::state_dict weights = models::gpt_weights(old);
  const models::gpt_settings s = models::gpt_settings_of(weights, 3);
  CHECK(s.vocabulary == 61);
  CHECK(s.context == 24);
  CHECK(s.layers == 2);
  CHECK(s.features == 24);
  CHECK(distance(infer(network_of(weights))(tokens()), read_npy<float, 3>(reference + ".npy")) < 1e-5);

  CHECK_THROWS_WITH(models::gpt_settings_of({}, 3), Catch::Contains("no GPT-2: no matrix is named wte.weight"));
  nn::state_dict cut = weights;
  cut.erase(cut.begin());
  CHECK_THROWS_WITH(network_of(cut), Catch::Contains("is missing in the state"));
}
