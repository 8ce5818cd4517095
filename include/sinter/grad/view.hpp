// sinter/grad/view.hpp: the tape entries of views, and of copies to another device.
#pragma once

#include <memory>

#include "sinter/grad/statement.hpp"

namespace sinter {

namespace detail {

/// Backward of a view: its gradient goes to the same elements of the base's gradient.
template <class T, int R, int ViewR, device D, class F>
struct view_backward final : one_input_backward {
  F view;

  view_backward(F f, state_ptr base) : view(std::move(f)) {
    name = "view";
    source = std::move(base);
  }
  void backward(grad_state& y) override {
    auto& from = static_cast<typed_state<T, ViewR, D>&>(y);
    auto& to = static_cast<typed_state<T, R, D>&>(*source);
    view(to.sum()) += from.grad;
  }
};

/// Backward of reshape(): the gradient in the other shape, on the same memory if it is the only handle to it.
template <class T, int R, int From, device D>
struct reshape_backward final : one_input_backward {
  explicit reshape_backward(state_ptr base) {
    name = "reshape";
    source = std::move(base);
  }
  void backward(grad_state& y) override;
};

template <class T, int R, int From, device D>
void reshape_backward<T, R, From, D>::backward(grad_state& y) {
  const auto& g = static_cast<typed_state<T, R, D>&>(y).grad;
  auto& to = static_cast<typed_state<T, From, D>&>(*source);
  const auto& memory = access::storage_of(g);
  if (!to.has_grad && !y.retain && memory.use_count() == 1 && g.is_contiguous() &&
      to.dense == row_major_strides(to.shape)) {
    to.grad = access::make<T, From, D>(memory, access::data(g), to.shape, to.dense);
    to.has_grad = true;
    return;
  }
  add_gradient(source, g.reshape(to.shape));
}

/// Backward of a copy to another device: the gradient is copied back.
template <class T, int R, device From, device To>
struct transfer_backward final : one_input_backward {
  explicit transfer_backward(state_ptr base) {
    name = "to";
    source = std::move(base);
  }
  void backward(grad_state& y) override {
    add_gradient(source, static_cast<typed_state<T, R, To>&>(y).grad.template to<From>());
  }
};

}  // namespace detail

template <class T, auto Shape, device D, int Order>
template <class F>
auto variable<T, Shape, D, Order>::view(F f) const {
  static_assert(
      Order < 2,
      "sinter: views have no second derivative; use variables of order 1, or take the view of a plain tensor");
  const auto v = f(value_);
  constexpr int R = detail::bare<decltype(v)>::rank;
  if (!state_ || !detail::recording()) return detail::unrecorded<Order>(v);
  return detail::produced<Order>(v, std::make_unique<detail::view_backward<T, rank, R, D, F>>(std::move(f), state_));
}

template <class T, auto Shape, device D, int Order>
template <int R>
auto variable<T, Shape, D, Order>::reshaped(const tensor<T, R, D>& v) const {
  static_assert(
      Order < 2,
      "sinter: views have no second derivative; use variables of order 1, or take the view of a plain tensor");
  if (!state_ || !detail::recording()) return detail::unrecorded<Order>(v);
  return detail::produced<Order>(v, std::make_unique<detail::reshape_backward<T, R, rank, D>>(state_));
}

template <class T, auto Shape, device D, int Order>
template <device To>
variable<T, Shape, To, Order> variable<T, Shape, D, Order>::to() const {
  if constexpr (std::is_same_v<To, D>) {
    return *this;
  } else {
    static_assert(Order < 2, "sinter: copies to another device have no second derivative; use variables of order 1");
    auto copy = value_.template to<To>();
    if (!state_ || !detail::recording()) return detail::unrecorded<Order>(copy);
    return detail::produced<Order>(copy, std::make_unique<detail::transfer_backward<T, rank, D, To>>(state_));
  }
}

}  // namespace sinter
