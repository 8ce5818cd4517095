// tests/judge/rows_onnx_sequence.cpp: attention, rotary positions and recurrent layers as ONNX has them.
#include <sinter/sequences.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <tuple>

#include "tables.hpp"

namespace judge {

namespace {

namespace nn = sinter::nn;
constexpr float hidden_score = -std::numeric_limits<float>::infinity();

/// An input as heads (N,H,T,d): ONNX has it so, or as features (N,T,H d).
template <class In>
sinter::variable<float, 4> heads_of(const In& in, const char* name, index_t heads) {
  const int rank = in.rank(name);
  if (rank == 3) return nn::split_heads(in.template x<3>(name), heads);
  auto x = in.template x<4>(name);
  if (rank != 4 || (heads != 0 && heads != x.shape()[1])) throw form_not_there{std::string("heads of ") + name};
  return x;
}

/// A mask over as many keys as there are. ONNX hides those behind its end.
template <class M, class Element>
auto over_keys(const M& mask, index_t keys, Element hidden) {
  sinter::extents<4> more = mask.shape();
  more[3] = keys - more[3];
  return more[3] <= 0 ? sinter::eval(mask) : sinter::eval(concat(3, mask, sinter::full<Element>(more, hidden)));
}

/// The keys and values of an attention, its masks, and what it does.
struct attention_case {
  sinter::variable<float, 4> q, k, v;
  sinter::tensor<bool, 4> seen;      ///< undefined where each query sees all keys
  sinter::variable<float, 4> added;  ///< undefined where nothing is added to the scores
  float softcap = 0;
  sinter::attention_options options;

