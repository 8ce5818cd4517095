// A small GPT: tokens and positions, blocks of attention and of a network with one hidden layer, each behind a layer
// norm, and scores by the table of the tokens. A. Radford et al., "Language models are unsupervised multitask learners"
// (2019). It reads the weights that are published as GPT-2.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "published.hpp"
#include "sequences.hpp"

namespace models {

struct gpt_settings {
  index_t vocabulary = 256, context = 128, layers = 4, heads = 8, features = 256;
  double dropout = 0;
  bool gelu_by_tanh = false;  ///< the approximation that GPT-2 was trained with
};

template <device D = cpu, class Kind = nn::tracked>
struct gpt_mlp : nn::module<gpt_mlp<D, Kind>> {
  nn::linear<float, D, Kind> c_fc, c_proj;
  bool by_tanh = false;
  template <class X>
  auto forward(const X& x) const {
    return c_proj(by_tanh ? X(gelu_tanh(c_fc(x))) : X(gelu(c_fc(x))));
  }
  SINTER_MEMBERS(c_fc, c_proj, by_tanh);
};

template <device D = cpu, class Kind = nn::tracked>
struct gpt_block : nn::module<gpt_block<D, Kind>> {
  nn::layer_norm<float, D, Kind> ln_1;
  nn::multihead_attention<float, D, Kind> attn;
  nn::layer_norm<float, D, Kind> ln_2;
  gpt_mlp<D, Kind> mlp;
  nn::dropout<Kind> drop;

  // x (N,T,features) => the same; `cache` is none, or that of the tokens before.
  template <class X, class... Cache>
  X forward(const X& x, Cache&... cache) const {
    const X h = x + drop(attn(sinter::eval(ln_1(x)), cache...));
    return h + drop(mlp(sinter::eval(ln_2(h))));
  }
  SINTER_MEMBERS(ln_1, attn, ln_2, mlp, drop);
};

template <device D = cpu, class Kind = nn::tracked>
class gpt : public nn::module<gpt<D, Kind>> {
 public:
  using ids = sinter::tensor<std::int64_t, 2, D>;
  using caches = std::vector<nn::key_value_cache<float, D>>;
  using values = nn::parameter<float, 3, D, Kind>;

  gpt() = default;
  gpt(const gpt_settings& s, sinter::generator& gen)
      : wte(s.vocabulary, s.features, gen),
        wpe(s.context, s.features, gen),
        drop(s.dropout, gen),
        blocks(s.layers, [&] { return make_block(s, gen); }),
        ln_f(s.features) {
    // As in GPT-2: normal weights of deviation 0.02, those that end a branch smaller the more branches there are.
    this->for_each_parameter([&](const std::string& name, const auto& p) {
      using P = std::remove_cvref_t<decltype(p)>;
      if constexpr (P::rank == 2) {
        const bool ends = name.ends_with("c_proj.weight") || name.ends_with("out_proj.weight");
        const double deviation = ends ? 0.02 / std::sqrt(2.0 * static_cast<double>(s.layers)) : 0.02;
        p.value() = sinter::normal<float, D>(gen, 0, static_cast<float>(deviation), p.shape());
      } else if (name.ends_with("bias")) {
        p.value() = 0.0f;
      }
    });
  }

  /// The scores of what follows each token: ids (N,T) => (N,T,vocabulary).
  values forward(const ids& tokens) const { return sinter::linear(hidden(tokens), wte.weight); }

  /// The mean loss of what follows each token, `next` (N,T).
  auto loss(const ids& tokens, const ids& next) const {
    return sinter::eval(sinter::linear_cross_entropy(hidden(tokens), wte.weight, next));
  }

