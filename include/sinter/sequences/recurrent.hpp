// sinter/sequences/recurrent.hpp: recurrent layers: lstm, gru and rnn.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sinter/nn/init.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/sequences/packed_sequence.hpp"
#include "sinter/sequences/recurrent_run.hpp"
#include "sinter/sequences/state.hpp"

namespace sinter::nn {

namespace detail {

SINTER_SHARED_COLD void check_recurrent(const char* name, index_t inputs, index_t hidden,
                                        const recurrent_options& options, bool projects);

/// f(name, weights of m...) for every parameter of a layer, by PyTorch's names; `suffix` is "_l0_reverse" or the like.
template <class F, class... W>
void visit_recurrent(const F& f, const std::string& suffix, const recurrent_options& options, W&... w) {
  f("weight_ih" + suffix, w.ih...);
  f("weight_hh" + suffix, w.hh...);
  if (options.bias) {
    f("bias_ih" + suffix, w.bias_ih...);
    f("bias_hh" + suffix, w.bias_hh...);
  }
  if (options.projection > 0) f("weight_hr" + suffix, w.projection...);
}

/// The parameters of a direction of a layer, uniform in +-1 / sqrt(hidden).
template <class W, class T, device D>
W make_recurrent(index_t gates, index_t inputs, index_t hidden, const recurrent_options& options, generator& gen) {
  const index_t width = options.projection > 0 ? options.projection : hidden;
  const T bound = hidden > 0 ? static_cast<T>(1 / std::sqrt(static_cast<double>(hidden))) : T(0);
  const auto drawn = [&](const auto& shape) { return uniform<T, D>(gen, -bound, bound, shape); };
  W w;
  w.ih = drawn(extents<2>{{gates * hidden, inputs}});
  w.hh = drawn(extents<2>{{gates * hidden, width}});
  if (options.bias) {
    w.bias_ih = drawn(extents<1>{{gates * hidden}});
    w.bias_hh = drawn(extents<1>{{gates * hidden}});
  }
  if (options.projection > 0) w.projection = drawn(extents<2>{{width, hidden}});
  return w;
}

/// What the recurrent layers have in common; Self is one of them.
template <class Self, class Recurrence, floating_element T, device D, class Kind>
class recurrent_layers : public module<Self> {
 public:
  using device_type = D;
  using kind = Kind;
  using weights = recurrent_weights<parameter<T, 2, D, Kind>, parameter<T, 1, D, Kind>>;
  using matrix = parameter<T, 2, D, Kind>;
  using states = parameter<T, 3, D, Kind>;

  recurrent_layers() = default;
  recurrent_layers(index_t inputs, index_t hidden, generator& gen, const recurrent_options& how)
      : options_(how), inputs_(inputs), hidden_(hidden), source_(how.dropout > 0 ? gen.split() : generator()) {
    check_recurrent(Recurrence::name, inputs, hidden, how, Recurrence::has_cell);
    for (index_t layer = 0; layer < how.layers; ++layer)
      for (index_t d = 0; d < how.directions(); ++d)
        weights_.push_back(make_recurrent<weights, T, D>(
            Recurrence::gates, layer == 0 ? inputs : how.directions() * width(), hidden, how, gen));
  }

  const recurrent_options& options() const { return options_; }
  index_t input_size() const { return inputs_; }
  index_t hidden_size() const { return hidden_; }
  /// The elements of h of one direction: hidden_size(), or the projection.
  index_t width() const { return options_.projection > 0 ? options_.projection : hidden_; }
  /// The parameters of a layer, to read or replace: `ih` is weight_ih_l0, and so on. Errors: index_error.
  ///
  ///     lstm.layer(0).bias_ih.value().slice(0, H, 2 * H) = 1.0f;  // begins by keeping the cell
  weights& layer(index_t number, bool reverse = false) { return weights_[place_of(number, reverse)]; }
  const weights& layer(index_t number, bool reverse = false) const { return weights_[place_of(number, reverse)]; }

