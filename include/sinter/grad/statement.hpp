// sinter/grad/statement.hpp: recording an elementwise statement, and the tape entries of views and device copies.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sinter/grad/narrow.hpp"
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

  void keep(const leaf_ref& l, bool with_memory) {
    rank = l.rank;
    element_size = l.element_size;
    for (int d = 0; d < rank; ++d) {
      shape[d] = l.shape[d];
      strides[d] = l.strides[d];
    }
    if (!with_memory) return;
    storage = *l.memory;
    data = l.data;
    version = storage->version.load(std::memory_order_relaxed);
  }

  void check_version(const char* name, const char* what) const {
    if (storage && storage->version.load(std::memory_order_relaxed) != version)
      refuse<autograd_error>(
          {"backward of '", name, "': its ", what, " of shape ", shape_piece{shape.data(), rank},
           " was modified in place after the statement; use a copy, or write to it after backward()"});
  }
};

/// Stands where a leaf's value is not read.
inline leaf_ref nothing_to_read(int element_size) {
  static const double zero = 0;
  return {const_cast<double*>(&zero), nullptr, nullptr, 0, element_size};
}

/// What is the same for all elementwise statements; one copy serves every formula.
struct elementwise_backward : tape_entry {
  const bool* const needed;  ///< which leaves the derivative reads
  const int leaves;
  const int sinks;
  const bool with_result;  ///< the derivative reads the result
  const int result_size;
  storage_ptr (*const allocate)(std::size_t);
  saved_leaf result;  ///< its shape; its value where the derivative reads it
  saved_leaf space;   ///< for reductions: the shape that is swept, which `result` broadcasts to
  std::vector<saved_leaf> leaf;
  std::vector<saved_leaf> target;  ///< shapes of the tracked leaves
  std::vector<state_ptr> state;    ///< their gradients; null where a variable was made under no_grad

  // Calls, not inlined: there is a derived class for every formula.
  [[gnu::noinline]] elementwise_backward(const bool* reads_leaf, int n_leaves, int n_sinks, bool reads_result, int size,
                                         storage_ptr (*memory)(std::size_t))
      : needed(reads_leaf),
        leaves(n_leaves),
        sinks(n_sinks),
        with_result(reads_result),
        result_size(size),
        allocate(memory) {}
  [[gnu::noinline]] ~elementwise_backward() override {}

  virtual void run(const leaf_ref* in, const sink_ref* out, const saved_leaf& swept) = 0;

  const state_ptr* inputs(int& count) const final {
    count = sinks;
    return state.data();
  }

  void release() override;

  /// Keeps what backward needs of the leaves, in slot order; whether one of them is tracked.
  bool keep_leaves(const leaf_ref* all);

  /// Sweeps `shape`, along which the gradient of shape `of_result` is broadcast.
  template <int R>
  void set_space(const extents<R>& shape, const extents<R>& of_result) {
    space.rank = result.rank = R;
    for (int d = 0; d < R; ++d) {
      space.shape[d] = shape[d];
      result.shape[d] = of_result[d];
    }
  }

  void backward(grad_state& y) override;

 private:
  void fill(grad_state& y, leaf_ref* in, sink_ref* out, std::vector<storage_ptr>& unused);

  static extents<max_rank> dense_strides(const saved_leaf& l) {
    extents<max_rank> strides;
    row_major_strides(l.shape.data(), l.rank, strides.values);
    return strides;
  }

  extents<max_rank> dense_;
};

/// An elementwise statement over at most Axes axes: plan K on elements T on device D. Sums: it has gradients that are
/// surely sums, so that a GPU needs no kernel for when there are none.
template <device D, class T, class K, int Axes, bool Sums>
struct statement_backward : elementwise_backward {
  static constexpr kernel::leaves_read<K> reads{};

  K plan;

  explicit statement_backward(const K& k)
      : elementwise_backward(reads.leaf, K::leaves, K::sinks, kernel::reads_result<K>, sizeof(T),
                             &device_runtime<D>::allocate),
        plan(k) {}

