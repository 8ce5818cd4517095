// sinter/grad/view.hpp: the tape entries of views, and of copies to another device.
#pragma once

#include "sinter/core/owned_ptr.hpp"
#include "sinter/grad/statement.hpp"

namespace sinter {

namespace detail {

template <class T, int R, device D>
void fill_unwritten(grad_state& s) {
  const auto& g = static_cast<typed_state<T, R, D>&>(s).grad;
  const index_t all = g.shape()[s.written_axis];
  const auto clear = [&](index_t begin, index_t end) {
    if (begin < end) write(constant_expr<T>{T(0)}, g.slice(s.written_axis, begin, end));
  };
  clear(0, s.written_begin);
  clear(s.written_end, all);
}

/// Backward of a view: its gradient goes to the same elements of the base's gradient. That of one which shows all
/// elements in the order of memory is the base's, where nobody else sees the two. Parts along one axis that lie side by
/// side are written; only where others are missing in the end they are filled with zeros.
template <class T, int R, int ViewR, device D, class F>
struct view_backward final : one_input_backward {
  F view;

  view_backward(F f, state_ptr base) : view(std::move(f)) {
    name = "view";
    source = std::move(base);
  }
  void backward(grad_state& y) override {
    auto& to = static_cast<typed_state<T, R, D>&>(*source);
    const auto& g = static_cast<typed_state<T, ViewR, D>&>(y).grad;
    if constexpr (requires { view.add(g, to.sum()); }) {
      view.add(g, to.sum());
    } else {
      if (to.has_grad ? write_beside(to, g) : write_first(to, g)) return;
      view(to.sum()) += g;
    }
  }

 private:
  using base_state = typed_state<T, R, D>;
  using gradient = tensor<T, ViewR, D>;

  /// Where the base has no gradient yet.
  bool write_first(base_state& to, const gradient& g) const {
    bool add = false;
    if (g.numel() == to.shape.numel()) {
      const auto whole = access::make<T, R, D>(access::storage_of(g), access::data(g), to.shape, to.dense);
      const auto shown = view(whole);
      if (to.is_within_pass() && access::data(shown) == access::data(g) && shown.strides() == g.strides()) {
        to.grad = whole;
        to.has_grad = to.is_shared = true;
      } else {
        to.gradient(add);
        write(g, view(to.grad));
      }
      return true;
    }
    if constexpr (requires { view.axis; }) {
      to.gradient(add);
      const part p = part_in(to);
      if (!p.is_dense) write(constant_expr<T>{T(0)}, to.grad);
      write(g, view(to.grad));
      if (!p.is_dense) return true;
      to.written_axis = p.axis;
      to.written_begin = p.begin;
      to.written_end = p.end;
      to.fill_rest = &fill_unwritten<T, R, D>;
      return true;
    } else {
      return false;
    }
  }
  /// Where a part beside this one is all that the base's gradient has.
  bool write_beside(base_state& to, const gradient& g) const {
    if constexpr (requires { view.axis; }) {
      if (to.fill_rest == nullptr) return false;
      const part p = part_in(to);
      if (!p.is_dense || p.axis != to.written_axis || (p.begin != to.written_end && p.end != to.written_begin))
        return false;
      write(g, view(to.grad));
      to.written_begin = std::min(to.written_begin, p.begin);
      to.written_end = std::max(to.written_end, p.end);
      if (to.written_begin == 0 && to.written_end == to.shape[p.axis]) to.fill_rest = nullptr;
      return true;
    } else {
      return false;
    }
  }

  struct part {
    int axis;
    index_t begin, end;
    bool is_dense;  ///< no number between is left out
  };
  part part_in(const base_state& to) const {
    const int axis = static_cast<int>(view.axis < 0 ? view.axis + R : view.axis);
    const auto shown = view(to.grad);
    const index_t stride = to.dense[axis];
    const index_t begin = stride > 0 ? (access::data(shown) - access::data(to.grad)) / stride : 0;
    if constexpr (ViewR < R) return {axis, begin, begin + 1, stride > 0};
    else return {axis, begin, begin + shown.shape()[axis], stride > 0 && shown.strides()[axis] == stride};
  }
};

/// Backward of reshape(): the gradient in the other shape, on the same memory if it is the only handle to it or no user
/// sees the two.
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
  const bool may_share = to.is_within_pass(), is_given = memory.use_count() == 1 && !y.retain;
  if (!to.has_grad && (may_share || is_given) && g.is_contiguous() && to.dense == row_major_strides(to.shape)) {
    to.grad = access::make<T, From, D>(memory, access::data(g), to.shape, to.dense);
    to.has_grad = true;
    to.is_shared = may_share;
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
auto variable<T, Shape, D, Order>::viewed(F f) const {
  static_assert(
      Order < 2,
      "sinter: views have no second derivative; use variables of order 1, or take the view of a plain tensor");
  const auto v = f(value_);
  constexpr int R = detail::bare<decltype(v)>::rank;
  if (!state_ || !detail::recording()) return detail::unrecorded<Order>(v);
  return detail::produced<Order>(v, detail::make_owned<detail::view_backward<T, rank, R, D, F>>(std::move(f), state_));
}

template <class T, auto Shape, device D, int Order>
template <int R>
auto variable<T, Shape, D, Order>::reshaped(const tensor<T, R, D>& v) const {
  static_assert(
      Order < 2,
      "sinter: views have no second derivative; use variables of order 1, or take the view of a plain tensor");
  if (!state_ || !detail::recording()) return detail::unrecorded<Order>(v);
  return detail::produced<Order>(v, detail::make_owned<detail::reshape_backward<T, R, rank, D>>(state_));
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
    return detail::produced<Order>(copy, detail::make_owned<detail::transfer_backward<T, rank, D, To>>(state_));
  }
}

}  // namespace sinter