  using module<Self>::operator();
  template <class X>
  static constexpr bool is_own_input = is_packed_sequence<X>;
  /// Over packed sequences, alone or with a state; the output is packed as well.
  template <class X, class... State>
    requires(is_packed_sequence<sinter::detail::bare<X>> && sizeof...(State) <= 1)
  auto operator()(X&& x, const State&... state) const {
    if constexpr (sizeof...(State) == 0) return packed_result(x, run_packed(x, zero_state)).output;
    else return packed_result(x, run_packed(x, state...));
  }

  /// x (T,N,in), with batch_first (N,T,in), or one sequence (T,in) => the outputs, likewise with directions x width()
  /// in place of in.
  template <expression X>
    requires(std::is_same_v<element_of<X>, T> && (rank_of<X> == 2 || rank_of<X> == 3))
  auto forward(const X& x) const {
    return run(x, zero_state).output;
  }
  /// The same from a state, or zero_state; and the state after the last elements.
  template <expression X, class State>
    requires(std::is_same_v<element_of<X>, T> && (rank_of<X> == 2 || rank_of<X> == 3) &&
             is_state_for<State, Recurrence::has_cell>)
  auto forward(const X& x, const State& state) const {
    return run(x, state);
  }

  /// Of several layers, a first that can be written to is one to be filled: it gets the options of the others.
  template <class F, class First, class... Rest>
  static void visit(F&& f, First& first, Rest&... rest) {
    f("options", first.options_, rest.options_...);
    f("input_size", first.inputs_, rest.inputs_...);
    f("hidden_size", first.hidden_, rest.hidden_...);
    f("mode", first.mode_, rest.mode_...);
    f("source", first.source_, rest.source_...);
    if constexpr (!std::is_const_v<First>) (first.weights_.resize(rest.weights_.size()), ...);
    const auto& options = detail::last_of(first, rest...).options();
    for (std::size_t i = 0; i < first.weights_.size(); ++i) {
      const auto layer = static_cast<index_t>(i) / options.directions();
      const bool reverse = static_cast<index_t>(i) % options.directions() == 1;
      visit_recurrent(f, "_l" + std::to_string(layer) + (reverse ? "_reverse" : ""), options, first.weights_[i],
                      rest.weights_[i]...);
    }
  }

 private:
  template <class, class, floating_element, device, class>
  friend class recurrent_layers;

  std::size_t place_of(index_t number, bool reverse) const {
    if (number < 0 || number >= options_.layers || (reverse && !options_.bidirectional))
      sinter::detail::refuse<index_error>({Recurrence::name, ": there is no layer ", number,
                                           reverse ? " in reverse" : "", " among ", options_.layers,
                                           options_.bidirectional ? " in both directions" : ""});
    return static_cast<std::size_t>(number * options_.directions() + int{reverse});
  }
  index_t state_count() const { return options_.layers * options_.directions(); }

  /// The part h or c of a state of `sequences` sequences in the order of the rows, (count, N, units).
  template <class S>
  states checked_state(const S& s, index_t sequences, index_t units, const std::vector<index_t>& order) const {
    if constexpr (std::is_same_v<S, zero_state_t>) {
      return sinter::detail::value_as<states>(zeros<T, D>({state_count(), sequences, units}));
    } else {
      sinter::detail::check_defined(Recurrence::name, s);
      states all = [&] {
        if constexpr (rank_of<S> == 2) return sinter::detail::value_as<matrix>(s).unsqueeze(1);
        else return sinter::detail::value_as<states>(s);
      }();
      const extents<3> wanted{{state_count(), sequences, units}};
      if (!(all.shape() == wanted))
        sinter::detail::refuse<shape_error>({Recurrence::name, ": a state of shape ", s.shape(), " for ", sequences,
                                             " sequences; it must be ", wanted,
                                             ", (layers x directions, sequences, units), whatever batch_first is"});
      if (!order.empty()) all = index_select(all, 1, sinter::detail::index_on<D>(order));
      return all;
    }
  }

