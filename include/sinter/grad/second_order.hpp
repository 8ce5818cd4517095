// sinter/grad/second_order.hpp: gradients as recorded computations, which can be differentiated again.
//
// A statement over variables of order 2 keeps its expression. grad() walks the graph as backward() does, but builds
// from each derivative an expression over variables of order 1 and evaluates it as a statement of its own.
#pragma once

#include <vector>

#include "sinter/core/address_map.hpp"
#include "sinter/core/create.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/grad/view.hpp"

namespace sinter {

namespace detail {

/// The gradients gathered so far, by state; variables of order 1.
class graph_gradients {
 public:
  template <class T, int R, device D>
  variable<T, R, D> get(const state_ptr& s) const {
    const auto at = place_.find(s.get());
    if (at == place_.end()) return {};
    return *static_cast<const variable<T, R, D>*>(held_[static_cast<std::size_t>(at->second)].get());
  }
  template <class T, int R, device D>
  void add(const state_ptr& s, const variable<T, R, D>& g) {
    if (!s) return;
    const auto at = place_.find(s.get());
    if (at == place_.end()) {
      held_.push_back(std::make_shared<variable<T, R, D>>(g));
      place_[s.get()] = static_cast<int>(held_.size()) - 1;
    } else {
      std::shared_ptr<void>& sum = held_[static_cast<std::size_t>(at->second)];
      sum = std::make_shared<variable<T, R, D>>(*static_cast<const variable<T, R, D>*>(sum.get()) + g);
    }
  }
  bool has(const state_ptr& s) const { return place_.find(s.get()) != place_.end(); }

 private:
  std::vector<std::shared_ptr<void>> held_;
  address_map place_;  ///< where in held_ the gradient of a state is
};

/// An expression whose variables of order 2 have become variables of order 1 with the same value and state.
template <class E>
auto lower_order(const E& e) {
  if constexpr (is_variable<E>) {
    if constexpr (E::order >= 2) return access::make_variable<1>(access::value_of(e), access::state_of(e));
    else return e;
  } else if constexpr (is_tensor<E> || is_constant<E>) {
    return e;
  } else {
    static_assert(is_map<E>, "sinter: let has no second derivative; name the value with a variable of order 2 instead");
    return e.rebuild([](const auto& child) { return lower_order(child); });
  }
}
template <class E>
using lower_order_of = decltype(lower_order(std::declval<const E&>()));

/// g summed over the axes along which `shape` was broadcast (ops/grad.hpp).
template <class T, int R, device D, int N>
variable<T, N, D> sum_to(const variable<T, R, D>& g, const extents<N>& shape);

/// Hands each leaf of order 2 in `e` its gradient as an expression; `low` is e over variables of order 1.
template <class E, class Low, class G, class F>
void derive(const E& e, const Low& low, const G& g, const F& give) {
  if constexpr (is_variable<E>) {
    if constexpr (E::order >= 2) give(e, g);
  } else if constexpr (is_map<E>) {
    static_assert(requires { E::op_type::grad_uses; }, "sinter: this op has no derivative");
    if constexpr (requires { e.c; }) {
      if constexpr (decltype(e.a)::order >= 2)
        derive(e.a, low.a, e.op.template grad<0>(g, low.a, low.b, low.c, low), give);
      if constexpr (decltype(e.b)::order >= 2)
        derive(e.b, low.b, e.op.template grad<1>(g, low.a, low.b, low.c, low), give);
      if constexpr (decltype(e.c)::order >= 2)
        derive(e.c, low.c, e.op.template grad<2>(g, low.a, low.b, low.c, low), give);
    } else if constexpr (requires { e.b; }) {
      if constexpr (decltype(e.a)::order >= 2) derive(e.a, low.a, e.op.template grad<0>(g, low.a, low.b, low), give);
      if constexpr (decltype(e.b)::order >= 2) derive(e.b, low.b, e.op.template grad<1>(g, low.a, low.b, low), give);
    } else {
      if constexpr (decltype(e.a)::order >= 2) derive(e.a, low.a, e.op.template grad<0>(g, low.a, low), give);
    }
  }
}

/// The gradient of a result of rank R, with its reduced axes back as extents of 1.
template <class T, int R, int Space, device D>
variable<T, Space, D> widened_gradient(const graph_gradients& gradients, const state_ptr& result,
                                       const extents<max_rank>& kept) {
  const variable<T, R, D> g = gradients.get<T, R, D>(result);
  if constexpr (R == Space) {
    return g;
  } else {
    index_t shape[std::size_t{Space > 0 ? Space : 1}] = {};
    for (int d = 0; d < Space; ++d) shape[d] = kept[d];
    return g.reshape(shape);
  }
}

/// An elementwise statement, or the elementwise part of a sum, that can be differentiated as an expression.
template <class Ready>
struct second_order_backward final : elementwise_backward {
  using T = element_of<Ready>;
  using D = device_of<Ready>;
  static constexpr int R = Ready::rank;
  using elementwise_backward::elementwise_backward;

  variable<T, R, D> (*widen)(const graph_gradients&, const state_ptr&,
                             const extents<max_rank>&) = &widened_gradient<T, R, R, D>;

  void keep_graph(const Ready& ready) { graph_.keep(ready); }

  void backward_graph(const state_ptr& y, graph_gradients& to) override {
    const Ready& ready = graph_.get("grad through", this->name);
    const variable<T, R, D> g = widen(to, y, this->result.shape);
    extents<R> swept;
    for (int d = 0; d < R; ++d) swept[d] = this->space.rank > 0 ? this->space.shape[d] : this->result.shape[d];
    derive(ready, lower_order(ready), g, [&](const auto& x, const auto& dx) {
      using U = element_of<decltype(x)>;  // not T beyond a cast
      const variable<U, R, D> full = dx + zeros<U, D>(ones_extents<R>()).broadcast_to(swept);
      to.add(access::state_of(x), sum_to(full, x.shape()));
    });
  }

 private:
  versioned_expression<Ready> graph_;
};

/// From the newest state to the oldest, as walk_back, without freeing anything.
SINTER_SHARED void walk_graph(const state_ptr& root, const state_ptr& target, graph_gradients& gradients);

#if SINTER_DEFINES
SINTER_SHARED void walk_graph(const state_ptr& root, const state_ptr& target, graph_gradients& gradients) {
  const auto older = [](const state_ptr& a, const state_ptr& b) { return a->order < b->order; };
  std::vector<state_ptr> heap{root};
  address_map reached;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), older);
    const state_ptr s = std::move(heap.back());
    heap.pop_back();
    if (s.get() == target.get() || s->producer == nullptr || !gradients.has(s)) continue;
    if (s->producer->released)
      refuse<autograd_error>({"grad: the graph through '", s->producer->name,
                              "' was freed by an earlier backward; pass {.retain_graph = true} to the earlier one"});
    s->producer->backward_graph(s, gradients);
    int count = 0;
    const state_ptr* inputs = s->producer->inputs(count);
    for (int i = 0; i < count; ++i) {
      if (!inputs[i] || !reached.emplace(inputs[i].get(), 1).second) continue;
      heap.push_back(inputs[i]);
      std::push_heap(heap.begin(), heap.end(), older);
    }
  }
}
#endif  // SINTER_DEFINES

}  // namespace detail
}  // namespace sinter
