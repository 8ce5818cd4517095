// sinter/grad/statement.hpp: recording an elementwise statement, and the nodes of views and device copies.
#pragma once

#include <memory>

#include "sinter/grad/variable.hpp"

namespace sinter::detail {

/// A leaf as backward needs it: its shape always, its memory only where a derivative reads it.
struct saved_leaf {
  storage_ptr storage;
  void* data = nullptr;
  std::uint64_t version = 0;
  int rank = 0;
  int element_size = 0;
  extents<max_rank> shape;
  extents<max_rank> strides;

  leaf_ref ref() const { return {data, shape.data(), strides.data(), rank, element_size}; }

  template <class T, auto S, device D>
  void keep(const tensor<T, S, D>& t, bool with_memory) {
    rank = t.rank;
    element_size = sizeof(T);
    for (int d = 0; d < rank; ++d) {
      shape[d] = t.shape()[d];
      strides[d] = t.strides()[d];
    }
    if (!with_memory) return;
    storage = access::storage_of(t);
    data = access::data(t);
    version = storage->version.load(std::memory_order_relaxed);
  }

  void check(const char* name) const {
    if (storage && storage->version.load(std::memory_order_relaxed) != version)
      throw autograd_error(std::string("backward of '") + name + "': its operand of shape " + shape_text(shape.data(), rank) +
                           " was modified in place after the statement; use a copy, or write to it after backward()");
  }
};

/// Stands where a leaf's value is not read.
template <class T>
leaf_ref nothing_to_read() {
  static const T zero{};
  return {const_cast<T*>(&zero), nullptr, nullptr, 0, sizeof(T)};
}

/// An elementwise statement: plan K on elements T on device D.
template <device D, class T, class K>
struct statement_node final : tape_node {
  static constexpr int leaves = K::leaves;
  static constexpr bool with_result = kernel::reads_result<K>;

  static constexpr auto needed = [] {
    struct {
      bool leaf[K::leaves] = {};
    } n;
    K::template mark<false, with_result>(n.leaf);
    return n;
  }();

  K plan;
  saved_leaf leaf[leaves];
  saved_leaf result;  // its shape; its value where the derivative reads it
  saved_leaf target[K::sinks];
  state_ptr state[K::sinks];

  explicit statement_node(const K& k) : plan(k) {}

  const state_ptr* inputs(int& count) const override {
    count = K::sinks;
    return state;
  }

  void release() override {
    for (saved_leaf& l : leaf) l = {};
    result = {};
  }

  void backward(grad_state& y) override {
    leaf_ref in[leaves + 2];
    for (int i = 0; i < leaves; ++i) {
      leaf[i].check(name);
      in[i] = needed.leaf[i] ? leaf[i].ref() : nothing_to_read<std::int64_t>();
      in[i].element_size = leaf[i].element_size;
    }
    bool has = false;
    const extents<max_rank> dense = dense_strides(result);
    in[leaves] = {y.gradient(has), result.shape.data(), dense.data(), result.rank, sizeof(T)};
    if constexpr (with_result) {
      result.check(name);
      in[leaves + 1] = result.ref();
    }
    sink_ref out[K::sinks];
    storage_ptr unused[K::sinks];  // gradients of variables that were made under no_grad: nobody asks for them
    for (int s = 0; s < K::sinks; ++s) {
      const saved_leaf& l = target[s];
      out[s].element_size = l.element_size;
      if (state[s]) {
        out[s].data = state[s]->gradient(out[s].add);
      } else {
        unused[s] = device_runtime<D>::allocate(static_cast<std::size_t>(numel(l)) * static_cast<std::size_t>(l.element_size));
        out[s].data = unused[s]->data;
      }
      broadcast_strides(l.shape.data(), dense_strides(l).data(), l.rank, result.shape.data(), out[s].strides, result.rank);
    }
    backend<D>::template reverse<T>(plan, result.shape.data(), result.rank, in, out);
  }

  static index_t numel(const saved_leaf& l) {
    index_t n = 1;
    for (int d = 0; d < l.rank; ++d) n *= l.shape[d];
    return n;
  }
  static extents<max_rank> dense_strides(const saved_leaf& l) {
    extents<max_rank> strides;
    index_t step = 1;
    for (int d = l.rank - 1; d >= 0; --d) {
      strides[d] = step;
      step *= l.shape[d];
    }
    return strides;
  }
};

}  // namespace sinter::detail

