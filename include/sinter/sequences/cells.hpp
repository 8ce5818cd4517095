// sinter/sequences/cells.hpp: one step of a recurrent layer: lstm_cell, gru_cell and rnn_cell.
#pragma once

#include "sinter/sequences/recurrent.hpp"

namespace sinter::nn {

namespace detail {

/// What the cells have in common; Self is one of them.
template <class Self, class Recurrence, floating_element T, device D, class Kind>
class recurrent_cell : public module<Self> {
 public:
  using device_type = D;
  using kind = Kind;
  using weights = recurrent_weights<parameter<T, 2, D, Kind>, parameter<T, 1, D, Kind>>;

  recurrent_cell() = default;
  recurrent_cell(index_t inputs, index_t hidden, generator& gen, const recurrent_options& how) : options_(how) {
    check_recurrent(Recurrence::name, inputs, hidden, how, false);
    weights_ = make_recurrent<weights, T, D>(Recurrence::gates, inputs, hidden, how, gen);
  }

  /// x (N,in), or (in) => the state after it, (N,H) or (H), from zeros.
  template <expression X>
    requires(std::is_same_v<element_of<X>, T> && (rank_of<X> == 1 || rank_of<X> == 2))
  auto forward(const X& x) const {
    return forward(x, zero_state);
  }
  /// The same from a state.
  template <expression X, class State>
    requires(std::is_same_v<element_of<X>, T> && (rank_of<X> == 1 || rank_of<X> == 2) &&
             is_state_for<State, Recurrence::has_cell>)
  auto forward(const X& x, const State& state) const {
    constexpr int R = rank_of<X>;
    sinter::detail::check_defined(Recurrence::name, x);
    const matrix rows = as_matrix(x);
    const index_t n = rows.shape()[0], units = weights_.hh.shape()[1];
    if (rows.shape()[1] != weights_.ih.shape()[1])
      sinter::detail::refuse<shape_error>({Recurrence::name, "_cell: x of shape ", x.shape(), "; the cell takes ",
                                           weights_.ih.shape()[1], " features"});
    matrix h, c;
    if constexpr (std::is_same_v<State, zero_state_t>) {
      h = as_matrix(zeros<T, D>({n, units}));
      if constexpr (Recurrence::has_cell) c = h;
    } else if constexpr (Recurrence::has_cell) {
      h = checked_state(state.h, n, units);
      c = checked_state(state.c, n, units);
    } else {
      h = checked_state(state, n, units);
    }
    auto one = Recurrence::run(weights_, rows, h, c, sequence_steps::even(1, n), options_);
    const auto as_given = [](matrix s) {
      if constexpr (R == 1) return s.squeeze(0);
      else return s;
    };
    if constexpr (Recurrence::has_cell) return lstm_state{as_given(std::move(one.h)), as_given(std::move(one.c))};
    else return as_given(std::move(one.h));
  }

  const recurrent_options& options() const { return options_; }
  /// The parameters, to read or replace: `ih` is weight_ih, and so on.
  weights& parameters() { return weights_; }
  const weights& parameters() const { return weights_; }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("options", m.options_...);
    visit_recurrent(f, "", last_of(m...).options(), m.weights_...);
  }

 private:
  using matrix = parameter<T, 2, D, Kind>;
  template <class, class, floating_element, device, class>
  friend class recurrent_cell;

  template <class X>
  static matrix as_matrix(const X& x) {
    const auto value = sinter::detail::value_as<parameter<T, rank_of<X>, D, Kind>>(x);
    if constexpr (rank_of<X> == 1) return value.unsqueeze(0);
    else return value;
  }
  template <class S>
  static matrix checked_state(const S& s, index_t n, index_t units) {
    sinter::detail::check_defined(Recurrence::name, s);
    const matrix all = as_matrix(s);
    if (all.shape()[0] != n || all.shape()[1] != units)
      sinter::detail::refuse<shape_error>(
          {Recurrence::name, "_cell: a state of shape ", s.shape(), " for ", n, " sequences and ", units, " units"});
    return all;
  }

  recurrent_options options_;
  weights weights_;
};

}  // namespace detail

struct cell_options {
  bool bias = true;
};
struct rnn_cell_options {
  bool bias = true;
  sinter::nonlinearity nonlinearity = sinter::nonlinearity::tanh;
};

#define SINTER_CELL(cell, recurrence, settings, ...)                                                                   \
  template <floating_element T = float, device D = cpu, class Kind = tracked>                                          \
  class cell : public detail::recurrent_cell<cell<T, D, Kind>, recurrence, T, D, Kind> {                               \
   public:                                                                                                             \
    template <class To, class K>                                                                                       \
    using rebind = cell<T, To, K>;                                                                                     \
    cell() = default;                                                                                                  \
    cell(index_t inputs, index_t hidden, generator& gen, const settings& how = {})                                     \
        : detail::recurrent_cell<cell, recurrence, T, D, Kind>(inputs, hidden, gen, {.bias = how.bias __VA_ARGS__}) {} \
  };                                                                                                                   \
  cell(index_t, index_t, generator&, const settings& = {}) -> cell<>;                                                  \
  static_assert(is_module<cell<>>);

/// One step of an lstm: x (N,in) and a state lstm_state{h, c} of (N,H) each => the next state. Called with x alone it
/// begins at zeros. As torch.nn.LSTMCell; parameters are named weight_ih, weight_hh, bias_ih, bias_hh.
///
///     nn::lstm_cell cell(64, 256, gen);
///     auto state = cell(x0);
///     state = cell(x1, state);
SINTER_CELL(lstm_cell, detail::lstm_recurrence, cell_options)
/// One step of a gru: x (N,in) and h (N,H) => the next h. As torch.nn.GRUCell.
///
///     auto h = cell(x0);
///     h = cell(x1, h);
SINTER_CELL(gru_cell, detail::gru_recurrence, cell_options)
/// One step of an rnn, likewise. As torch.nn.RNNCell.
SINTER_CELL(rnn_cell, detail::rnn_recurrence, rnn_cell_options, , .nonlinearity = how.nonlinearity)
#undef SINTER_CELL

}  // namespace sinter::nn
