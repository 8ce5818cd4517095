// BERT: words, positions and kinds of sentences, then layers of attention and of a network with one hidden layer, each
// behind a layer norm, that see the whole text. J. Devlin et al., "BERT: pre-training of deep bidirectional
// transformers for language understanding" (2019).
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>

#include "published.hpp"
#include "sequences.hpp"

namespace models {

/// Those of bert-base-uncased.
struct bert_settings {
  index_t vocabulary = 30522, context = 512, kinds = 2, layers = 12, heads = 12, features = 768, hidden = 3072;
  double dropout = 0.1, epsilon = 1e-12;
  bool pooler = true;  ///< with the layer that makes one vector of a text, pooled()
};

template <device D = cpu, class Kind = nn::tracked>
struct bert_layer : nn::module<bert_layer<D, Kind>> {
  using linear = nn::linear<float, D, Kind>;
  using norm = nn::layer_norm<float, D, Kind>;
  using values = nn::parameter<float, 3, D, Kind>;
  using words = sinter::tensor<bool, 2, D>;

  bert_layer() = default;
  bert_layer(const bert_settings& s, sinter::generator& gen)
      : heads(s.heads),
        query(s.features, s.features, gen),
        key(s.features, s.features, gen),
        value(s.features, s.features, gen),
        joined(s.features, s.features, gen),
        norm_1(s.features, s.epsilon),
        wide(s.features, s.hidden, gen),
        narrow(s.hidden, s.features, gen),
        norm_2(s.features, s.epsilon),
        drop_weights(s.dropout, gen),
        drop(s.dropout, gen) {}

  // x (N,T,features) => the same; `seen` (N,T) says which of the tokens are words, or is undefined: all are.
  values forward(const values& x, const words& seen) const {
    const values h = norm_1(x + drop(joined(attended(x, seen))));
    return norm_2(h + drop(narrow(gelu(wide(h)))));
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("heads", m.heads...);
    f("attention.self.query", m.query...);
    f("attention.self.key", m.key...);
    f("attention.self.value", m.value...);
    f("attention.self.dropout", m.drop_weights...);
    f("attention.output.dense", m.joined...);
    f("attention.output.LayerNorm", m.norm_1...);
    f("intermediate.dense", m.wide...);
    f("output.dense", m.narrow...);
    f("output.LayerNorm", m.norm_2...);
    f("output.dropout", m.drop...);
  }

  index_t heads = 1;
  linear query, key, value, joined;
  norm norm_1;
  linear wide, narrow;
  norm norm_2;
  nn::dropout<Kind> drop_weights, drop;

 private:
  values attended(const values& x, const words& seen) const {
    const auto split = [&](const linear& part) { return nn::split_heads(values(part(x)), heads); };
    const auto q = split(query), k = split(key), v = split(value);
    const auto join = [](const auto& y) { return values(nn::merge_heads(sinter::eval(y))); };
    const auto attend = [&](const auto&... mask) {
      if constexpr (std::is_same_v<Kind, nn::tracked>)
        if (drop_weights.state.training && drop_weights.p > 0)
          return join(sinter::attention(q, k, v, mask..., {.dropout = drop_weights.p}, drop_weights.source));
      return join(sinter::attention(q, k, v, mask...));
    };
    return seen.defined() ? attend(seen.unsqueeze(1).unsqueeze(1)) : attend();
  }
};

/// The network, by the names of its published weights.
///
///     models::bert<> network({.layers = 2, .heads = 4, .features = 64, .hidden = 256}, gen);
///     variable y = network(tokens, words);  // (N,T) and (N,T), true where there is a word => (N,T,64)
template <device D = cpu, class Kind = nn::tracked>
class bert : public nn::module<bert<D, Kind>> {
 public:
  using ids = sinter::tensor<std::int64_t, 2, D>;
  using words = typename bert_layer<D, Kind>::words;
  using values = nn::parameter<float, 3, D, Kind>;

  bert() = default;
  bert(const bert_settings& s, sinter::generator& gen)
      : word_embeddings(s.vocabulary, s.features, gen),
        position_embeddings(s.context, s.features, gen),
        kind_embeddings(s.kinds, s.features, gen),
        norm(s.features, s.epsilon),
        drop(s.dropout, gen),
        layers(s.layers, [&] { return bert_layer<D, Kind>(s, gen); }) {
    if (s.heads < 1 || s.features % s.heads != 0)
      throw sinter::value_error("bert: " + std::to_string(s.heads) + " heads do not divide " +
                                std::to_string(s.features) + " features");
    if (s.pooler) pooler = nn::linear<float, D, Kind>(s.features, s.features, gen);
    this->for_each_parameter([&](const std::string& name, const auto& p) {
      using P = std::remove_cvref_t<decltype(p)>;
      if constexpr (P::rank == 2) p.value() = sinter::normal<float, D>(gen, 0, 0.02f, p.shape());
      else if (name.ends_with("bias")) p.value() = 0.0f;
    });
  }

