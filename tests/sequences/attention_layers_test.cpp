// tests/sequences/attention_layers_test.cpp: multi-head attention, caches of keys and values, and what networks write.
// tests/kernels has attention itself, tests/judge PyTorch's cases.
#include <sinter/sequences.hpp>
#include "distance.hpp"

#include <span>

using namespace sinter;

TEST_CASE("multi-head attention has PyTorch's parameters", "[sequences]") {
  generator gen(1);
  const auto names = [](const auto& module) {
    std::vector<std::string> all;
    for (const auto& p : module.named_parameters()) all.push_back(p.name);
    return all;
  };
  CHECK(names(nn::multihead_attention(6, 2, gen)) ==
        std::vector<std::string>{"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"});
  const nn::multihead_attention other(6, 2, gen, {.bias = false, .key_features = 4, .value_features = 5});
  CHECK(names(other) == std::vector<std::string>{"q_proj_weight", "k_proj_weight", "v_proj_weight", "out_proj.weight"});
  CHECK(other.k_proj_weight.shape() == extents<2>{{6, 4}});
  const tensor q = randn<float>(gen, {3, 2, 6}), k = randn<float>(gen, {5, 2, 4}), v = randn<float>(gen, {5, 2, 5});
  const auto moved = other.to<numa<0>>();
  CHECK(distance(moved(q.to<numa<0>>(), k.to<numa<0>>(), v.to<numa<0>>()).detach().to<cpu>(),
                 other(q, k, v).detach()) == 0);
  CHECK(distance(infer(other)(q, k, v), other(q, k, v).detach()) == 0);
}

TEST_CASE("multi-head attention is the formula of its heads, in every layout", "[sequences]") {
  generator gen(2);
  const nn::multihead_attention attention(6, 2, gen, {.batch_first = true});
  const tensor x = randn<float>(gen, {2, 4, 6});
  const auto part = [&](index_t i) {
    const auto w = attention.in_proj_weight.detach().slice(0, 6 * i, 6 * i + 6);
    return nn::split_heads(eval(linear(x, w)), 2);
  };
  const auto weights = softmax(matmul(part(0), part(1).transpose()) / std::sqrt(3.0f), -1);
  const tensor expected =
      linear(nn::merge_heads(eval(matmul(eval(weights), part(2)))), attention.out_proj_weight.detach());
  CHECK(distance(attention(x).detach(), expected) < 1e-6);
  nn::multihead_attention steps_first(6, 2, gen);
  nn::load_state(steps_first, nn::state(attention));
  CHECK(distance(steps_first(x.transpose(0, 1)).detach().transpose(0, 1), expected) < 1e-6);
  CHECK(distance(attention(x[0]).detach(), expected[0]) < 1e-6);
  CHECK(distance(attention(x, x, x).detach(), expected) < 1e-6);
  const tensor<bool, 2> causal{
      {true, false, false, false}, {true, true, false, false}, {true, true, true, false}, {true, true, true, true}};
  nn::multihead_attention looks_back(6, 2, gen, {.batch_first = true, .causal = true});
  nn::load_state(looks_back, nn::state(attention));
  CHECK(distance(looks_back(x).detach(), attention(x, causal).detach()) < 1e-6);
}

