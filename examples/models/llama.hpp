// A Llama: tokens, blocks of attention with rotary positions and grouped queries and of a gated network, each behind an
// RMS norm, and scores of what follows each token. H. Touvron et al., "LLaMA: open and efficient foundation language
// models" (2023). It reads the weights that are published as Llama, and those of Mistral and Qwen2.
#pragma once

#if __has_include(<sinter/io.hpp>)  // part of the single header, with SINTER_WITH_DATA
#include <sinter/io.hpp>
#endif

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "published.hpp"
#include "sequences.hpp"

namespace models {

struct llama_settings {
  index_t vocabulary = 256, context = 128, layers = 4, heads = 8, features = 256, hidden = 688;
  index_t key_heads = 0;      ///< of keys and values, a divisor of those of queries; 0: as many
  index_t head_features = 0;  ///< of one head; 0: features / heads
  double epsilon = 1e-5;
  nn::rotary_position_options positions = {};
  bool biases = false;  ///< of queries, keys and values, as in Qwen2
  bool tied = true;     ///< the table of the scores is that of the tokens
};

}  // namespace models

template <>
inline constexpr bool sinter::nn::is_setting<models::llama_settings> = true;

namespace models {

template <device D = cpu, class Kind = nn::tracked>
struct llama_attention : nn::module<llama_attention<D, Kind>> {
  using linear = nn::linear<float, D, Kind, false>;
  using vector = nn::parameter<float, 1, D, Kind>;
  using values = nn::parameter<float, 3, D, Kind>;
  using split = nn::parameter<float, 4, D, Kind>;
  using turns = nn::rotary_positions<float, D>;
  using cache = nn::key_value_cache<float, D>;

  llama_attention() = default;
  llama_attention(const llama_settings& s, sinter::generator& gen)
      : heads(s.heads),
        key_heads(s.key_heads),
        q_proj(s.features, s.heads * s.head_features, gen, nn::no_bias),
        k_proj(s.features, s.key_heads * s.head_features, gen, nn::no_bias),
        v_proj(s.features, s.key_heads * s.head_features, gen, nn::no_bias),
        o_proj(s.heads * s.head_features, s.features, gen, nn::no_bias) {
    if (!s.biases) return;
    q_bias = sinter::zeros<float, D>({s.heads * s.head_features});
    k_bias = sinter::zeros<float, D>({s.key_heads * s.head_features});
    v_bias = sinter::zeros<float, D>({s.key_heads * s.head_features});
  }

  // x (N,T,features) => the same; `turn` has the positions of its tokens.
  values forward(const values& x, const turns& turn) const {
    return joined(turn(queries(x)), turn(keys(x)), values_of(x));
  }
  // The same behind the tokens in the cache, to which those of x are added.
  values forward(const values& x, const turns& turn, cache& kept) const {
    kept.append(turn(keys(x)), values_of(x));
    return joined(turn(queries(x)), kept.keys(), kept.values());
  }
  bool has_biases() const { return q_bias.defined(); }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("heads", m.heads...);
    f("key_heads", m.key_heads...);
    f("q_proj", m.q_proj...);
    f("k_proj", m.k_proj...);
    f("v_proj", m.v_proj...);
    if ((m.has_biases(), ...)) {
      f("q_proj.bias", m.q_bias...);
      f("k_proj.bias", m.k_bias...);
      f("v_proj.bias", m.v_bias...);
    }
    f("o_proj", m.o_proj...);
  }

  index_t heads = 1, key_heads = 1;
  linear q_proj, k_proj, v_proj, o_proj;
  vector q_bias, k_bias, v_bias;

