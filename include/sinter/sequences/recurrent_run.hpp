// sinter/sequences/recurrent_run.hpp: how layers of each kind run over packed sequences.
#pragma once

#include "sinter/nn/member.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/concat.hpp"
#include "sinter/ops/gru.hpp"
#include "sinter/ops/lstm.hpp"
#include "sinter/ops/matmul.hpp"
#include "sinter/ops/rnn.hpp"
#include "sinter/random/dropout.hpp"

namespace sinter::nn {

// Names in messages.
struct write_dot_layers;
struct write_dot_projection;

/// As in torch.nn.LSTM, GRU and RNN.
struct recurrent_options {
  index_t layers = 1;
  bool bias = true;
  bool batch_first = false;  ///< x and outputs are (N,T,...) in place of (T,N,...); states stay (layers, N, H)
  double dropout = 0;        ///< between layers, in training mode
  bool bidirectional = false;
  index_t projection = 0;  ///< of an LSTM: h has so many elements, 0: as many as the cell
  sinter::nonlinearity nonlinearity = sinter::nonlinearity::tanh;  ///< of a plain recurrent layer
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_layers> num_layers = {};
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_projection> proj_size = {};

  index_t directions() const { return bidirectional ? 2 : 1; }
  bool operator==(const recurrent_options&) const = default;
};
template <>
inline constexpr bool is_setting<recurrent_options> = true;

namespace detail {

/// The parameters of one direction of a layer; those that it lacks are undefined.
template <class Matrix, class Vector>
struct recurrent_weights {
  Matrix ih, hh;
  Vector bias_ih, bias_hh;
  Matrix projection;
};

/// What a direction of a layer gives: the outputs (rows,H), the last states (N,H).
template <class Matrix>
struct recurrent_step {
  Matrix output, h, c;
};
/// The parts of e, the value of a recurrent op that ran over `rows` elements from the states h and, if there is one, c.
template <class M, class E>
recurrent_step<M> parts_of(const E& e, index_t rows, const M& h, const M& c = {}) {
  const auto all = sinter::eval(e);
  sinter::detail::matrices_in parts(all);
  recurrent_step<M> one{parts.next(rows, h.shape()[1]), parts.next(h.shape()[0], h.shape()[1]), {}};
  if (c.defined()) one.c = parts.next(c.shape()[0], c.shape()[1]);
  return one;
}
/// x w^T + b_ih + b_hh, or without biases where there are none.
template <class M, class W>
M with_both_biases(const M& x, const W& w) {
  return w.bias_ih.defined() ? sinter::eval(sinter::linear(x, w.ih) + (w.bias_ih + w.bias_hh))
                             : sinter::eval(sinter::linear(x, w.ih));
}

/// The kinds of recurrence: how many gates a unit has, whether it has a cell, and how a direction of a layer runs.
struct lstm_recurrence {
  static constexpr const char* name = "lstm";
  static constexpr index_t gates = 4;
  static constexpr bool has_cell = true;

  template <class W, class M>
  static recurrent_step<M> run(const W& w, const M& x, const M& h, const M& c, const sequence_steps& steps,
                               const recurrent_options&) {
    const M in = with_both_biases(x, w);
    if (!w.projection.defined()) return parts_of(lstm_steps(steps, in, w.hh, h, c), x.shape()[0], h, c);
    return parts_of(lstm_steps(steps, in, w.hh, h, c, w.projection), x.shape()[0], h, c);
  }
};

struct gru_recurrence {
  static constexpr const char* name = "gru";
  static constexpr index_t gates = 3;
  static constexpr bool has_cell = false;

  template <class W, class M>
  static recurrent_step<M> run(const W& w, const M& x, const M& h, const M&, const sequence_steps& steps,
                               const recurrent_options&) {
    using T = element_of<M>;
    const M in =
        w.bias_ih.defined() ? sinter::eval(sinter::linear(x, w.ih, w.bias_ih)) : sinter::eval(sinter::linear(x, w.ih));
    const M bias = w.bias_hh.defined() ? w.bias_hh.unsqueeze(0)
                                       : sinter::detail::value_as<M>(zeros<T, device_of<M>>({1, w.hh.shape()[0]}));
    return parts_of(gru_steps(steps, in, w.hh, bias, h), x.shape()[0], h);
  }
};

struct rnn_recurrence {
  static constexpr const char* name = "rnn";
  static constexpr index_t gates = 1;
  static constexpr bool has_cell = false;

  template <class W, class M>
  static recurrent_step<M> run(const W& w, const M& x, const M& h, const M&, const sequence_steps& steps,
                               const recurrent_options& options) {
    return parts_of(rnn_steps(steps, with_both_biases(x, w), w.hh, h, options.nonlinearity), x.shape()[0], h);
  }
};

/// What all layers give: the outputs of the last (rows, directions H), and the last states (layers directions, N, H).
template <class Matrix, class States>
struct recurrent_run {
  Matrix output;
  States h, c;
};

/// dropout of rows. Elements of even steps are numbered by sample, as those of other layers are: a part of a batch
/// drops what it drops within the whole.
template <class M>
M dropped_rows(const M& x, const sequence_steps& steps, double p, generator& source) {
  if (!steps.is_even() || x.numel() == 0) return sinter::eval(sinter::dropout(x, p, source));
  const index_t columns = x.shape()[1];
  const auto by_sample = x.reshape({steps.count(), steps.sequences(), columns}).transpose(0, 1);
  return sinter::eval(sinter::dropout(by_sample, p, source)).transpose(0, 1).reshape({x.shape()[0], columns});
}

/// Runs the layers over the rows x from the states h and c, of which c is undefined where the kind has no cell.
template <class Recurrence, class W, class M, class States>
recurrent_run<M, States> run_layers(const std::vector<W>& weights, M x, const sequence_steps& steps, const States& h,
                                    const States& c, const recurrent_options& options, bool drops, generator& source) {
  const index_t directions = options.directions();
  std::vector<M> last_h, last_c;
  for (index_t layer = 0; layer < options.layers; ++layer) {
    std::vector<M> outputs;
    for (index_t d = 0; d < directions; ++d) {
      const index_t at = layer * directions + d;
      M cell;
      if constexpr (Recurrence::has_cell) cell = c.select(0, at);
      auto one = Recurrence::run(weights[static_cast<std::size_t>(at)], x, M(h.select(0, at)), cell,
                                 d == 1 ? steps.reversed() : steps, options);
      outputs.push_back(std::move(one.output));
      last_h.push_back(std::move(one.h));
      if constexpr (Recurrence::has_cell) last_c.push_back(std::move(one.c));
    }
    x = directions == 1 ? std::move(outputs[0]) : concat(1, outputs);
    if (drops && layer + 1 < options.layers) x = dropped_rows(x, steps, options.dropout, source);
  }
  recurrent_run<M, States> all{std::move(x), stack(0, last_h), {}};
  if constexpr (Recurrence::has_cell) all.c = stack(0, last_c);
  return all;
}

}  // namespace detail
}  // namespace sinter::nn
