// sinter/grad/statement.hpp: recording an elementwise statement, and the nodes of views and device copies.
#pragma once

#include <memory>
#include <optional>

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

  static constexpr leaves_read<K> needed{};

  K plan;
  saved_leaf leaf[leaves];
  saved_leaf result;  // its shape; its value where the derivative reads it
  saved_leaf space;   // for reductions: the shape that is swept, which `result` broadcasts to
  saved_leaf target[K::sinks];
  state_ptr state[K::sinks];

  explicit statement_node(const K& k) : plan(k) {}

  /// Sweeps `shape`, along which the gradient of shape `of_result` is broadcast.
  template <int R>
  void set_space(const extents<R>& shape, const extents<R>& of_result) {
    space.rank = result.rank = R;
    for (int d = 0; d < R; ++d) {
      space.shape[d] = shape[d];
      result.shape[d] = of_result[d];
    }
  }

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
    const saved_leaf& swept = space.rank > 0 ? space : result;
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
      broadcast_strides(l.shape.data(), dense_strides(l).data(), l.rank, swept.shape.data(), out[s].strides, swept.rank);
    }
    backend<D>::template reverse<T>(plan, swept.shape.data(), swept.rank, in, out);
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

/// The node of an elementwise expression without points, or null where none of its variables is tracked. Its result
/// (shape, and memory where a derivative reads it) is still to be filled in.
template <class Ready>
auto make_statement(const Ready& ready) {
  using Node = statement_node<device_of<Ready>, element_of<Ready>, lowered<true, Ready>>;
  auto node = std::make_unique<Node>(lower<true>(ready));
  if constexpr (requires { Ready::op_type::name; }) node->name = Ready::op_type::name;
  else node->name = "statement";
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
  if (!any) node.reset();
  return node;
}

template <class Ready, class Value>
auto record(const Ready& ready, const Value& value) {
  if (!recording()) return unrecorded(value);
  auto node = make_statement(ready);
  if (!node) return unrecorded(value);
  node->result.keep(value, bare<decltype(*node)>::with_result);
  return produced(value, node.release());
}

/// An expression without points, its variables replaced by their values.
template <class E>
auto untrack(const E& e) {
  if constexpr (is_variable<E>) return access::value_of(e);
  else if constexpr (is_tensor<E> || is_constant<E>) return e;
  else if constexpr (requires { e.untracked(); }) return e.untracked();
  else return e.rebuild([](const auto& child) { return untrack(child); });
}

/// True when backward can hand the gradient of e on without e's own value in memory.
template <class E>
inline constexpr bool passes_gradient_on = [] {
  if constexpr (!is_tracked_v<E> || is_variable<E>) return true;
  else if constexpr (points_in<E> > 0) return false;
  else return !kernel::reads_result<lowered<true, E>>;
}();

/// What a kernel with a fused prologue is fed with: e itself where possible, otherwise its value.
template <class E>
auto prologue(E&& e) {
  using X = bare<E>;
  if constexpr (points_in<X> == 0 && passes_gradient_on<X>) return X(std::forward<E>(e));
  else return eval(std::forward<E>(e));
}
template <class E>
using prologue_of = decltype(prologue(std::declval<E>()));

/// The state that gathers the gradient of a prologue: that of the variable, or one whose producer is the elementwise
/// statement e, the value of which is nowhere in memory. Null where nothing is tracked.
template <class E>
state_ptr prologue_state(const E& e) {
  if constexpr (!is_tracked_v<E>) {
    return {};
  } else if constexpr (is_variable<E>) {
    return access::state_of(e);
  } else {
    auto node = make_statement(e);
    if (!node) return {};
    state_ptr state(new typed_state<element_of<E>, rank_of<E>, device_of<E>>(e.shape()));
    node->result.rank = rank_of<E>;
    for (int d = 0; d < rank_of<E>; ++d) node->result.shape[d] = e.shape()[d];
    state->producer = node.release();
    return state;
  }
}

/// An expression's plain tensors kept for backward, with their versions.
template <class E>
struct kept_expression {
  using plain_type = decltype(untrack(std::declval<const E&>()));
  static constexpr int leaves = lowered<false, E>::leaves;
  std::optional<plain_type> e;
  std::uint64_t version[leaves > 0 ? leaves : 1];

  void keep(const E& x) {
    e.emplace(untrack(x));
    each([this](int i, const storage& s) { version[i] = s.version.load(std::memory_order_relaxed); });
  }
  const plain_type& get(const char* name) const {
    each([&](int i, const storage& s) {
      if (s.version.load(std::memory_order_relaxed) != version[i])
        throw autograd_error(std::string("backward of '") + name +
                             "': an operand was modified in place after the statement; use a copy, or write to it after backward()");
    });
    return *e;
  }

 private:
  template <class F>
  void each(const F& f) const {
    int i = 0;
    auto visit = [&](const auto& leaf, auto) { f(i++, *access::storage_of(leaf).get()); };
    visit_leaves<false>(*e, visit);
  }
};

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