namespace sinter {

namespace detail {

/// The variable that `node` made.
template <class T, int R, device D>
variable<T, R, D> produced(const tensor<T, R, D>& value, tape_node* node) {
  variable<T, R, D> y(value);
  access::state_of(y)->producer = node;
  return y;
}
template <class T, int R, device D>
variable<T, R, D> unrecorded(const tensor<T, R, D>& value) {
  return access::make_variable(value, state_ptr());
}

template <class E>
auto evaluation<E>::run_tracked(const E& e) {
  using T = element_of<E>;
  constexpr int R = rank_of<E>;
  using D = device_of<E>;
  if constexpr (is_point<E>) {
    return e.result();
  } else {
    auto&& ready = materialise(e);
    using Ready = bare<decltype(ready)>;
    auto value = tensor<T, R, D>::uninitialized(ready.shape());
    write(ready, value);
    if (!recording()) return unrecorded(value);
    using K = lowered<true, Ready>;
    using Node = statement_node<D, T, K>;
    auto node = std::make_unique<Node>(lower<true>(ready));
    node->name = Ready::op_type::name;
    node->result.keep(value, Node::with_result);
    int slot = 0;
    int sink = 0;
    bool any = false;
    auto keep = [&](const auto& leaf, auto tracked) {
      if constexpr (is_variable<bare<decltype(leaf)>>) {
        node->leaf[slot].keep(access::value_of(leaf), Node::needed.leaf[slot]);
        if constexpr (decltype(tracked)::value) {
          node->target[sink].keep(access::value_of(leaf), false);
          node->state[sink] = access::state_of(leaf);
          any = any || node->state[sink];
          ++sink;
        }
      } else {
        node->leaf[slot].keep(leaf, Node::needed.leaf[slot]);
      }
      ++slot;
    };
    visit_leaves<true>(ready, keep);
    if (!any) return unrecorded(value);
    return produced(value, node.release());
  }
}

/// Backward of a view: its gradient goes to the same elements of the base's gradient.
template <class T, int R, int ViewR, device D, class F>
struct view_node final : tape_node {
  F view;
  state_ptr base;

  view_node(F f, state_ptr b) : view(std::move(f)), base(std::move(b)) { name = "view"; }
  const state_ptr* inputs(int& count) const override {
    count = 1;
    return &base;
  }
  void release() override {}
  void backward(grad_state& y) override {
    auto& from = static_cast<typed_state<T, ViewR, D>&>(y);
    auto& to = static_cast<typed_state<T, R, D>&>(*base.get());
    if (!to.has_grad) {
      bool add = false;
      to.gradient(add);
      write(constant_node<T>{T(0)}, to.grad);
    }
    view(to.grad) += from.grad;
  }
};

/// Backward of a copy to another device: the gradient is copied back.
template <class T, int R, device From, device To>
struct transfer_node final : tape_node {
  state_ptr source;
  explicit transfer_node(state_ptr s) : source(std::move(s)) { name = "to"; }
  const state_ptr* inputs(int& count) const override {
    count = 1;
    return &source;
  }
  void release() override {}
  void backward(grad_state& y) override {
    add_gradient(source, static_cast<typed_state<T, R, To>&>(y).grad.template to<From>());
  }
};

}  // namespace detail

template <class T, auto Shape, device D, int Order>
template <class F>
auto variable<T, Shape, D, Order>::view(F f) const {
  const auto v = f(value_);
  constexpr int R = detail::bare<decltype(v)>::rank;
  if (!state_ || !detail::recording()) return detail::unrecorded(v);
  return detail::produced(v, new detail::view_node<T, rank, R, D, F>(std::move(f), state_));
}

template <class T, auto Shape, device D, int Order>
template <device To>
variable<T, Shape, To, Order> variable<T, Shape, D, Order>::to() const {
  if constexpr (std::is_same_v<To, D>) {
    return *this;
  } else {
    auto copy = value_.template to<To>();
    if (!state_ || !detail::recording()) return detail::unrecorded(copy);
    return detail::produced(copy, new detail::transfer_node<T, rank, D, To>(state_));
  }
}

}  // namespace sinter