 private:
  static split heads_of(const values& x, const linear& part, const vector& bias, index_t n) {
    return nn::split_heads(bias.defined() ? values(sinter::linear(x, part.weight, bias)) : values(part(x)), n);
  }
  split queries(const values& x) const { return heads_of(x, q_proj, q_bias, heads); }
  split keys(const values& x) const { return heads_of(x, k_proj, k_bias, key_heads); }
  split values_of(const values& x) const { return heads_of(x, v_proj, v_bias, key_heads); }
  template <class Q, class K, class V>
  values joined(const Q& q, const K& k, const V& v) const {
    const auto y = sinter::eval(sinter::attention(q, k, v, {.causal = true}));
    return o_proj(values(nn::merge_heads(y)));
  }
};

template <device D = cpu, class Kind = nn::tracked>
struct llama_mlp : nn::module<llama_mlp<D, Kind>> {
  nn::linear<float, D, Kind, false> gate_proj, up_proj, down_proj;
  template <class X>
  auto forward(const X& x) const {
    return down_proj(silu(gate_proj(x)) * up_proj(x));
  }
  SINTER_MEMBERS(gate_proj, up_proj, down_proj);
};

template <device D = cpu, class Kind = nn::tracked>
struct llama_block : nn::module<llama_block<D, Kind>> {
  nn::rms_norm<float, D, Kind> input_layernorm;
  llama_attention<D, Kind> self_attn;
  nn::rms_norm<float, D, Kind> post_attention_layernorm;
  llama_mlp<D, Kind> mlp;

  // x (N,T,features) => the same; `cache` is none, or that of the tokens before.
  template <class X, class... Cache>
  X forward(const X& x, const nn::rotary_positions<float, D>& turn, Cache&... cache) const {
    const X h = x + self_attn(X(input_layernorm(x)), turn, cache...);
    return h + mlp(X(post_attention_layernorm(h)));
  }
  SINTER_MEMBERS(input_layernorm, self_attn, post_attention_layernorm, mlp);
};

/// The network, by the names of its published weights.
///
///     models::llama<> network({.layers = 2, .heads = 8, .features = 64, .hidden = 172, .key_heads = 2}, gen);
///     variable y = network(tokens);  // (N,T) => (N,T,256)
///
/// With published weights:
///
///     const nn::state_dict weights = models::llama_weights(read_safetensors(folder + "/model.safetensors"));
///     const auto settings = models::read_llama_settings(folder + "/config.json");
///     models::llama<> network(models::llama_settings_of(weights, settings), gen);
///     nn::load_state(network, weights, {.convert = true});
template <device D = cpu, class Kind = nn::tracked>
class llama : public nn::module<llama<D, Kind>> {
 public:
  using ids = sinter::tensor<std::int64_t, 2, D>;
  using caches = std::vector<nn::key_value_cache<float, D>>;
  using values = nn::parameter<float, 3, D, Kind>;

  llama() = default;
  /// Errors: value_error for heads that do not fit.
  llama(const llama_settings& given, sinter::generator& gen)
      : settings(checked(given)),
        embed_tokens(settings.vocabulary, settings.features, gen),
        layers(settings.layers, [&] { return make_block(settings, gen); }),
        norm(settings.features, settings.epsilon) {
    if (!settings.tied) lm_head = {settings.features, settings.vocabulary, gen, nn::no_bias};
    this->for_each_parameter([&](const std::string&, const auto& p) {
      using P = std::remove_cvref_t<decltype(p)>;
      if constexpr (P::rank == 2) p.value() = sinter::normal<float, D>(gen, 0, 0.02f, p.shape());
    });
  }

  /// The scores of what follows each token: ids (N,T) => (N,T,vocabulary).
  values forward(const ids& tokens) const { return scores(hidden(tokens, 0)); }