  void run(const leaf_ref* in, const sink_ref* out, const saved_leaf& swept) override {
    if constexpr (gradient_formats<K>().any_narrow && !is_cuda_v<D>)
      reverse_narrow<T, D>(plan, {swept.shape.data(), swept.rank}, in, out);
    else backend<D>::template reverse<T, Sums>(plan, shape_upto<Axes>(swept.shape.data(), swept.rank), in, out);
  }
};

#if SINTER_DEFINES

SINTER_SHARED void elementwise_backward::release() {
  leaf.clear();
  result = {};
}
SINTER_SHARED void elementwise_backward::backward(grad_state& y) {
  std::vector<leaf_ref> in(static_cast<std::size_t>(leaves) + 2);
  std::vector<sink_ref> out(static_cast<std::size_t>(sinks));
  std::vector<storage_ptr> unused;
  fill(y, in.data(), out.data(), unused);
  run(in.data(), out.data(), space.rank > 0 ? space : result);
}
SINTER_SHARED void elementwise_backward::fill(grad_state& y, leaf_ref* in, sink_ref* out,
                                              std::vector<storage_ptr>& unused) {
  for (std::size_t i = 0; i < leaf.size(); ++i) {
    leaf[i].check_version(name, "operand");
    in[i] = needed[i] ? leaf[i].ref() : nothing_to_read(leaf[i].element_size);
  }
  bool has = false;
  // The gradient of a reduction lacks the axes that are gone; it is row-major, as all results of kernels are.
  const index_t* const of_gradient = space.rank > 0 ? (dense_ = dense_strides(result)).data() : y.strides();
  in[leaves] = {y.gradient(has), result.shape.data(), of_gradient, result.rank, result_size};
  if (with_result) {
    result.check_version(name, "result");
    in[leaves + 1] = result.ref();
  }
  const saved_leaf& swept = space.rank > 0 ? space : result;
  for (std::size_t s = 0; s < target.size(); ++s) {
    const saved_leaf& l = target[s];
    out[s].element_size = l.element_size;
    const auto set_strides = [&](const index_t* strides) {
      broadcast_strides(l.shape.data(), strides, l.rank, swept.shape.data(), out[s].strides, swept.rank);
    };
    if (state[s]) {
      out[s].data = state[s]->gradient(out[s].add);
      set_strides(state[s]->strides());
    } else {
      set_strides(dense_strides(l).data());
      index_t n = l.element_size;
      for (int d = 0; d < l.rank; ++d) n *= l.shape[d];
      unused.push_back(allocate(static_cast<std::size_t>(n)));
      out[s].data = unused.back()->data;
    }
  }
}

