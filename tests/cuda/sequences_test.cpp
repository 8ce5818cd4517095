// tests/cuda/sequences_test.cpp: recurrent and attending layers, the loss over many classes and what a network writes,
// on a GPU and on the cpu.
#include <sinter/sequences.hpp>

#include "compare.hpp"

// What <sinter/sequences.hpp> includes for GPUs, where they are not simulated.
#include "sinter/cuda/attention.hpp"
#include "sinter/cuda/linear_cross_entropy.hpp"
#include "sinter/cuda/recurrent.hpp"

#include <map>
#include <span>
#include <string>

using namespace sinter;
using g0 = cuda<0>;

namespace {

template <class X>
auto there(const X& x) {
  return x.template to<g0>();
}

/// Trains `layer` and a copy of it on a GPU by f(layer, to the device) and compares their gradients, by name.
template <class Layer, class F>
void train_both(const Layer& layer, const F& f) {
  const auto moved = layer.template to<g0>();
  f(layer, [](const auto& x) { return x; });
  f(moved, [](const auto& x) { return there(x); });
  std::map<std::string, tensor<float, 1>> gradients;
  layer.for_each_parameter([&](const std::string& name, const auto& p) { gradients[name] = p.grad().flatten(); });
  REQUIRE_FALSE(gradients.empty());
  moved.for_each_parameter([&](const std::string& name, const auto& p) {
    INFO(name);
    CHECK(compare::distance(p.grad().flatten(), gradients[name]) < 1e-4);
  });
}

}  // namespace

TEST_CASE("recurrent layers train on a GPU as on the cpu", "[cuda][sequences]") {
  generator gen(1);
  const tensor x = randn<float>(gen, {5, 3, 4}), g = randn<float>(gen, {5, 3, 12});
  const auto at_once = [&](const auto& layer, const auto& to) { variable(layer(to(x))).backward(to(g)); };
  train_both(nn::lstm(4, 6, gen, {.layers = 2, .bidirectional = true}), at_once);
  train_both(nn::gru(4, 6, gen, {.bidirectional = true}), at_once);
  train_both(nn::rnn(4, 12, gen), at_once);
  train_both(nn::lstm(4, 6, gen), [&](const auto& layer, const auto& to) {
    const auto packed = pack_padded_sequence(to(x), std::vector{2, 5, 3}, {.enforce_sorted = false});
    const auto [values, lengths] = pad_packed_sequence(layer(packed));
    values.backward(to(eval(g.slice(2, 0, 6))));
  });
}

TEST_CASE("multi-head attention trains on a GPU as on the cpu", "[cuda][sequences]") {
  generator gen(3);
  const tensor x = randn<float>(gen, {2, 9, 8}), g = randn<float>(gen, {2, 9, 8});
  const tensor<bool, 2> mask = eval(randn<float>(gen, {9, 9}) > -0.5f);
  train_both(nn::multihead_attention(8, 2, gen, {.batch_first = true, .causal = true}),
             [&](const auto& layer, const auto& to) { variable(layer(to(x))).backward(to(g)); });
  train_both(nn::multihead_attention(8, 2, gen, {.dropout = 0.25, .batch_first = true}),
             [&](const auto& layer, const auto& to) { variable(layer(to(x), to(mask))).backward(to(g)); });
}

TEST_CASE("the loss over many classes has on a GPU the gradients of the cpu", "[cuda][sequences]") {
  generator gen(2);
  const tensor targets = randint<std::int64_t>(gen, 0, 700, {30});
  for (const bool recompute : {false, true})
    CHECK(compare::gradients(
              [&](const auto& x, const auto& w, const auto& b) {
                return eval(linear_cross_entropy(x, w, b, targets.to<device_of<decltype(x)>>(),
                                                 {.label_smoothing = 0.1, .z_loss = 0.01, .recompute = recompute}));
              },
              randn<float>(gen, {30, 12}), randn<float>(gen, {700, 12}), randn<float>(gen, {700})) < 1e-4);
}

TEST_CASE("a network writes on a GPU, token by token with a cache, what it writes on the cpu", "[cuda][sequences]") {
  generator gen(4);
  const nn::multihead_attention layer(8, 2, gen, {.batch_first = true, .causal = true});
  const tensor words = randn<float>(gen, {1, 8, 8});
  const std::vector<std::int64_t> prompt{1, 2, 5};
  const auto written = [&]<device D>(std::type_identity<D>) {
    const auto moved = layer.template to<D>();
    const auto reader = infer(moved);
    nn::key_value_cache<float, D> cache(1, 2, 12, 4);
    const auto next = [&](std::span<const std::int64_t> tokens) {
      const tensor in = zeros<float>({1, static_cast<index_t>(tokens.size()), 8});
      for (std::size_t i = 0; i < tokens.size(); ++i)
        in.select(1, static_cast<index_t>(i)) = words.select(1, tokens[i]);
      const tensor h = reader(in.template to<D>(), cache);
      const tensor scores = h.select(1, h.extent(1) - 1).template to<cpu>();
      return tensor<float, 1>(matmul(words[0], scores[0]));
    };
    generator choose(5);
    return nn::generate(next, prompt, {.max_tokens = 9, .temperature = 0.5, .top_k = 4}, choose);
  };
  const auto here = written(std::type_identity<cpu>());
  CHECK(here.size() == 9);
  CHECK(written(std::type_identity<g0>()) == here);

  const tensor x = randn<float, g0>(gen, {3, 7, 8});
  const auto moved = layer.to<g0>();
  const auto reader = infer(moved);
  const tensor at_once = reader(x);
  nn::key_value_cache<float, g0> cache(3, 2, 7, 4);
  const tensor first = reader(x.slice(1, 0, 3), cache), rest = reader(x.slice(1, 3, 7), cache);
  CHECK(compare::distance(concat(1, first, rest), at_once.to<cpu>()) < 1e-5);
}
