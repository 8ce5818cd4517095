// sinter/ops/row_op.hpp: the node behind softmax, layer_norm and their relatives: a row-persistent op along one axis,
// with fused prologue and, where no gradient is recorded, fused epilogue.
#pragma once

#include "sinter/grad/statement.hpp"

namespace sinter {

namespace detail {

/// The tensor with `axis` moved to the end; the same call on its own result moves it back.
template <class Tensor>
Tensor swap_to_end(const Tensor& t, int axis) {
  if constexpr (Tensor::rank >= 2) return t.transpose(axis, -1);
  else return t;
}

/// Backward from the saved result y.
template <class Op, class T, int R, device D>
struct row_tape final : tape_node {
  Op op;
  tensor<T, R, D> y;
  tensor<compute_type<T>, 1, D> saved;
  std::uint64_t version = 0;
  state_ptr source;
  int axis = 0;

  explicit row_tape(const Op& what) : op(what) {}

  const state_ptr* inputs(int& count) const override {
    count = 1;
    return &source;
  }
  void release() override {
    y = {};
    saved = {};
  }
  void backward(grad_state& result) override {
    if (access::storage_of(y)->version.load(std::memory_order_relaxed) != version)
      refuse<autograd_error>(
          {"backward of '", name, "': its result of shape ", y.shape(),
           " was modified in place after the statement; use a copy, or write to it after backward()"});
    const auto g = swap_to_end(static_cast<typed_state<T, R, D>&>(result).grad, axis).contiguous();
    const auto moved = swap_to_end(y, axis).contiguous();
    auto& to = static_cast<typed_state<T, R, D>&>(*source);
    if (axis == R - 1) {
      bool add = false;
      to.gradient(add);
      backend<D>::reverse_rows(op, moved, g, saved, to.grad, add);
    } else {
      const auto dx = tensor<T, R, D>::uninitialized(g.shape());
      backend<D>::reverse_rows(op, moved, g, saved, dx, false);
      add_gradient(source, swap_to_end(dx, axis));
    }
  }
};

}  // namespace detail

/// Op is a struct with `name`, `saves_row_factor` (does backward need a value per row?) and the op's parameters.
template <class Op, class E>
struct [[nodiscard]] row_node : detail::point_base<row_node<Op, E>, element_of<E>, E::rank, device_of<E>, E::order> {
  using T = element_of<E>;
  using D = device_of<E>;
  static constexpr int R = E::rank;
  static constexpr int points = 1;
  static constexpr bool takes_epilogue = E::order == 0;  // backward reads the result
  static constexpr bool by_rows = true;
  static constexpr const char* explained_as() { return Op::name; }

  row_node(const Op& what, E x, int along) : e(std::move(x)), op(what), axis(along) { this->shape_ = e.shape(); }

  bool ready_for_epilogue() const { return axis == R - 1; }

  template <class Epilogue>
  void compute_into(const tensor<T, R, D>& to, const Epilogue* epilogue) const {
    if constexpr (Op::saves_row_factor) {
      const index_t n = to.shape()[axis];
      saved_ = tensor<compute_type<T>, 1, D>::uninitialized({{n > 0 ? to.numel() / n : 0}});
    }
    if (axis == R - 1) {
      detail::backend<D>::rows(op, e, to, saved_, epilogue);
    } else {
      const auto moved = detail::swap_to_end(eval(detail::untrack(e)), axis).contiguous();
      const auto out = tensor<T, R, D>::uninitialized(moved.shape());
      detail::backend<D>::rows(op, moved, out, saved_, detail::no_epilogue<D>);
      detail::write(detail::swap_to_end(out, axis), to);
    }
  }

  auto record(const tensor<T, R, D>& value) const {
    const detail::state_ptr source = detail::recording() ? detail::prologue_state(e) : detail::state_ptr();
    if (!source) return detail::unrecorded<1>(value);
    auto node = std::make_unique<detail::row_tape<Op, T, R, D>>(op);
    node->name = Op::name;
    node->y = value;
    node->saved = saved_;
    node->version = detail::access::storage_of(value)->version.load(std::memory_order_relaxed);
    node->source = source;
    node->axis = axis;
    return detail::produced<1>(value, std::move(node));
  }

  E e;
  Op op;
  int axis;

 private:
  mutable tensor<compute_type<T>, 1, D> saved_;
};

namespace detail {

template <class Op, class E>
row_node<Op, prologue_of<E>> make_row_op(const Op& op, E&& e, index_t axis) {
  check_defined(Op::name, e);
  const int a = checked_axis(Op::name, axis, rank_of<E>);
  return row_node<Op, prologue_of<E>>(op, prologue(std::forward<E>(e)), a);
}

}  // namespace detail
}  // namespace sinter