  /// Caches for the keys and values of n sequences, one a block, as long as the context.
  caches make_caches(index_t n = 1) const {
    caches all;
    for (const auto& block : blocks)
      all.emplace_back(n, block.attn.heads(), wpe.weight.extent(0), block.attn.features() / block.attn.heads());
    return all;
  }
  /// The scores behind the last of these tokens (N,T), which follow those in the caches: (N,vocabulary).
  auto next(const ids& tokens, caches& kept) const {
    const values x = hidden(tokens, kept.empty() ? 0 : kept[0].position(), kept);
    return sinter::linear(x.select(1, x.extent(1) - 1), wte.weight);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("wte", m.wte...);
    f("wpe", m.wpe...);
    f("drop", m.drop...);
    f("h", m.blocks...);
    f("ln_f", m.ln_f...);
  }

  nn::embedding<float, D, Kind> wte, wpe;
  nn::dropout<Kind> drop;
  nn::module_list<gpt_block<D, Kind>> blocks;
  nn::layer_norm<float, D, Kind> ln_f;

 private:
  static gpt_block<D, Kind> make_block(const gpt_settings& s, sinter::generator& gen) {
    return {{},
            nn::layer_norm<float, D, Kind>(s.features),
            nn::multihead_attention<float, D, Kind>(s.features, s.heads, gen,
                                                    {.dropout = s.dropout, .batch_first = true, .causal = true}),
            nn::layer_norm<float, D, Kind>(s.features),
            {{},
             nn::linear<float, D, Kind>(s.features, 4 * s.features, gen),
             nn::linear<float, D, Kind>(4 * s.features, s.features, gen),
             s.gelu_by_tanh},
            nn::dropout<Kind>(s.dropout, gen)};
  }
  /// `kept` are no caches, or those of the tokens before.
  template <class... Caches>
  values hidden(const ids& tokens, index_t position = 0, Caches&... kept) const {
    const index_t end = position + tokens.extent(1);
    if (end > wpe.weight.extent(0))
      throw sinter::value_error("gpt: token " + std::to_string(end) + " lies behind the context of " +
                                std::to_string(wpe.weight.extent(0)));
    values x = drop(wte(tokens) + wpe.weight.slice(0, position, end));
    for (index_t i = 0; i < blocks.size(); ++i) x = blocks[i](x, kept[static_cast<std::size_t>(i)]...);
    return ln_f(x);
  }
};

/// Published weights of GPT-2 by the names of gpt. "transformer." in front of names is taken off; what they have as
/// attn.c_attn and attn.c_proj is attn.in_proj and attn.out_proj; and matrices are turned, as theirs are (in, out). The
/// table of the scores is that of the tokens, and masks are no weights: both are left out.
inline nn::state_dict gpt_weights(const nn::state_dict& published) {
  nn::state_dict weights;
  for (const nn::named_tensor& entry : published) {
    std::string name = entry.name;
    if (name.starts_with("transformer.")) name.erase(0, 12);
    if (name == "lm_head.weight" || name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias")) continue;
    const bool turned = name.starts_with("h.") && entry.value.shape.size() == 2;
    for (const auto& [theirs, ours] :
         {std::pair{".attn.c_attn.", ".attn.in_proj_"}, {".attn.c_proj.", ".attn.out_proj."}})
      if (const auto at = name.find(theirs); at != std::string::npos)
        name.replace(at, std::string_view(theirs).size(), ours);
    weights.push_back({name, turned ? transposed(entry.value) : entry.value});
  }
  return weights;
}

/// What the shapes of such weights tell of their network: all but the number of heads, which in GPT-2 are of 64
/// features each. Errors: value_error.
inline gpt_settings gpt_settings_of(const nn::state_dict& weights, index_t heads) {
  const auto tokens = matrix_shape(weights, "wte.weight", "GPT-2");
  return {.vocabulary = tokens[0],
          .context = matrix_shape(weights, "wpe.weight", "GPT-2")[0],
          .layers = length_of_list(weights, "h"),
          .heads = heads,
          .features = tokens[1],
          .gelu_by_tanh = true};
}

template <device D>
sinter::optim::adamw make_optimizer(const gpt<D>& net) {
  return sinter::optim::adamw(net, {.lr = 3e-4});
}

}  // namespace models
