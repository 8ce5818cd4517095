// tests/bench/sequences.cpp: attention, LSTMs, generating and tables, for sequences.py. Usage: sequences THREADS
#include <cstdlib>
#include <memory>
#include <numeric>

#include "../../examples/models/gpt.hpp"
#include "rows.hpp"

using namespace sinter;

namespace {

/// Attention with its gradients: 8 heads of 64.
row attention_row(const char* name, index_t batch, index_t steps, bool causal) {
  generator gen(1);
  const extents<4> shape{{batch, 8, steps, 64}};
  const variable q = randn<float>(gen, shape), k = randn<float>(gen, shape), v = randn<float>(gen, shape);
  const tensor g = randn<float>(gen, shape);
  return {name, 1, 0, [=] {
            variable y = attention(q, k, v, {.causal = causal});
            for (const auto& x : {q, k, v}) x.zero_grad();
            y.backward(g);
          }};
}

/// The LSTM of the benchmark's network, 128 sequences of up to 32 steps, with its gradients.
row lstm_row(const char* name, bool packed) {
  generator gen(1);
  const auto lstm = std::make_shared<nn::lstm<>>(256, 256, gen, nn::recurrent_options{.layers = 2});
  const variable x = randn<float>(gen, {32, 128, 256});
  std::vector<index_t> lengths(128);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = 1 + static_cast<index_t>(i * 37 % 32);
  const tensor g = randn<float>(gen, {32, 128, 256});
  const tensor of_elements = randn<float>(gen, {std::accumulate(lengths.begin(), lengths.end(), index_t{0}), 256});
  return {name, 1, 0, [=] {
            lstm->zero_grad();
            x.zero_grad();
            if (packed) {
              const auto all = pack_padded_sequence(x, lengths, {.enforce_sorted = false});
              (*lstm)(all).data.backward(of_elements);
            } else {
              eval((*lstm)(x)).backward(g);
            }
          }};
}

/// 100 tokens behind a prompt of one, by a GPT with caches, the likeliest each.
row generating_row(const char* name, const models::gpt_settings& s, double bytes) {
  generator gen(1);
  const models::gpt<> network(s, gen);
  const auto reader = std::make_shared<decltype(infer(network))>(infer(network));
  return {name, 1, bytes, [reader] {
            auto caches = reader->make_caches();
            generator unused(1);
            const auto next = [&](std::span<const std::int64_t> tokens) {
              return reader->next(from_data(tokens, {1, static_cast<index_t>(tokens.size())}), caches);
            };
            nn::generate(next, std::vector<std::int64_t>{1}, {.max_tokens = 100, .temperature = 0}, unused);
          }};
}

/// A step of sgd on a table of 100,000 rows of 256, of which up to 4096 are looked up.
row table_row(const char* name, bool sparse) {
  generator gen(1);
  const auto table = std::make_shared<nn::embedding<>>(100'000, 256, gen, nn::embedding_settings{.sparse = sparse});
  const auto optimizer = std::make_shared<optim::sgd>(*table, optim::sgd_options{.lr = 0.01});
  const tensor ids = randint<std::int64_t>(gen, 0, 100'000, {4096});
  const tensor g = randn<float>(gen, {4096, 256});
  return {name, 1, 0, [=] {
            optimizer->zero_grad();
            eval((*table)(ids)).backward(g);
            optimizer->step();
          }};
}

/// All of 200 MB read once, as fast as this machine does.
row reading_row(const char* name) {
  const tensor x = ones<float>({50'000'000});
  return {name, 3, 2e8, [x] {
            if (eval(sum(x)).item() < 0) std::abort();
          }};
}

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  return serve({
      attention_row("attention, causal, T 1024, batch 1", 1, 1024, true),
      attention_row("attention, causal, T 1024, batch 16", 16, 1024, true),
      attention_row("attention, T 1024, batch 1", 1, 1024, false),
      lstm_row("LSTM, 128 x 32", false),
      lstm_row("LSTM, lengths 1 to 32", true),
      generating_row("100 tokens, GPT of 3 M parameters", {}, 0),
      generating_row("100 tokens, GPT of 50 M parameters", {.layers = 16, .heads = 8, .features = 512}, 100 * 2.01e8),
      table_row("step of a table of 100,000 rows", false),
      table_row("step of a row-sparse table of 100,000 rows", true),
      reading_row("reading 200 MB"),
  });
}