  template <class State>
  recurrent_run<matrix, states> run_rows(const matrix& rows, const sequence_steps& steps, index_t sequences,
                                         const std::vector<index_t>& order, const State& state) const {
    if (rows.shape()[1] != inputs_)
      sinter::detail::refuse<shape_error>(
          {Recurrence::name, ": elements of ", rows.shape()[1], " features; the layer takes ", inputs_});
    states h, c;
    if constexpr (Recurrence::has_cell && !std::is_same_v<State, zero_state_t>) {
      h = checked_state(state.h, sequences, width(), order);
      c = checked_state(state.c, sequences, hidden_, order);
    } else {
      h = checked_state(state, sequences, width(), order);
      if constexpr (Recurrence::has_cell) c = checked_state(zero_state, sequences, hidden_, order);
    }
    const bool drops = std::is_same_v<Kind, tracked> && mode_.training && options_.dropout > 0;
    return run_layers<Recurrence>(weights_, rows, steps, h, c, options_, drops, source_);
  }

  template <int R>
  auto state_of(states h, states c) const {
    const auto as_given = [](states s) {
      if constexpr (R == 2) return s.squeeze(1);
      else return s;
    };
    if constexpr (Recurrence::has_cell) return lstm_state{as_given(std::move(h)), as_given(std::move(c))};
    else return as_given(std::move(h));
  }

  template <class X, class State>
  auto run(const X& x, const State& state) const {
    constexpr int R = rank_of<X>;
    sinter::detail::check_defined(Recurrence::name, x);
    const auto in = sinter::detail::value_as<parameter<T, R, D, Kind>>(x);
    [[maybe_unused]] const bool swaps = R == 3 && options_.batch_first;
    const auto in_steps = [&] {
      if constexpr (R == 2) return in;
      else return swaps ? in.transpose(0, 1) : in;
    }();
    const index_t steps = in_steps.shape()[0], sequences = R == 2 ? 1 : in_steps.shape()[1];
    const index_t features = in_steps.shape()[R - 1];
    auto all = run_rows(in_steps.reshape({steps * sequences, features}), sequence_steps::even(steps, sequences),
                        sequences, {}, state);
    auto output = [&] {
      const index_t out = all.output.shape()[1];
      if constexpr (R == 2) {
        return all.output;
      } else {
        auto y = all.output.reshape({steps, sequences, out});
        return swaps ? y.transpose(0, 1) : y;
      }
    }();
    auto last = state_of<R>(std::move(all.h), std::move(all.c));
    return recurrent_result<decltype(output), decltype(last)>{std::move(output), std::move(last)};
  }

  template <class Rows, class State>
  recurrent_run<matrix, states> run_packed(const packed_sequence<Rows>& x, const State& state) const {
    return run_rows(sinter::detail::value_as<matrix>(x.data), x.steps, x.sequences, x.order, state);
  }
  template <class Rows>
  auto packed_result(const packed_sequence<Rows>& x, recurrent_run<matrix, states> all) const {
    if (!x.order.empty()) {
      const auto places = sinter::detail::index_on<D>(x.places());
      all.h = index_select(all.h, 1, places);
      if constexpr (Recurrence::has_cell) all.c = index_select(all.c, 1, places);
    }
    auto output = x.with(std::move(all.output));
    auto last = state_of<3>(std::move(all.h), std::move(all.c));
    return recurrent_result<decltype(output), decltype(last)>{std::move(output), std::move(last)};
  }