  /// A vector for each token (N,T,features). `seen` is true where there is a word and false where there is padding;
  /// `kinds` says to which of two sentences a token belongs, 0 or 1. Without them all are words, and of the first.
  values forward(const ids& tokens, const words& seen = {}, const ids& kinds = {}) const {
    const index_t length = tokens.extent(1);
    if (length > position_embeddings.weight.extent(0))
      throw sinter::value_error("bert: a text of " + std::to_string(length) +
                                " tokens; the network reads no more than " +
                                std::to_string(position_embeddings.weight.extent(0)));
    const values placed = word_embeddings(tokens) + position_embeddings.weight.slice(0, 0, length);
    values x = kinds.defined() ? values(placed + kind_embeddings(kinds))
                               : values(placed + kind_embeddings.weight.select(0, 0));
    x = drop(norm(x));
    for (const auto& layer : layers) x = layer(x, seen);
    return x;
  }
  /// One vector of a text, from that of its first token: (N,T,features) => (N,features).
  auto pooled(const values& x) const {
    if (!has_pooler()) throw sinter::value_error("bert: pooled() of a network without a pooler");
    return sinter::eval(tanh(pooler(x.select(1, 0))));
  }
  bool has_pooler() const { return pooler.weight.defined(); }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("embeddings.word_embeddings", m.word_embeddings...);
    f("embeddings.position_embeddings", m.position_embeddings...);
    f("embeddings.token_type_embeddings", m.kind_embeddings...);
    f("embeddings.LayerNorm", m.norm...);
    f("embeddings.dropout", m.drop...);
    f("encoder.layer", m.layers...);
    if ((m.has_pooler(), ...)) f("pooler.dense", m.pooler...);
  }

  nn::embedding<float, D, Kind> word_embeddings, position_embeddings, kind_embeddings;
  nn::layer_norm<float, D, Kind> norm;
  nn::dropout<Kind> drop;
  nn::module_list<bert_layer<D, Kind>> layers;
  nn::linear<float, D, Kind> pooler;
};

/// The mean of the words' vectors, of length 1: (N,T,features) and (N,T) => (N,features).
template <class X>
auto mean_of_words(const X& x, const sinter::tensor<bool, 2, sinter::device_of<X>>& seen) {
  const auto counts = sinter::cast<float>(seen.unsqueeze(2));
  const auto mean = sinter::eval(sinter::sum(x * counts, 1) / sinter::sum(counts, 1));
  return sinter::eval(mean / sinter::norm(mean, 1, sinter::keepdim));
}

/// Published weights by the names of bert. "bert." in front of names is taken off, and LayerNorm's gamma and beta, as
/// old files have them, are its weight and bias. What only the training of BERT needs ("cls.") is left out, and the
/// numbers of the positions.
inline nn::state_dict bert_weights(const nn::state_dict& published) {
  nn::state_dict weights;
  for (const nn::named_tensor& entry : published) {
    std::string name = entry.name;
    if (name.starts_with("bert.")) name.erase(0, 5);
    if (name.starts_with("cls.") || name.ends_with("position_ids")) continue;
    for (const auto& [old, now] : {std::pair{"LayerNorm.gamma", "weight"}, {"LayerNorm.beta", "bias"}})
      if (name.ends_with(old)) name.replace(name.rfind('.') + 1, std::string::npos, now);
    weights.push_back({name, entry.value});
  }
  return weights;
}

/// What the shapes of weights tell of their network: all but the number of heads. Errors: value_error.
inline bert_settings bert_settings_of(const nn::state_dict& weights, index_t heads) {
  const auto shape = [&](const char* name) { return matrix_shape(weights, name, "BERT"); };
  return {.vocabulary = shape("embeddings.word_embeddings.weight")[0],
          .context = shape("embeddings.position_embeddings.weight")[0],
          .kinds = shape("embeddings.token_type_embeddings.weight")[0],
          .layers = length_of_list(weights, "encoder.layer"),
          .heads = heads,
          .features = shape("embeddings.word_embeddings.weight")[1],
          .hidden = shape("encoder.layer.0.intermediate.dense.weight")[0],
          .pooler = std::any_of(weights.begin(), weights.end(),
                                [](const nn::named_tensor& entry) { return entry.name == "pooler.dense.weight"; })};
}

}  // namespace models