TEST_CASE("keys that are added to each sequence are seen by every query", "[sequences]") {
  generator gen(9);
  const tensor x = randn<float>(gen, {2, 4, 6});
  const nn::multihead_attention looks_back(
      6, 2, gen, {.batch_first = true, .causal = true, .add_bias_kv = true, .add_zero_attn = true});
  nn::multihead_attention all(6, 2, gen, {.batch_first = true, .add_bias_kv = true, .add_zero_attn = true});
  CHECK(looks_back.named_parameters()[2].name == "bias_k");
  CHECK(looks_back.bias_v.shape() == extents<3>{{1, 1, 6}});
  nn::load_state(all, nn::state(looks_back));
  const tensor<bool, 2> causal{
      {true, false, false, false}, {true, true, false, false}, {true, true, true, false}, {true, true, true, true}};
  const tensor expected = looks_back(x).detach();
  CHECK(distance(all(x, causal).detach(), expected) < 1e-6);
  CHECK(distance(all(x, where(causal, 0.0f, -INFINITY)).detach(), expected) < 1e-6);
  // A mask that hides all leaves the two: values of the bias and zeros, weighed by q . bias_k and by 0.
  const tensor<bool, 2> nothing{{false}};
  variable y = all(x, nothing);
  sum(y).backward();
  CHECK(eval(max(abs(all.bias_k.grad()))).item() > 0);
  const auto reader = infer(looks_back);
  nn::key_value_cache cache(2, 2, 4, 3);
  const tensor first = reader(x.slice(1, 0, 2), cache), last = reader(x.slice(1, 2, 4), cache);
  CHECK(distance(concat(1, first, last), expected) < 1e-6);
}

TEST_CASE("weights of attention are dropped in training only", "[sequences]") {
  generator gen(3);
  nn::multihead_attention attention(8, 2, gen, {.dropout = 0.5});
  const tensor x = randn<float>(gen, {6, 2, 8});
  CHECK(distance(attention(x).detach(), attention(x).detach()) > 1e-4);
  attention.eval();
  CHECK(distance(attention(x).detach(), attention(x).detach()) == 0);
}

TEST_CASE("token by token with a cache a network gives what it gives at once", "[sequences]") {
  generator gen(4);
  const nn::multihead_attention attention(8, 2, gen, {.batch_first = true, .causal = true});
  const tensor x = randn<float>(gen, {3, 7, 8});
  const auto reader = infer(attention);
  const tensor expected = reader(x);
  nn::key_value_cache cache(3, 2, 7, 4);
  const tensor first = reader(x.slice(1, 0, 3), cache), second = reader(x.slice(1, 3, 4), cache),
               third = reader(x.slice(1, 4, 7), cache);
  CHECK(distance(concat(1, first, second, third), expected) < 1e-6);
  CHECK(cache.size() == 7);
  CHECK_THROWS_WITH(reader(x.slice(1, 0, 1), cache), Catch::Contains("capacity of 7"));
  CHECK(cache.size() == 7);
  cache.clear();
  CHECK(distance(reader(x.slice(1, 0, 2), cache), expected.slice(1, 0, 2)) < 1e-6);
}

TEST_CASE("a cache that rolls holds the newest tokens, in their order", "[sequences]") {
  const auto numbers = arange<float>(20).reshape({1, 1, 20, 1});
  for (const index_t step : {1, 2, 3}) {
    nn::key_value_cache cache(1, 1, 4, 1, {.rolls = true});
    for (index_t at = 0; at + step <= 20; at += step) {
      cache.append(numbers.slice(2, at, at + step), numbers.slice(2, at, at + step) * 2);
      const index_t end = at + step, n = std::min<index_t>(end, 4);
      CHECK(cache.size() == n);
      CHECK(cache.position() == end);
      CHECK(distance(cache.keys(), numbers.slice(2, end - n, end)) == 0);
      CHECK(distance(cache.values(), numbers.slice(2, end - n, end) * 2) == 0);
    }
  }
  nn::key_value_cache cache(1, 1, 4, 1, {.rolls = true});
  CHECK_THROWS_WITH(cache.append(numbers, numbers), Catch::Contains("20 tokens do not fit"));
  CHECK_THROWS_AS(cache.append(numbers.reshape({1, 2, 10, 1}), numbers), shape_error);
}

TEST_CASE("a layer sees a window of a cache that rolls, however many tokens come at once", "[sequences]") {
  generator gen(7);
  const nn::multihead_attention layer(8, 2, gen, {.batch_first = true});
  const auto reader = infer(layer);
  const auto x = randn<float>(gen, {2, 11, 8});
  const auto in_steps_of = [&](index_t step) {
    nn::key_value_cache cache(2, 2, 4, 4, {.rolls = true});
    std::vector<tensor<float, 3>> all;
    for (index_t at = 0; at < 11; at += step)
      all.push_back(reader(x.slice(1, at, std::min<index_t>(at + step, 11)), cache));
    return eval(concat(1, all));
  };
  const auto expected = in_steps_of(1);
  for (const index_t step : {2, 3, 5, 11}) CHECK(distance(in_steps_of(step), expected) < 1e-6);
}

