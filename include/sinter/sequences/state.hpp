// sinter/sequences/state.hpp: the states of recurrent layers between one part of a sequence and the next.
#pragma once

#include "sinter/grad/variable.hpp"

namespace sinter::nn {

/// In place of a state: zeros, and the layer gives its last state beside its output.
struct zero_state_t {};
inline constexpr zero_state_t zero_state{};

/// The hidden and the cell state of an LSTM, of layers (layers x directions, N, H), of a cell (N, H).
template <class Value>
struct lstm_state {
  Value h, c;

  /// The same numbers as plain tensors, from which no gradient flows back: backpropagation through time ends there.
  auto detach() const {
    if constexpr (is_tracked_v<Value>) return lstm_state<decltype(h.detach())>{h.detach(), c.detach()};
    else return *this;
  }
};
template <class Value>
lstm_state(Value, Value) -> lstm_state<Value>;

namespace detail {

/// zero_state, the state of an LSTM where there is a cell state, or h alone.
template <class S, bool HasCell>
inline constexpr bool is_state_for = std::is_same_v<S, zero_state_t> || (!HasCell && expression<S>);
template <class Value>
inline constexpr bool is_state_for<lstm_state<Value>, true> = true;

}  // namespace detail

/// What a recurrent layer gives that is called with a state.
///
///     auto [output, state] = lstm(x, nn::zero_state);
template <class Output, class State>
struct recurrent_result {
  Output output;
  State state;
};
template <class Output, class State>
recurrent_result(Output, State) -> recurrent_result<Output, State>;

}  // namespace sinter::nn
