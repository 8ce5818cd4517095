// tests/judge/rows_sequence.cpp: recurrent layers and cells.
#include <sinter/sequences.hpp>

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

}  // namespace

std::vector<row> sequence_rows() {
  namespace nn = sinter::nn;
  return {
      layers<nn::lstm<>, true>("nn:LSTM"),        layers<nn::gru<>, false>("nn:GRU"),
      layers<nn::rnn<>, false>("nn:RNN"),         cells<nn::lstm_cell<>, true>("nn:LSTMCell"),
      cells<nn::gru_cell<>, false>("nn:GRUCell"), cells<nn::rnn_cell<>, false>("nn:RNNCell"),
  };
}

}  // namespace judge