  /// Caches for the keys and values of n sequences, one a block, of so many tokens; 0: as many as the context has.
  caches make_caches(index_t n = 1, index_t tokens = 0) const {
    caches all;
    for (index_t i = 0; i < layers.size(); ++i)
      all.emplace_back(n, settings.key_heads, tokens > 0 ? tokens : settings.context, settings.head_features);
    return all;
  }
  /// The scores behind the last of these tokens (N,T), which follow those in the caches: (N,vocabulary).
  auto next(const ids& tokens, caches& kept) const {
    const values x = hidden(tokens, kept.empty() ? 0 : kept[0].position(), kept);
    return scores(x.select(1, x.extent(1) - 1));
  }
  bool has_head() const { return lm_head.weight.defined(); }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("settings", m.settings...);
    f("model.embed_tokens", m.embed_tokens...);
    f("model.layers", m.layers...);
    f("model.norm", m.norm...);
    if ((m.has_head(), ...)) f("lm_head", m.lm_head...);
  }

  llama_settings settings;
  nn::embedding<float, D, Kind> embed_tokens;
  nn::module_list<llama_block<D, Kind>> layers;
  nn::rms_norm<float, D, Kind> norm;
  nn::linear<float, D, Kind, false> lm_head;

 private:
  static llama_settings checked(llama_settings s) {
    if (s.heads > 0 && s.head_features == 0 && s.features % s.heads == 0) s.head_features = s.features / s.heads;
    if (s.key_heads == 0) s.key_heads = s.heads;
    if (s.heads < 1 || s.key_heads < 1 || s.heads % s.key_heads != 0 || s.head_features < 1 || s.head_features % 2 != 0)
      throw sinter::value_error(
          "llama: " + std::to_string(s.heads) + " heads and " + std::to_string(s.key_heads) + " of keys, of " +
          std::to_string(s.head_features) + " elements each, in " + std::to_string(s.features) +
          " features; heads divide features or are of a given even size, and those of keys divide heads");
    return s;
  }
  static llama_block<D, Kind> make_block(const llama_settings& s, sinter::generator& gen) {
    return {{},
            nn::rms_norm<float, D, Kind>(s.features, s.epsilon),
            llama_attention<D, Kind>(s, gen),
            nn::rms_norm<float, D, Kind>(s.features, s.epsilon),
            {{},
             {s.features, s.hidden, gen, nn::no_bias},
             {s.features, s.hidden, gen, nn::no_bias},
             {s.hidden, s.features, gen, nn::no_bias}}};
  }
  template <class... Caches>
  values hidden(const ids& tokens, index_t position, Caches&... kept) const {
    const index_t steps = tokens.extent(1);
    if (position + steps > settings.context)
      throw sinter::value_error("llama: token " + std::to_string(position + steps) + " lies behind the context of " +
                                std::to_string(settings.context));
    const nn::rotary_positions<float, D> turn(settings.head_features, position, steps, settings.positions);
    values x = embed_tokens(tokens);
    for (index_t i = 0; i < layers.size(); ++i) x = layers[i](x, turn, kept[static_cast<std::size_t>(i)]...);
    return norm(x);
  }
  template <class X>
  auto scores(const X& x) const {
    return sinter::eval(sinter::linear(x, has_head() ? lm_head.weight : embed_tokens.weight));
  }
};

/// Published weights by the names of llama. Those of a network without its scores get "model." in front; numbers that
/// old files hold for the positions are left out.
inline nn::state_dict llama_weights(const nn::state_dict& published) {
  nn::state_dict weights;
  for (const nn::named_tensor& entry : published) {
    if (entry.name.ends_with("rotary_emb.inv_freq")) continue;
    const bool whole = entry.name.starts_with("model.") || entry.name.starts_with("lm_head.");
    weights.push_back({whole ? entry.name : "model." + entry.name, entry.value});
  }
  return weights;
}

