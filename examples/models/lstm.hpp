// The LSTM of the benchmark: words, two layers of an LSTM, and scores of the next word. Its state goes on from batch to
// batch.
//
// S. Shi et al., "Benchmarking state-of-the-art deep learning software tools", 2016.
#pragma once

#include "sequences.hpp"

namespace models {

struct word_lstm_settings {
  index_t vocabulary = 10000, features = 256, layers = 2;
};

/// Words (T,N) => scores of the word behind each (T N, vocabulary). The benchmark's batch is 128 sequences of 32 words.
///
///     models::word_lstm<> net({}, gen);
///     optim::sgd optimizer = make_optimizer(net);
///     auto state = net.zero_state(128);
///     variable loss = net.loss(words, next_words, state);  // and state is that after the last words
template <device D = cpu, class Kind = nn::tracked>
class word_lstm : public nn::module<word_lstm<D, Kind>> {
 public:
  using ids = sinter::tensor<std::int64_t, 2, D>;
  using state = nn::lstm_state<sinter::tensor<float, 3, D>>;
  static constexpr double largest_gradient = 5;  ///< to which the norm of all gradients is clipped

  word_lstm() = default;
  word_lstm(const word_lstm_settings& s, sinter::generator& gen)
      : embedding(s.vocabulary, s.features, gen),
        lstm(s.features, s.features, gen, {.layers = s.layers}),
        head(s.features, s.vocabulary, gen) {
    this->for_each_parameter(
        [&gen](const auto&, const auto& p) { p.value() = sinter::uniform<float, D>(gen, -0.1f, 0.1f, p.shape()); });
  }

  state zero_state(index_t sequences) const {
    const sinter::extents<3> shape{{lstm.options().layers, sequences, lstm.hidden_size()}};
    return {sinter::zeros<float, D>(shape), sinter::zeros<float, D>(shape)};
  }
  auto forward(const ids& words) const {
    return sinter::linear(hidden(words, nn::zero_state).output, head.weight, head.bias);
  }
  /// The mean loss of what follows each word; `from` becomes the state after the last.
  auto loss(const ids& words, const ids& next, state& from) const {
    const auto [output, last] = hidden(words, from);
    from = last.detach();
    return sinter::eval(sinter::linear_cross_entropy(output, head.weight, head.bias, next));
  }
  SINTER_MEMBERS(embedding, lstm, head);

  nn::embedding<float, D, Kind> embedding;
  nn::lstm<float, D, Kind> lstm;
  nn::linear<float, D, Kind> head;

 private:
  template <class State>
  auto hidden(const ids& words, const State& from) const {
    return lstm(embedding(words), from);
  }
};

template <device D>
sinter::optim::sgd make_optimizer(const word_lstm<D>& net) {
  return sinter::optim::sgd(net, {.lr = 0.1});
}

}  // namespace models