  recurrent_options options_;
  index_t inputs_ = 0, hidden_ = 0;
  mode mode_;
  mutable generator source_;
  std::vector<weights> weights_;
};

#if SINTER_DEFINES
SINTER_SHARED_COLD void check_recurrent(const char* name, index_t inputs, index_t hidden,
                                        const recurrent_options& options, bool projects) {
  using sinter::detail::refuse;
  if (inputs < 0 || hidden < 1)
    refuse<value_error>({name, ": ", inputs, " inputs and ", hidden, " hidden units; there must be 1 unit at least"});
  if (options.layers < 1) refuse<value_error>({name, ": ", options.layers, " layers; there must be 1 at least"});
  if (!(options.dropout >= 0 && options.dropout <= 1))
    refuse<value_error>({name, ": the probability of dropout must be in [0, 1], not ", options.dropout});
  if (options.projection < 0 || options.projection >= hidden)
    refuse<value_error>({name, ": a projection to ", options.projection, " of ", hidden,
                         " hidden units; it must be smaller than they, or 0 for none"});
  if (options.projection > 0 && !projects) refuse<value_error>({name, ": only an lstm has a projection"});
  if (options.nonlinearity != nonlinearity::tanh && std::string_view(name) != "rnn")
    refuse<value_error>({name, ": only an rnn has a choice of nonlinearity"});
}
#endif  // SINTER_DEFINES

}  // namespace detail

// Names in messages.
struct number_of_layers_that_is_no_option;
struct write_dot_layers_in_braces_behind_the_generator;
#define SINTER_RECURRENT(layer, recurrence)                                                        \
  template <floating_element T = float, device D = cpu, class Kind = tracked>                      \
  class layer : public detail::recurrent_layers<layer<T, D, Kind>, recurrence, T, D, Kind> {       \
   public:                                                                                         \
    template <class To, class K>                                                                   \
    using rebind = layer<T, To, K>;                                                                \
    layer() = default;                                                                             \
    layer(index_t inputs, index_t hidden, generator& gen, const recurrent_options& options = {})   \
        : detail::recurrent_layers<layer, recurrence, T, D, Kind>(inputs, hidden, gen, options) {} \
    template <class Problem = number_of_layers_that_is_no_option,                                  \
              class Fix = write_dot_layers_in_braces_behind_the_generator>                         \
    layer(index_t, index_t, index_t, generator&) = delete;                                         \
  };                                                                                               \
  layer(index_t, index_t, generator&, const recurrent_options& = {}) -> layer<>;                   \
  static_assert(is_module<layer<>>);

/// Long short-term memory: gates i, f, g, o = sigmoid, sigmoid, tanh, sigmoid of W_ih x + b_ih + W_hh h + b_hh, then
/// c' = f c + i g, h' = o tanh(c'), with a projection h' = W_hr (o tanh(c')). (T,N,in) => (T,N,directions H), with
/// batch_first (N,T,...); also of one sequence (T,in), and of a packed_sequence. Called with a state, an lstm_state{h,
/// c} of (layers x directions, N, H) each or zero_state, it gives output and last state. Parameters are those of
/// torch.nn.LSTM, by its names, and initialised like them. S. Hochreiter and J. Schmidhuber, Neural Computation 9
/// (1997).
///
///     nn::lstm lstm(64, 256, gen, {.layers = 2});
///     auto h = lstm(x);                                   // (T,N,64) => (T,N,256)
///     auto [output, state] = lstm(x, nn::zero_state);
///     auto [more, last] = lstm(next, state.detach());     // truncated backpropagation through time
SINTER_RECURRENT(lstm, detail::lstm_recurrence)

/// Gated recurrent units: r, z = sigmoid(W_ih x + b_ih + W_hh h + b_hh), n = tanh(W_in x + b_in + r (W_hn h + b_hn)),
/// h' = (1 - z) n + z h. Otherwise as lstm, but a state is h alone. As torch.nn.GRU. K. Cho et al., EMNLP 2014.
///
///     auto [output, h] = nn::gru(64, 256, gen)(x, nn::zero_state);
SINTER_RECURRENT(gru, detail::gru_recurrence)

/// Plain recurrent units: h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or relu with .nonlinearity. Otherwise as gru. As
/// torch.nn.RNN. J. Elman, Cognitive Science 14 (1990).
SINTER_RECURRENT(rnn, detail::rnn_recurrence)
#undef SINTER_RECURRENT

}  // namespace sinter::nn