SINTER_SHARED bool elementwise_backward::keep_leaves(const leaf_ref* all) {
  leaf.resize(static_cast<std::size_t>(leaves));
  target.reserve(static_cast<std::size_t>(sinks));
  state.reserve(static_cast<std::size_t>(sinks));
  bool any = false;
  for (int i = 0; i < leaves; ++i) {
    leaf[static_cast<std::size_t>(i)].keep(all[i], needed[i]);
    if (all[i].state == nullptr) continue;
    target.emplace_back().keep(all[i], false);
    state.push_back(*all[i].state);
    any = any || state.back();
  }
  return any;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

namespace sinter {

namespace detail {

/// The variable that the entry `node` made.
template <int Order, class T, int R, device D>
variable<T, R, D, Order> produced(const tensor<T, R, D>& value, std::unique_ptr<tape_entry> node) {
  variable<T, R, D, Order> y(value);
  access::state_of(y)->producer = node.release();
  return y;
}
template <int Order, class T, int R, device D>
variable<T, R, D, Order> unrecorded(const tensor<T, R, D>& value) {
  return access::make_variable<Order>(value, state_ptr());
}

template <class Ready>
struct second_order_backward;

template <class Ready>
using first_order_backward =
    statement_backward<device_of<Ready>, element_of<Ready>, lowered<true, Ready>,
                       is_cuda_v<device_of<Ready>> ? rank_of<Ready> : max_rank,
                       is_cuda_v<device_of<Ready>> && (lowest_tracked_rank<Ready> < Ready::rank)>;
template <class Ready>
struct node_type {
  using type = first_order_backward<Ready>;
};
template <class Ready>
  requires(Ready::order >= 2)
struct node_type<Ready> {
  using type = second_order_backward<Ready>;  // grad/second_order.hpp
};
template <class Ready>
using node_for = typename node_type<Ready>::type;

/// The tape entry of an elementwise expression without points, or null where none of its variables is tracked. Its
/// result (shape, and memory where a derivative reads it) is still to be filled in. Below order 2 one type for all
/// formulas.
template <class Ready>
auto make_statement(const Ready& ready) {
  using Node = node_for<Ready>;
  std::unique_ptr<std::conditional_t<Ready::order >= 2, Node, elementwise_backward>> node(new Node(lower<true>(ready)));
  if constexpr (Ready::order >= 2) static_cast<Node&>(*node).keep_graph(ready);
  if constexpr (requires { Ready::op_type::name; }) node->name = Ready::op_type::name;
  else node->name = "statement";
  if (!node->keep_leaves(leaves_of<Ready>(ready))) node.reset();
  return node;
}

/// Enters `value`, which is that of `ready`, in the graph. `kept` is what the kernel of a point stored beside the
/// value, for an entry that has a member of that name.
template <class Ready, class Value, class... Kept>
auto record(const Ready& ready, const Value& value, const Kept&... kept) {
  if (!recording()) return unrecorded<Ready::order>(value);
  auto node = make_statement(ready);
  if (!node) return unrecorded<Ready::order>(value);
  node->result.keep(leaf_of(value), node->with_result);
  if constexpr (sizeof...(Kept) > 0 && requires { &node_for<Ready>::kept; })
    static_cast<node_for<Ready>&>(*node).kept = (kept, ...);
  return produced<Ready::order>(value, std::move(node));
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
inline constexpr bool fuses_as_prologue = points_in<E> == 0 && passes_gradient_on<E>;
template <class E>
using prologue_of = std::conditional_t<fuses_as_prologue<bare<E>>, bare<E>, evaluated<E>>;
template <class E>
prologue_of<E> prologue(E&& e) {
  if constexpr (fuses_as_prologue<bare<E>>) return bare<E>(std::forward<E>(e));
  else return eval_to_read(std::forward<E>(e));
}

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
    state_ptr state(new typed_state<element_of<E>, rank_of<E>, device_of<E>>(e.shape(), result_strides(e)));
    node->result.rank = rank_of<E>;
    for (int d = 0; d < rank_of<E>; ++d) node->result.shape[d] = e.shape()[d];
    state->producer = node.release();
    return state;
  }
}

[[noreturn]] SINTER_COLD inline void refuse_written_operand(const char* doing, const char* name, shape_piece shape) {
  refuse<autograd_error>(
      {doing, " '", name, "': its operand of shape ", shape,
       " was modified in place after the statement; use a copy, or write to it after the gradient is taken"});
}

/// An expression without points, kept for backward with the versions of its leaves.
template <class E>
class versioned_expression {
 public:
  void keep(const E& e) {
    e_.emplace(e);
    const leaves_of<E> leaves(*e_);
    for (int i = 0; i < leaves.count; ++i) version_[i] = version_of(leaves.at[i]);
  }
  void drop() { e_.reset(); }
  /// Errors: autograd_error, which starts with `doing`, if a leaf was written to since.
  const E& get(const char* doing, const char* name) const {
    const leaves_of<E> leaves(*e_);
    for (int i = 0; i < leaves.count; ++i)
      if (version_of(leaves.at[i]) != version_[i])
        refuse_written_operand(doing, name, {leaves.at[i].shape, leaves.at[i].rank});
    return *e_;
  }

 private:
  static std::uint64_t version_of(const leaf_ref& l) {
    return *l.memory ? (*l.memory)->version.load(std::memory_order_relaxed) : 0;
  }

  std::optional<E> e_;
  std::uint64_t version_[leaves_of<E>::count > 0 ? leaves_of<E>::count : 1] = {};
};

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
