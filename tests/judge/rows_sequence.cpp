// tests/judge/rows_sequence.cpp: recurrent layers and cells.
#include <sinter/sequences.hpp>

#include <cmath>
#include <limits>

#include "tables.hpp"

namespace judge {

namespace {

sinter::nn::recurrent_options options_of(const call& in) {
  sinter::nn::recurrent_options o;
  o.layers = in.integer("num_layers", 1);
  o.bias = in.flag("bias", true);
  o.batch_first = in.flag("batch_first", false);
  o.bidirectional = in.flag("bidirectional", false);
  o.projection = in.integer("proj_size", 0);
  o.nonlinearity = in.text("nonlinearity", "tanh") == "relu" ? sinter::nonlinearity::relu : sinter::nonlinearity::tanh;
  in.implied("training");
  return o;
}

template <class In, class W>
void set_weights(const In& in, W& w, const std::string& suffix) {
  const auto name = [&](const char* what) { return "self." + (what + suffix); };
  w.ih = in.template x<2>(name("weight_ih").c_str());
  w.hh = in.template x<2>(name("weight_hh").c_str());
  if (w.bias_ih.defined()) {
    w.bias_ih = in.template x<1>(name("bias_ih").c_str());
    w.bias_hh = in.template x<1>(name("bias_hh").c_str());
  }
  if (w.projection.defined()) w.projection = in.template x<2>(name("weight_hr").c_str());
}

template <class In, class State>
void give_output(const In& in, const State& result) {
  if constexpr (requires { result.state.h; }) in.give_together(result.output, result.state.h, result.state.c);
  else in.give_together(result.output, result.state);
}

/// Layers of one kind; HasCell says whether a state is a pair.
template <class Layer, bool HasCell>
row layers(const char* names) {
  return on<float>(names, [](const auto& in) {
    sinter::generator gen(1);
    const auto options = options_of(in);
    Layer layer(in.integer("input_size", 0), in.integer("hidden_size", 0), gen, options);
    for (index_t i = 0; i < options.layers; ++i)
      for (int reverse = 0; reverse < options.directions(); ++reverse)
        set_weights(in, layer.layer(i, reverse == 1), "_l" + std::to_string(i) + (reverse == 1 ? "_reverse" : ""));
    by_rank(in, "0", [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      if constexpr (R == 2 || R == 3) {
        const auto x = in.template x<R>("0");
        if (!in.has("1")) return give_output(in, layer(x, sinter::nn::zero_state));
        if constexpr (HasCell) {
          const auto [h, c] = in.template pair<R>("1");
          give_output(in, layer(x, sinter::nn::lstm_state{h, c}));
        } else {
          give_output(in, layer(x, in.template x<R>("1")));
        }
      } else {
        throw form_not_there{"rank"};
      }
    });
  });
}

template <class Cell, bool HasCell>
row cells(const char* names) {
  return on<float>(names, [](const auto& in) {
    sinter::generator gen(1);
    in.implied("training");
    Cell cell(in.integer("c0", 0), in.integer("c1", 0), gen, {.bias = in.flag("bias", true)});
    set_weights(in, cell.parameters(), "");
    const auto give_state = [&](const auto& state) {
      if constexpr (HasCell) in.give_together(state.h, state.c);
      else in.give_together(state);
    };
    by_rank(in, "0", [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      if constexpr (R == 1 || R == 2) {
        const auto x = in.template x<R>("0");
        if (!in.has("1")) return give_state(cell(x));
        if constexpr (HasCell) {
          const auto [h, c] = in.template pair<R>("1");
          give_state(cell(x, sinter::nn::lstm_state{h, c}));
        } else {
          give_state(cell(x, in.template x<R>("1")));
        }
      } else {
        throw form_not_there{"rank"};
      }
    });
  });
}

/// Which keys a query sees, (N,H,T,S) with 1s where all are alike; PyTorch's masks of bool say the opposite.
template <class In>
sinter::tensor<bool, 4> seen_keys(const In& in, const sinter::extents<4>& scores) {
  sinter::tensor<bool, 4> seen = sinter::full<bool>(sinter::extents<4>{{1, 1, scores[2], scores[3]}}, true);
  if (in.has("attn_mask None")) {
    const int rank = in.rank("attn_mask");
    const auto hidden = in.template constant<bool, 3>("attn_mask");  // (T,S) or (N H,T,S)
    const bool all = rank == 2;
    seen = !hidden.reshape({all ? 1 : scores[0], all ? 1 : scores[1], scores[2], scores[3]});
  }
  if (in.has("key_padding_mask None")) {
    const auto hidden = in.template constant<bool, 2>("key_padding_mask");  // (N,S)
    seen = seen && !hidden.unsqueeze(1).unsqueeze(1);
  }
  return seen;
}

row multihead() {
  return on<float>("nn:MultiheadAttention", [](const auto& in) {
    const bool bias_kv = in.flag("add_bias_kv", false), zero = in.flag("add_zero_attn", false);
    sinter::generator gen(1);
    in.implied("training");
    const bool batch_first = in.flag("batch_first", false), bias = in.flag("bias", true);
    const index_t features = in.integer("embed_dim", 0), heads = in.integer("num_heads", 0);
    sinter::nn::multihead_attention attention(
        features, heads, gen,
        {.bias = bias, .batch_first = batch_first, .add_bias_kv = bias_kv, .add_zero_attn = zero});
    attention.in_proj_weight = in.template x<2>("self.in_proj_weight");
    attention.out_proj_weight = in.template x<2>("self.out_proj.weight");
    if (bias) {
      attention.in_proj_bias = in.template x<1>("self.in_proj_bias");
      attention.out_proj_bias = in.template x<1>("self.out_proj.bias");
    }
    if (bias_kv) {
      attention.bias_k = in.template x<3>("self.bias_k");
      attention.bias_v = in.template x<3>("self.bias_v");
    }
    by_rank(in, "0", [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      if constexpr (R == 2 || R == 3) {
        const auto q = in.template x<R>("0"), k = in.template x<R>("1"), v = in.template x<R>("2");
        // The weights, which the library never stores, by their formula: the mean over the heads.
        const auto batched = [&](const auto& x) {
          if constexpr (R == 2) return x.unsqueeze(0);
          else return batch_first ? x : x.transpose(0, 1);
        };
        const auto head = [&](const auto& x, index_t i) {
          const index_t from = i * features, to = from + features;
          const auto y = eval(sinter::linear(batched(x), attention.in_proj_weight.slice(0, from, to)));
          return sinter::nn::split_heads(bias ? eval(y + attention.in_proj_bias.slice(0, from, to)) : y, heads);
        };
        const auto hq = head(q, 0);
        auto hk = head(k, 1);
        const sinter::extents<4> scores{{hq.shape()[0], heads, hq.shape()[2], hk.shape()[2]}};
        const auto seen = seen_keys(in, scores);
        // PyTorch counts the keys that are added last.
        auto all_seen = seen;
        const auto add = [&](const auto& key) {
          hk = concat(2, hk, eval(key + sinter::zeros<float>({scores[0], heads, 1, features / heads})));
          auto one = seen.shape();
          one[3] = 1;
          all_seen = concat(3, all_seen, sinter::full<bool>(one, true));
        };
        if (bias_kv) add(sinter::nn::split_heads(attention.bias_k, heads));
        if (zero) add(sinter::zeros<float>({1, 1, 1, 1}));
        const float scale = 1 / std::sqrt(static_cast<float>(features / heads));
        const auto products = eval(matmul(hq, hk.transpose()) * scale);
        const auto masked = eval(where(all_seen, products, -std::numeric_limits<float>::infinity()));
        const auto weights = eval(mean(softmax(masked, -1), 1));
        const auto y = attention(q, k, v, seen);
        if constexpr (R == 2) in.give_together(y, weights.squeeze(0));
        else in.give_together(y, weights);
      } else {
        throw form_not_there{"rank"};
      }
    });
  });
}

sinter::nn::transformer_options transformer_options_of(const call& in) {
  sinter::nn::transformer_options o;
  o.feedforward_features = in.integer("dim_feedforward c2", 2048);
  o.dropout = in.number("dropout c3", 0.1);
  o.activation =
      in.text("activation", "relu") == "gelu" ? sinter::nn::feedforward::gelu : sinter::nn::feedforward::relu;
  o.batch_first = in.flag("batch_first", false);
  o.norm_first = in.flag("norm_first", false);
  in.implied("training");
  return o;
}
template <class In, class M>
void set_parameters(const In& in, M& module) {
  module.for_each_parameter([&](const std::string& name, const auto& p) {
    using P = std::remove_cvref_t<decltype(p)>;
    const_cast<P&>(p) = in.template x<P::rank>(("self." + name).c_str());
  });
}
/// Which of `keys` keys each of `queries` queries sees, by masks under these names.
template <class In>
sinter::tensor<bool, 4> seen_by(const In& in, const std::string& mask, const std::string& padding, index_t queries,
                                index_t keys) {
  sinter::tensor<bool, 4> seen = sinter::full<bool>({1, 1, queries, keys}, true);
  if (in.has((mask + " None").c_str()))
    seen = !in.template constant<bool, 2>(mask.c_str()).reshape({1, 1, queries, keys});
  if (in.has((padding + " None").c_str()))
    seen = seen && !in.template constant<bool, 2>(padding.c_str()).unsqueeze(1).unsqueeze(1);
  return seen;
}
/// f(rank) for inputs of one sequence, or of a batch.
template <class In, class F>
void for_sequences(const In& in, const F& f) {
  by_rank(in, "0", [&](auto rank) {
    if constexpr (decltype(rank)::value == 2 || decltype(rank)::value == 3) f(rank);
    else throw form_not_there{"rank"};
  });
}
template <int R, class X>
index_t steps_of(const X& x, bool batch_first) {
  return x.shape()[R == 3 && batch_first ? 1 : 0];
}

row encoder_layer() {
  return on<float>("nn:TransformerEncoderLayer", [](const auto& in) {
    sinter::generator gen(1);
    const auto options = transformer_options_of(in);
    sinter::nn::transformer_encoder_layer layer(in.integer("d_model c0", 0), in.integer("nhead c1", 0), gen, options);
    set_parameters(in, layer);
    for_sequences(in, [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      const auto x = in.template x<R>("0");
      if (!in.has("src_mask None") && !in.has("src_key_padding_mask None")) return in.give(layer(x));
      const index_t steps = steps_of<R>(x, options.batch_first);
      in.give(layer(x, seen_by(in, "src_mask", "src_key_padding_mask", steps, steps)));
    });
  });
}

row decoder_layer() {
  return on<float>("nn:TransformerDecoderLayer", [](const auto& in) {
    sinter::generator gen(1);
    const auto options = transformer_options_of(in);
    sinter::nn::transformer_decoder_layer layer(in.integer("d_model c0", 0), in.integer("nhead c1", 0), gen, options);
    set_parameters(in, layer);
    for_sequences(in, [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      const auto x = in.template x<R>("0"), memory = in.template x<R>("1");
      const index_t steps = steps_of<R>(x, options.batch_first), keys = steps_of<R>(memory, options.batch_first);
      in.give(layer(x, memory, seen_by(in, "tgt_mask", "tgt_key_padding_mask", steps, steps),
                    seen_by(in, "memory_mask", "memory_key_padding_mask", steps, keys)));
    });
  });
}

/// PyTorch's is_causal has query i see keys up to i, whatever their numbers. The weights, which attention() never
/// stores, are a softmax of the scores.
row product_attention() {
  return on<float>("op:nn.functional._scaled_dot_product_attention", [](const auto& in) {
    in.absent("3 attn_mask");
    in.only("dropout_p", 0, 0);
    in.implied("need_attn_weights");
    const bool causal = in.flag("is_causal", false);
    by_rank<3>(in, "0", [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      if constexpr (R <= 4) {
        const auto q = in.template x<R>("0"), k = in.template x<R>("1"), v = in.template x<R>("2");
        const auto seen =
            tril(sinter::full<bool>({q.shape()[R - 2], k.shape()[R - 2]}, true), causal ? 0 : k.shape()[R - 2]);
        const auto scores = matmul(q, k.transpose()) * (1 / std::sqrt(static_cast<float>(q.shape()[R - 1])));
        in.give_together(eval(attention(q, k, v, seen)),
                         eval(softmax(where(seen, scores, -std::numeric_limits<float>::infinity()), -1)));
      }
    });
  });
}

row whole_transformer() {
  return on<float>("nn:Transformer", [](const auto& in) {
    sinter::generator gen(1);
    const auto options = transformer_options_of(in);
    sinter::nn::transformer model(in.integer("d_model", 0), in.integer("nhead", 0), in.integer("num_encoder_layers", 6),
                                  in.integer("num_decoder_layers", 6), gen, options);
    set_parameters(in, model);
    for_sequences(in, [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      const auto source = in.template x<R>("0"), target = in.template x<R>("1");
      const index_t keys = steps_of<R>(source, options.batch_first), steps = steps_of<R>(target, options.batch_first);
      in.give(model(source, target, seen_by(in, "src_mask", "src_key_padding_mask", keys, keys),
                    seen_by(in, "tgt_mask", "tgt_key_padding_mask", steps, steps)));
    });
  });
}

}  // namespace

std::vector<row> sequence_rows() {
  namespace nn = sinter::nn;
  return {
      layers<nn::lstm<>, true>("nn:LSTM"),
      layers<nn::gru<>, false>("nn:GRU"),
      layers<nn::rnn<>, false>("nn:RNN"),
      cells<nn::lstm_cell<>, true>("nn:LSTMCell"),
      cells<nn::gru_cell<>, false>("nn:GRUCell"),
      cells<nn::rnn_cell<>, false>("nn:RNNCell"),
      multihead(),
      encoder_layer(),
      decoder_layer(),
      whole_transformer(),
      product_attention(),
  };
}

}  // namespace judge