/// The settings that a config.json beside published weights tells. A context is no longer than a window of Mistral,
/// within which every token sees all before it. Errors: io_error for a file that is none, or tells of another network.
inline llama_settings read_llama_settings(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw sinter::io_error(path + ": cannot be read");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  sinter::detail::json_reader json(text, path);
  json.skip();
  json.finish();

  const auto number = [&](const std::string& from, const char* name, auto otherwise) {
    const std::string digits = json_member(from, name);
    auto value = otherwise;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (!digits.empty() && (error != std::errc() || end != digits.data() + digits.size()))
      throw sinter::io_error(path + ": " + name + " is " + digits);
    return value;
  };
  const auto needed = [&](const std::string& from, const char* name, auto zero) {
    if (json_member(from, name).empty()) throw sinter::io_error(path + ": tells no " + name);
    return number(from, name, zero);
  };
  const auto one_of = [&](const std::string& from, const char* name, const std::vector<std::string>& known) {
    const std::string word = json_member(from, name);
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw sinter::io_error(path + ": a network with " + name + " " + (word.empty() ? "that is not told" : word) +
                             "; llama computes those with " + known[0]);
    return word;
  };
  one_of(text, "model_type", {"\"llama\"", "\"mistral\"", "\"qwen2\""});
  one_of(text, "hidden_act", {"\"silu\""});

  llama_settings s;
  s.vocabulary = needed(text, "vocab_size", index_t{0});
  s.layers = needed(text, "num_hidden_layers", index_t{0});
  s.heads = needed(text, "num_attention_heads", index_t{0});
  s.key_heads = number(text, "num_key_value_heads", s.heads);
  s.features = needed(text, "hidden_size", index_t{0});
  s.head_features = number(text, "head_dim", index_t{0});
  s.hidden = needed(text, "intermediate_size", index_t{0});
  s.context = needed(text, "max_position_embeddings", index_t{0});
  if (json_member(text, "use_sliding_window") != "false")
    s.context = std::min(s.context, number(text, "sliding_window", s.context));
  s.epsilon = number(text, "rms_norm_eps", 1e-6);
  s.biases = json_member(text, "model_type") == "\"qwen2\"";
  s.tied = json_member(text, "tie_word_embeddings") == "true";

  s.positions.base = number(text, "rope_theta", 10000.0);
  std::string stretched = json_member(text, "rope_parameters");
  if (stretched.empty()) stretched = json_member(text, "rope_scaling");
  if (stretched.empty()) return s;
  const char* const kind = json_member(stretched, "rope_type").empty() ? "type" : "rope_type";
  const std::string word = one_of(stretched, kind, {"\"llama3\"", "\"linear\"", "\"default\""});
  const auto told = [&](const char* name) { return needed(stretched, name, 0.0); };
  if (word == "\"linear\"") s.positions.factor = told("factor");
  if (word == "\"llama3\"")
    s.positions.llama3 = nn::llama3_scaling{told("factor"), told("low_freq_factor"), told("high_freq_factor"),
                                            told("original_max_position_embeddings")};
  return s;
}

/// These settings with all that the shapes of weights tell. Errors: value_error where the heads do not fit them.
inline llama_settings llama_settings_of(const nn::state_dict& weights, llama_settings s) {
  const auto rows = [&](const char* name) { return matrix_shape(weights, name, "Llama")[0]; };
  const auto has = [&](std::string_view name) {
    return std::any_of(weights.begin(), weights.end(), [&](const auto& entry) { return entry.name == name; });
  };
  const index_t queries = rows("model.layers.0.self_attn.q_proj.weight"),
                keys = rows("model.layers.0.self_attn.k_proj.weight");
  const index_t size = s.heads > 0 ? queries / s.heads : 0;
  if (size < 1 || queries % s.heads != 0 || keys % size != 0 || (s.key_heads > 0 && s.key_heads * size != keys))
    throw sinter::value_error("llama: " + std::to_string(s.heads) + " heads and " + std::to_string(s.key_heads) +
                              " of keys do not fit weights of " + std::to_string(queries) + " and " +
                              std::to_string(keys) + " rows");
  s.head_features = size;
  s.key_heads = keys / size;
  s.vocabulary = rows("model.embed_tokens.weight");
  s.features = matrix_shape(weights, "model.embed_tokens.weight", "Llama")[1];
  s.hidden = rows("model.layers.0.mlp.gate_proj.weight");
  s.layers = length_of_list(weights, "model.layers");
  s.biases = has("model.layers.0.self_attn.q_proj.bias");
  s.tied = !has("lm_head.weight");
  return s;
}

}  // namespace models