TEST_CASE("generate refuses what no token follows from", "[sequences]") {
  generator gen(5);
  const auto of = [&](const auto& scores, const nn::generate_options& o = {.max_tokens = 3}) {
    return nn::generate([&](auto) { return scores; }, {2, 1}, o, gen);
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(of(zeros<float>({1, 1, 5})).size() == 3);
  CHECK_THROWS_WITH(of(ones<float>({3, 5})), Catch::Contains("scores have shape (3, 5)"));
  CHECK_THROWS_AS(of(full<float>(extents<0>{}, 1.f)), shape_error);
  CHECK_THROWS_WITH(of(zeros<float>({0})), Catch::Contains("no scores"));
  for (const double temperature : {0., 1.})
    CHECK_THROWS_WITH(of(full<float>({4}, -infinity), {.temperature = temperature}),
                      Catch::Contains("no token can follow"));
  CHECK_THROWS_AS(of(zeros<float>({7}), {.repetition_penalty = INFINITY}), value_error);
  CHECK_THROWS_AS(of(zeros<float>({7}), {.repetition_penalty = 1e39}), value_error);
  CHECK_THROWS_WITH(of(zeros<float>({7}), {.stop = {{3}, {}}}), Catch::Contains("stop sequence is empty"));
}

TEST_CASE("ALiBi is of so many heads as the queries have", "[sequences]") {
  const auto x = zeros<float>({1, 6, 3, 2});
  CHECK_NOTHROW(eval(attention(x, x, x, nn::alibi(6))));
  CHECK_THROWS_WITH(eval(attention(x, x, x, nn::alibi(4))),
                    Catch::Contains("alibi: slopes of 4 heads for queries of 6"));
}

TEST_CASE("tokens are chosen as the options say", "[sequences]") {
  generator gen(5);
  const tensor<float, 1> logits{1, 3, 2, -1, 2.5f};
  const auto next = [&](auto) { return logits; };
  const std::vector<std::int64_t> prompt{0};
  const auto written = [&](const nn::generate_options& o) { return nn::generate(next, prompt, o, gen); };
  CHECK(written({.max_tokens = 3, .temperature = 0}) == std::vector<std::int64_t>{1, 1, 1});
  // A penalty makes each token that was there less likely than those that were not.
  CHECK(written({.max_tokens = 3, .temperature = 0, .repetition_penalty = 10}) == std::vector<std::int64_t>{1, 4, 2});
  const auto negative = [](auto) { return tensor<float, 1>{-1, -2, -3}; };
  CHECK(nn::generate(negative, prompt, {.max_tokens = 1, .temperature = 0, .repetition_penalty = 2.5}, gen) ==
        std::vector<std::int64_t>{1});
  const auto counts = [&](const nn::generate_options& o) {
    std::vector<int> n(5);
    for (const std::int64_t id : written(o)) ++n[static_cast<std::size_t>(id)];
    return n;
  };
  const auto all = counts({.max_tokens = 20000});
  const tensor likely = softmax(logits, 0);
  for (index_t i = 0; i < 5; ++i)
    CHECK(std::abs(all[static_cast<std::size_t>(i)] / 20000.0 - double{likely(i)}) < 0.015);
  const auto two = counts({.max_tokens = 500, .top_k = 2});
  CHECK((two[0] == 0 && two[2] == 0 && two[3] == 0 && two[1] > two[4] && two[4] > 0));
  const auto tied = [](auto) { return tensor<float, 1>{1, 2, 2, 2, 0}; };
  CHECK(nn::generate(tied, prompt, {.max_tokens = 5, .top_k = 1}, gen) == std::vector<std::int64_t>(5, 1));
  const auto nucleus = counts({.max_tokens = 500, .top_p = 0.7});  // 0.47 + 0.28 of tokens 1 and 4
  CHECK((nucleus[0] == 0 && nucleus[2] == 0 && nucleus[3] == 0 && nucleus[4] > 0));
}

TEST_CASE("writing ends at a stop sequence, or where the callback says so", "[sequences]") {
  generator gen(6);
  std::int64_t at = 0;
  std::vector<std::size_t> read;
  const auto next = [&](std::span<const std::int64_t> tokens) {
    read.push_back(tokens.size());
    tensor<float, 1> logits = zeros<float>({5});
    logits(at++ % 5) = 50;
    return logits;
  };
  const std::vector<std::int64_t> prompt{7, 8, 9};
  CHECK(nn::generate(next, prompt, {.temperature = 0, .stop = {{2, 3}}}, gen) == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(read == std::vector<std::size_t>{3, 1, 1, 1});  // the prompt at once, then what was chosen
  at = 0;
  CHECK(nn::generate(next, prompt, {.temperature = 0}, gen, [](std::int64_t id) { return id != 1; }) ==
        std::vector<std::int64_t>{0, 1});
}

TEST_CASE("options and logits that are none are refused", "[sequences]") {
  using Catch::Contains;
  generator gen(7);
  const auto next = [&](auto) { return tensor<float, 1>{1, NAN}; };
  const std::vector<std::int64_t> prompt{0};
  CHECK_THROWS_WITH(nn::generate(next, prompt, {}, gen), Contains("the logit of token 1 is not a number"));
  CHECK_THROWS_WITH(nn::generate(next, prompt, {.temperature = -1}, gen), Contains("temperature"));
  CHECK_THROWS_WITH(nn::generate(next, prompt, {.top_p = 0}, gen), Contains("top_p"));
  CHECK_THROWS_WITH(nn::generate(next, {}, {}, gen), Contains("the prompt is empty"));
  CHECK_THROWS_WITH(nn::multihead_attention(6, 4, gen), Contains("4 heads do not divide 6 features"));
}

TEST_CASE("the page of sequences does what it says of attention", "[sequences]") {
  generator gen(8);
  const tensor x = randn<float>(gen, {2, 9, 32});
  // [docs:attention]
  const nn::multihead_attention layer(32, 4, gen, {.batch_first = true, .causal = true});
  const variable y = layer(x);                                                              // (N,T,32) => (N,T,32)
  const variable q = randn<float>(gen, {2, 4, 9, 8}), k = randn<float>(gen, {2, 2, 9, 8});  // two heads share keys
  const variable z = attention(q, k, k, {.causal = true});
  const variable near =
      attention(q, k, k, [](auto s, const auto& at) { return s - 0.5f * (at.query - at.key); }, {.causal = true});
  // [docs:end]
  CHECK(y.shape() == x.shape());
  CHECK(z.shape() == near.shape());

  const std::vector<std::int64_t> prompt{1, 2};
  const auto scores_of = [](const tensor<float, 3>& h) { return h.select(1, h.extent(1) - 1).slice(1, 0, 8); };
  const auto embedded = [&](std::span<const std::int64_t> tokens) {
    return x[0].slice(0, 0, static_cast<index_t>(tokens.size())).unsqueeze(0);
  };
  // [docs:generate]
  const auto reader = infer(layer);
  nn::key_value_cache cache(1, 4, 128, 8);  // a sequence, 4 heads, 128 tokens, keys of 8
  const auto next = [&](std::span<const std::int64_t> tokens) { return scores_of(reader(embedded(tokens), cache)); };
  const auto written = nn::generate(next, prompt, {.max_tokens = 20, .temperature = 0.8, .top_k = 5}, gen);
  // [docs:end]
  CHECK(written.size() == 20);
  CHECK(cache.size() == 21);  // the last token was not read
}