  index_t steps() const { return q.shape()[2]; }
  index_t keys() const { return k.shape()[2]; }
  template <class M>
  void see_only(const M& more) {
    if (seen.defined()) seen = sinter::eval(seen && more);
    else seen = sinter::eval(more);
  }
  /// Query i sees keys up to i + first[n]. That is the library's order if the last query sees all keys.
  void see_causally(const sinter::tensor<std::int64_t, 4>& first) {
    if (all(first == keys() - steps()).item()) {
      options.causal = true;
      return;
    }
    const auto query = sinter::arange<std::int64_t>(steps()).reshape({1, 1, steps(), 1});
    see_only(sinter::arange<std::int64_t>(keys()).reshape({1, 1, 1, keys()}) <= query + first);
  }
};

template <class In>
attention_case read_attention(const In& in) {
  attention_case a;
  const index_t heads = in.integer("kv_num_heads", 0);
  a.q = heads_of(in, "0", in.integer("q_num_heads", 0));
  a.k = heads_of(in, "1", heads);
  a.v = heads_of(in, "2", heads);
  in.only("softmax_precision", 1, 1);  // float32
  if (in.has("scale")) a.options.scale = in.number("scale", 1);
  a.softcap = static_cast<float>(in.number("softcap", 0));

  index_t past = 0;
  if (in.has("4") || in.has("5")) {
    const auto past_key = in.template x<4>("4"), past_value = in.template x<4>("5");
    past = past_key.shape()[2];
    a.k = concat(2, past_key, a.k);
    a.v = concat(2, past_value, a.v);
  }
  if (in.has("3")) {
    if (in.rank("3") < 2) throw form_not_there{"a mask of a vector"};
    if (in.tensor_of("3").dtype == "bool") a.see_only(over_keys(in.template constant<bool, 4>("3"), a.keys(), false));
    else a.added = over_keys(in.template x<4>("3"), a.keys(), hidden_score);
  }
  auto first = sinter::full<std::int64_t>({1, 1, 1, 1}, past);
  if (in.has("6")) {  // how many keys are no padding
    const auto lengths = in.template constant<std::int64_t, 1>("6").reshape({a.k.shape()[0], 1, 1, 1});
    a.see_only(sinter::arange<std::int64_t>(a.keys()).reshape({1, 1, 1, a.keys()}) < lengths);
    if (!in.has("4")) first = lengths - a.steps();
  }
  if (in.flag("is_causal", false)) a.see_causally(first);
  return a;
}

sinter::variable<float, 4> result_of(const attention_case& a) {
  const auto with = [&](const auto&... mask) -> sinter::variable<float, 4> {
    if (!(a.softcap > 0)) return attention(a.q, a.k, a.v, mask..., a.options);
    const auto capped = [cap = a.softcap](auto s, const auto&) { return cap * sinter::math::tanh(s / cap); };
    return attention(a.q, a.k, a.v, mask..., capped, a.options);
  };
  if (a.added.defined() && a.seen.defined()) return with(sinter::eval(where(a.seen, a.added, hidden_score)));
  if (a.added.defined()) return with(a.added);
  if (a.seen.defined()) return with(a.seen);
  return with();
}

/// The scores or the weights, which the library never stores, by their formulas. Modes: 0 are the scores as they are, 1
/// capped, 2 masked, 3 the weights.
sinter::variable<float, 4> scores_of(attention_case a, index_t mode) {
  if (a.options.causal) {
    a.options.causal = false;
    a.see_only(sinter::arange<std::int64_t>(a.keys()).reshape({1, 1, 1, a.keys()}) <=
               sinter::arange<std::int64_t>(a.steps()).reshape({1, 1, a.steps(), 1}) + (a.keys() - a.steps()));
  }
  const index_t heads = a.q.shape()[1], each = heads / a.k.shape()[1];
  const auto k = index_select(a.k, 1, sinter::arange<std::int64_t>(heads) / each);
  const auto scale =
      static_cast<float>(a.options.scale ? *a.options.scale : 1 / std::sqrt(static_cast<double>(a.q.shape()[3])));
  sinter::variable<float, 4> s = matmul(a.q, k.transpose()) * scale;
  if (mode >= 1 && a.softcap > 0) s = a.softcap * tanh(s / a.softcap);
  if (mode >= 2 && a.added.defined()) s = s + a.added;
  if (mode >= 2 && a.seen.defined()) s = where(a.seen, s, hidden_score);
  if (mode < 3) return s;
  // A query that sees no key has no weights.
  return where(any(s.value() > hidden_score, 3, sinter::keepdim), softmax(s, -1), 0.0F);
}

/// Without functions of scores or weights, which are graphs.
row flex_attention_row() {
  return on<float, double>("onnx:FlexAttention", [](const auto& in) {
    sinter::attention_options options;
    if (in.has("scale")) options.scale = in.number("scale", 1);
    in.give(attention(in.template x<4>("0"), in.template x<4>("1"), in.template x<4>("2"), options));
  });
}

row attention_row() {
  return on<float>("onnx:Attention", [](const auto& in) {
    const attention_case a = read_attention(in);
    const index_t mode = in.integer("qk_matmul_output_mode", 0);
    if (mode < 0 || mode > 3) throw form_not_there{"qk_matmul_output_mode"};
    if (in.wants("Y")) {
      const auto y = result_of(a);
      if (in.rank("0") == 3) in.give(nn::merge_heads(y));
      else in.give(y);
    }
    if (in.wants("present_key")) in.give(a.k);
    if (in.wants("present_value")) in.give(a.v);
    if (in.wants("qk_matmul_output")) in.give(scores_of(a, mode));
  });
}

row rotary_row() {
  return on<float>("onnx:RotaryEmbedding", [](const auto& in) {
    const index_t heads = in.integer("num_heads", 0), turned = in.integer("rotary_embedding_dim", 0);
    const auto x = heads_of(in, "0", heads);
    const index_t steps = x.shape()[2], samples = x.shape()[0];
    const auto angles = [&](const char* name) -> sinter::tensor<float, 3> {
      const int rank = in.rank(name);
      const auto rows = in.template constant<float, 3>(name);  // of each step, or of all positions
      if (rank != (in.has("3") ? 2 : 3)) throw form_not_there{std::string("rank of ") + name};
      if (2 * rows.shape()[2] != (turned > 0 ? turned : x.shape()[3])) throw form_not_there{"rotary_embedding_dim"};
      if (!in.has("3")) return rows;
      const auto positions = in.template constant<std::int64_t, 2>("3");
      return index_select(rows.squeeze(0), 0, positions.reshape({samples * steps}))
          .reshape({samples, steps, rows.shape()[2]});
    };
    const auto y = sinter::eval(rotary(x, angles("1"), angles("2"), {.interleaved = in.flag("interleaved", false)}));
    if (in.rank("0") == 3) in.give(nn::merge_heads(y));
    else in.give(y);
  });
}

/// The gates of each kind of layer, in the library's order, by their numbers in ONNX.
template <class Layer>
constexpr std::array<index_t, 1> gates{0};
template <>
constexpr std::array<index_t, 4> gates<nn::lstm<>>{0, 2, 3, 1};  // i, f, g, o of i, o, f, c
template <>
constexpr std::array<index_t, 3> gates<nn::gru<>>{1, 0, 2};  // r, z, n of z, r, h

/// Gates of an array (gates H,...) in the library's order.
template <class Layer, class W>
W in_order(const W& w, index_t hidden) {
  const auto gate = [&](index_t g) { return w.slice(0, g * hidden, (g + 1) * hidden); };
  return std::apply([&](auto... g) -> W { return concat(0, gate(g)...); }, gates<Layer>);
}

template <class Layer, class In>
Layer read_layer(const In& in, const nn::recurrent_options& options, bool bias_after_reset) {
  const auto w = in.template x<3>("1"), r = in.template x<3>("2");  // (directions, gates H, ...)
  constexpr index_t count = gates<Layer>.size();
  const index_t hidden = r.shape()[2], directions = options.directions();
  if (in.integer("hidden_size", hidden) != hidden) throw form_not_there{"hidden_size"};
  const sinter::extents<3> of_input{{directions, count * hidden, w.shape()[2]}},
      of_state{{directions, count * hidden, hidden}};
  if (!(w.shape() == of_input) || !(r.shape() == of_state)) throw form_not_there{"shapes of weights"};
  sinter::generator gen(1);
  Layer layer(w.shape()[2], hidden, gen, options);
  sinter::variable<float, 2> b;
  if (options.bias) b = in.template x<2>("3");  // those of the input, then those of the state
  for (index_t d = 0; d < directions; ++d) {
    auto& to = layer.layer(0, d == 1);
    to.ih = in_order<Layer>(w.select(0, d), hidden);
    to.hh = in_order<Layer>(r.select(0, d), hidden);
    if (!options.bias) continue;
    const auto row = b.select(0, d);
    to.bias_ih = in_order<Layer>(row.slice(0, 0, count * hidden), hidden);
    to.bias_hh = in_order<Layer>(row.slice(0, count * hidden, 2 * count * hidden), hidden);
    if (bias_after_reset) continue;
    // Behind the reset gate no bias is left: it goes to that of the input.
    const index_t last = (count - 1) * hidden;
    const auto n = sinter::eval(to.bias_hh.slice(0, last, last + hidden));
    to.bias_ih = concat(0, to.bias_ih.slice(0, 0, last), to.bias_ih.slice(0, last, last + hidden) + n);
    to.bias_hh = concat(0, to.bias_hh.slice(0, 0, last), sinter::zeros<float>({hidden}));
  }
  return layer;
}

template <class Layer>
row recurrent(const char* names) {
  return on<float>(names, [](const auto& in) {
    constexpr bool has_cell = gates<Layer>.size() == 4, resets = gates<Layer>.size() == 3;
    for (const char* name : {"activations", "activation_alpha", "activation_beta", "clip"}) in.absent(name);
    if constexpr (has_cell) {
      in.absent("7");  // peepholes
      in.only_flag("input_forget", false);
    }
    nn::recurrent_options options;
    options.bias = in.has("3");
    options.batch_first = in.flag("layout", false);
    const std::string direction = in.text("direction", "forward");
    options.bidirectional = direction == "bidirectional";
    if (!options.bidirectional && direction != "forward") throw form_not_there{"direction " + direction};

    if (in.rank("0") != 3) throw form_not_there{"rank"};
    const auto x = in.template x<3>("0");
    const index_t steps = x.shape()[options.batch_first ? 1 : 0], sequences = x.shape()[options.batch_first ? 0 : 1];
    // The library's gate multiplies the product with the state, ONNX's the state before the product unless it is told
    // otherwise. Of a state of zeros that makes no difference.
    bool bias_after_reset = true;
    if constexpr (resets) {
      bias_after_reset = in.flag("linear_before_reset", false);
      if (!bias_after_reset && (steps != 1 || in.has("5"))) throw form_not_there{"the gate before the product"};
    }
    const Layer layer = read_layer<Layer>(in, options, bias_after_reset);
    const index_t hidden = layer.hidden_size(), directions = options.directions();
    const auto state_from = [&](const char* name) -> sinter::variable<float, 3> {
      if (!in.has(name)) return sinter::zeros<float>({directions, sequences, hidden});
      const auto given = in.template x<3>(name);
      if (options.batch_first) return given.transpose(0, 1);
      return given;
    };
    const auto give = [&](const auto& output, const auto& state) {
      if (in.wants("Y")) {
        if (options.batch_first) in.give(output.reshape({sequences, steps, directions, hidden}));
        else in.give(output.reshape({steps, sequences, directions, hidden}).transpose(1, 2));
      }
      const auto give_state = [&](const char* name, const auto& s) {
        if (!in.wants(name)) return;
        if (options.batch_first) in.give(s.transpose(0, 1));
        else in.give(s);
      };
      if constexpr (has_cell) {
        give_state("Y_h", state.h);
        give_state("Y_c", state.c);
      } else {
        give_state("Y_h", state);
      }
    };
    const auto run = [&](const auto& state) {
      if (!in.has("4")) {
        const auto [output, last] = layer(x, state);
        return give(output, last);
      }
      const auto packed = pack_padded_sequence(x, in.template constant<std::int32_t, 1>("4"),
                                               {.batch_first = options.batch_first, .enforce_sorted = false});
      const auto [output, last] = layer(packed, state);
      give(pad_packed_sequence(output, {.batch_first = options.batch_first, .total_length = steps}).values, last);
    };
    if constexpr (has_cell) run(nn::lstm_state{state_from("5"), state_from("6")});
    else run(state_from("5"));
  });
}

}  // namespace

std::vector<row> onnx_sequence_rows() {
  return {
      attention_row(),
      flex_attention_row(),
      rotary_row(),
      recurrent<nn::lstm<>>("onnx:LSTM"),
      recurrent<nn::gru<>>("onnx:GRU"),
      recurrent<nn::rnn<>>("onnx:RNN"),
      binary<float>("onnx:SwiGLU", OF_XY(x * sigmoid(static_cast<float>(in.number("alpha", 1)) * x) * y)),
  };
}

}  // namespace judge
