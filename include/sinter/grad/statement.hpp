// sinter/grad/statement.hpp: recording an elementwise statement.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <vector>

#include "sinter/core/owned_ptr.hpp"
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

/// The derivative of an elementwise formula apart from its numbers and operands: one constant for each. `plan` is its
/// kernel tree; for one without numbers it is not read.
struct formula_derivative {
  const char* name;  ///< of the outermost op
  /// Makes the gradients of the tracked leaves. `in` are the leaves, the gradient of the result and, with
  /// `reads_result`, the result.
  void (*reverse)(const void* plan, const any_shape& swept, const leaf_ref* in, const sink_ref* out);
  storage_ptr (*allocate)(std::size_t bytes);
  std::uint64_t reads;  ///< which leaves the derivative reads, a bit each
  int leaves, sinks;
  int result_size;  ///< of its elements, in bytes
  std::size_t plan_size;
  bool reads_result;
  /// The gradient of each leaf is that of the result, summed where the leaf is broadcast. `reverse` is then that of the
  /// formula which is a leaf, and is called for one leaf at a time.
  bool hands_on;
};

/// Is the gradient of a result of type T that of each of K's tracked leaves, as it is?
template <class K, class T>
inline constexpr bool hands_gradient_on = K::sinks == 0;
template <class E, class T>
inline constexpr bool hands_gradient_on<kernel::leaf<E, true>, T> = std::is_same_v<E, T>;
template <class Op, class A, class B, class T>
  requires requires { Op::passes_on; }
inline constexpr bool hands_gradient_on<kernel::map<Op, A, B>, T> =
    ((Op::passes_on & uses::first) != 0 || A::sinks == 0) && ((Op::passes_on & uses::second) != 0 || B::sinks == 0) &&
    hands_gradient_on<A, T> && hands_gradient_on<B, T>;

/// `Sums`: it has gradients that are surely sums, so that a GPU needs no kernel for when there are none.
template <class K, class T, int Axes, bool Sums, device D>
void reverse_formula(const void* plan, const any_shape& swept, const leaf_ref* in, const sink_ref* out) {
  const K k = plan_from<K>(plan);
  if constexpr (gradient_formats<K>().any_narrow && !is_cuda_v<D>) reverse_narrow<T, D>(k, swept, in, out);
  else backend<D>::template reverse<T, Sums>(k, shape_upto<Axes>(swept.data, swept.rank), in, out);
}
template <class K>
inline constexpr const char* name_of_statement = "statement";
template <class Op, class... A>
inline constexpr const char* name_of_statement<kernel::map<Op, A...>> = Op::name;

template <class K, class T, int Axes, bool Sums, device D>
inline constexpr formula_derivative derivative_for{
    name_of_statement<K>,
    &reverse_formula<std::conditional_t<hands_gradient_on<K, T>, kernel::leaf<T, true>, K>, T, Axes,
                     Sums && !hands_gradient_on<K, T>, D>,
    &device_runtime<D>::allocate,
    kernel::leaves_read<K>().bits(),
    K::leaves,
    K::sinks,
    sizeof(T),
    has_no_numbers<K> || hands_gradient_on<K, T> ? 0 : sizeof(K),
    kernel::reads_result<K>,
    hands_gradient_on<K, T>};
inline constexpr formula_derivative no_derivative{};
/// The derivative of Ready, an expression without points.
template <class Ready>
constexpr const formula_derivative& derivative_of_formula() {
  using K = lowered<true, Ready>;
  using D = device_of<Ready>;
  static_assert(std::is_trivially_copyable_v<K> && alignof(K) <= alignof(std::max_align_t));
  if constexpr (reads_name<Ready>) return no_derivative;  // so that there is one message
  else
    return derivative_for<K, element_of<Ready>, axes_of_pass<D, rank_of<Ready>>,
                          (is_cuda_v<D> && (lowest_tracked_rank<Ready> < Ready::rank)), D>;
}

/// The tape entry of an elementwise statement, whatever its formula.
struct elementwise_backward : tape_entry {
  const formula_derivative& code;
  saved_leaf result;  ///< its shape; its value where the derivative reads it
  saved_leaf space;   ///< for reductions: the shape that is swept, which `result` broadcasts to
  std::vector<saved_leaf> leaf;
  std::vector<saved_leaf> target;  ///< shapes of the tracked leaves
  std::vector<state_ptr> state;    ///< their gradients; null where a variable was made under no_grad

  /// A copy of `plan` is kept.
  elementwise_backward(const formula_derivative& c, const void* plan);
  elementwise_backward(const elementwise_backward&) = delete;
  elementwise_backward& operator=(const elementwise_backward&) = delete;
  SINTER_SHARED ~elementwise_backward() override;

  const state_ptr* inputs(int& count) const final {
    count = code.sinks;
    return state.data();
  }

  SINTER_SHARED void release() override;

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

  SINTER_SHARED void backward(grad_state& y) override;

 private:
  const saved_leaf& swept() const { return space.rank > 0 ? space : result; }
  leaf_ref gradient_of(const grad_state& y);
  /// Where the gradient of target s goes, in this memory with these strides.
  sink_ref sink_for(std::size_t s, void* data, const index_t* strides) const;
  /// The same in the memory of its state, which is there.
  sink_ref sink_of_state(std::size_t s) const;
  void fill(const grad_state& y, leaf_ref* in, sink_ref* out, std::vector<storage_ptr>& unused);
  /// For formulas that hand the gradient on: leaves that only this pass sees get y's memory.
  void hand_on(const grad_state& y);
  bool may_share(const grad_state& y, std::size_t s) const;

  static extents<max_rank> dense_strides(const saved_leaf& l) {
    extents<max_rank> strides;
    row_major_strides(l.shape.data(), l.rank, strides.values);
    return strides;
  }

  extents<max_rank> dense_;
  alignas(std::max_align_t) std::byte near_plan_[32];
  std::byte* far_plan_ = nullptr;  ///< of a larger one
};

/// A state for the gradient of a value, from what a leaf says of it.
template <class Value>
grad_state* make_state_like(const leaf_ref& value) {
  constexpr int R = Value::rank;
  extents<R> shape, strides;
  std::copy_n(value.shape, R, shape.values);
  std::copy_n(value.strides, R, strides.values);
  return new typed_state<element_of<Value>, R, device_of<Value>>(shape, strides);
}

/// The state of a value that a formula made, with its tape entry; null where nothing is recorded.
SINTER_SHARED state_ptr record_formula(const formula_derivative& code, const void* plan, const leaf_ref* leaves,
                                       const leaf_ref& value, grad_state* (*make_state)(const leaf_ref&));

/// The entry of a formula; see make_statement().
SINTER_SHARED owned_ptr<elementwise_backward> make_entry(const formula_derivative& code, const void* plan,
                                                         const leaf_ref* leaves);

#if SINTER_DEFINES

SINTER_SHARED owned_ptr<elementwise_backward> make_entry(const formula_derivative& code, const void* plan,
                                                         const leaf_ref* leaves) {
  auto node = make_owned<elementwise_backward>(code, plan);
  if (!node->keep_leaves(leaves)) node.reset();
  return node;
}
SINTER_SHARED state_ptr record_formula(const formula_derivative& code, const void* plan, const leaf_ref* leaves,
                                       const leaf_ref& value, grad_state* (*make_state)(const leaf_ref&)) {
  if (!recording()) return {};
  auto node = make_entry(code, plan, leaves);
  if (!node) return {};
  node->result.keep(value, code.reads_result);
  state_ptr state(make_state(value));
  state->producer = node.release();
  return state;
}
SINTER_SHARED elementwise_backward::elementwise_backward(const formula_derivative& c, const void* plan) : code(c) {
  name = code.name;
  if (code.plan_size > sizeof near_plan_) far_plan_ = new std::byte[code.plan_size];
  if (code.plan_size > 0) std::memcpy(far_plan_ != nullptr ? far_plan_ : near_plan_, plan, code.plan_size);
}
SINTER_SHARED elementwise_backward::~elementwise_backward() { delete[] far_plan_; }
SINTER_SHARED void elementwise_backward::release() {
  leaf.clear();
  result = {};
}
SINTER_SHARED void elementwise_backward::backward(grad_state& y) {
  if (code.hands_on) return hand_on(y);
  std::vector<leaf_ref> in(static_cast<std::size_t>(code.leaves) + 2);
  std::vector<sink_ref> out(static_cast<std::size_t>(code.sinks));
  std::vector<storage_ptr> unused;
  fill(y, in.data(), out.data(), unused);
  code.reverse(far_plan_ != nullptr ? far_plan_ : near_plan_, {swept().shape.data(), swept().rank}, in.data(),
               out.data());
}
SINTER_SHARED leaf_ref elementwise_backward::gradient_of(const grad_state& y) {
  // The gradient of a reduction lacks the axes that are gone; it is row-major, as all results of kernels are.
  const index_t* const strides = space.rank > 0 ? (dense_ = dense_strides(result)).data() : y.strides();
  return {const_cast<void*>(y.gradient_to_read()), result.shape.data(), strides, result.rank, code.result_size};
}
SINTER_SHARED sink_ref elementwise_backward::sink_for(std::size_t s, void* data, const index_t* strides) const {
  const saved_leaf& l = target[s];
  sink_ref to;
  to.data = data;
  to.element_size = l.element_size;
  broadcast_strides(l.shape.data(), strides, l.rank, swept().shape.data(), to.strides, swept().rank);
  return to;
}
SINTER_SHARED sink_ref elementwise_backward::sink_of_state(std::size_t s) const {
  bool add = false;
  void* const data = state[s]->gradient(add);
  sink_ref to = sink_for(s, data, state[s]->strides());
  to.add = add;
  return to;
}
SINTER_SHARED void elementwise_backward::fill(const grad_state& y, leaf_ref* in, sink_ref* out,
                                              std::vector<storage_ptr>& unused) {
  for (std::size_t i = 0; i < leaf.size(); ++i) {
    leaf[i].check_version(name, "operand");
    in[i] = (code.reads >> i & 1) != 0 ? leaf[i].ref() : nothing_to_read(leaf[i].element_size);
  }
  in[code.leaves] = gradient_of(y);
  if (code.reads_result) {
    result.check_version(name, "result");
    in[code.leaves + 1] = result.ref();
  }
  for (std::size_t s = 0; s < target.size(); ++s) {
    if (state[s]) {
      out[s] = sink_of_state(s);
    } else {
      const saved_leaf& l = target[s];
      index_t n = l.element_size;
      for (int d = 0; d < l.rank; ++d) n *= l.shape[d];
      unused.push_back(code.allocate(static_cast<std::size_t>(n)));
      out[s] = sink_for(s, unused.back()->data, dense_strides(l).data());
    }
  }
}
SINTER_SHARED bool elementwise_backward::may_share(const grad_state& y, std::size_t s) const {
  const grad_state& to = *state[s];
  const auto same = [](const index_t* a, const index_t* b, int n) { return std::equal(a, a + n, b); };
  return space.rank == 0 && !to.has_grad && to.is_within_pass() && target[s].rank == result.rank &&
         same(result.shape.data(), target[s].shape.data(), result.rank) && same(y.strides(), to.strides(), result.rank);
}
SINTER_SHARED void elementwise_backward::hand_on(const grad_state& y) {
  const leaf_ref in[2] = {nothing_to_read(code.result_size), gradient_of(y)};
  for (std::size_t s = 0; s < target.size(); ++s) {
    if (!state[s]) continue;
    if (may_share(y, s)) {
      state[s]->share_gradient(y);
      continue;
    }
    const sink_ref to = sink_of_state(s);
    code.reverse(nullptr, {swept().shape.data(), swept().rank}, in, &to);
  }
}

SINTER_SHARED bool elementwise_backward::keep_leaves(const leaf_ref* all) {
  leaf.resize(static_cast<std::size_t>(code.leaves));
  target.reserve(static_cast<std::size_t>(code.sinks));
  state.reserve(static_cast<std::size_t>(code.sinks));
  bool any = false;
  for (int i = 0; i < code.leaves; ++i) {
    leaf[static_cast<std::size_t>(i)].keep(all[i], (code.reads >> i & 1) != 0);
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
template <int Order, class T, int R, device D, class Entry>
variable<T, R, D, Order> produced(const tensor<T, R, D>& value, owned_ptr<Entry> node) {
  variable<T, R, D, Order> y(value);
  access::state_of(y)->producer = node.release();
  return y;
}
template <int Order, class T, int R, device D>
variable<T, R, D, Order> unrecorded(const tensor<T, R, D>& value) {
  return access::make_variable<Order>(value, state_ptr());
}

/// e as a Value: a tensor among variables becomes one that is not tracked.
template <class Value, class E>
Value value_as(const E& e) {
  if constexpr (is_variable<Value> && !is_tracked_v<E>) return unrecorded<1>(eval(e));
  else return eval(e);
}

template <class Ready>
struct second_order_backward;

/// The tape entry of Ready. Below order 2 one type for nearly all formulas.
template <class Ready>
struct node_type {
  using type = elementwise_backward;
};
template <class Ready>
  requires(Ready::order >= 2)
struct node_type<Ready> {
  using type = second_order_backward<Ready>;  // grad/second_order.hpp
};
template <class Ready>
using node_for = typename node_type<Ready>::type;
template <class Ready>
inline constexpr bool is_plain_statement = std::is_same_v<node_for<Ready>, elementwise_backward>;

/// The tape entry of an elementwise expression without points, or null where none of its variables is tracked. Its
/// result (shape, and memory where a derivative reads it) is still to be filled in. `leaves` are those of `ready`.
template <class Ready>
owned_ptr<node_for<Ready>> make_statement(const Ready& ready, const leaf_ref* leaves) {
  const auto plan = plan_of<true>(ready);
  if constexpr (is_plain_statement<Ready>) {
    return make_entry(derivative_of_formula<Ready>(), &plan, leaves);
  } else {
    auto node = make_owned<node_for<Ready>>(derivative_of_formula<Ready>(), &plan);
    if constexpr (Ready::order >= 2) node->keep_graph(ready);
    if (!node->keep_leaves(leaves)) node.reset();
    return node;
  }
}

/// The variable of a formula's value, entered in the graph. `plan` is that of the derivative.
template <int Order, class T, int R, device D>
variable<T, R, D, Order> recorded(tensor<T, R, D> value, const formula_derivative& code, const void* plan,
                                  const leaf_ref* leaves) {
  state_ptr state = record_formula(code, plan, leaves, leaf_of(value), &make_state_like<tensor<T, R, D>>);
  return access::make_variable<Order>(std::move(value), std::move(state));
}
/// Enters `value`, which is that of `ready`, in the graph. `kept` is what the kernel of a point stored beside the
/// value, for an entry that has a member of that name.
template <class Ready, class Value, class... Kept>
auto record(const Ready& ready, const Value& value, const Kept&... kept) {
  const leaves_of<Ready> leaves(ready);
  if constexpr (is_plain_statement<Ready>) {
    const auto plan = plan_of<true>(ready);
    return recorded<Ready::order>(value, derivative_of_formula<Ready>(), &plan, leaves);
  } else {
    if (!recording()) return unrecorded<Ready::order>(value);
    auto node = make_statement(ready, leaves);
    if (!node) return unrecorded<Ready::order>(value);
    node->result.keep(leaf_of(value), node->code.reads_result);
    if constexpr (sizeof...(Kept) > 0 && requires { &node_for<Ready>::kept; }) node->kept = (kept, ...);
    return produced<Ready::order>(value, std::move(node));
  }
}
/// Runs a formula and enters its value in the graph. It is one function for all formulas with such a result. `tracked`
/// is the plan of the derivative.
template <int Order, class T, int R, device D>
[[gnu::noinline]] variable<T, R, D, Order> new_recorded(const formula& f, const void* plan,
                                                        const formula_derivative& code, const void* tracked,
                                                        const extents<R>& shape, const leaf_ref* leaves) {
  return recorded<Order>(new_value<T, R, D>(f, plan, shape, leaves), code, tracked, leaves);
}
template <class Ready>
evaluated<Ready> run_recorded(const Ready& ready) {
  const leaves_of<Ready> leaves(ready);
  if constexpr (is_plain_statement<Ready>) {
    const auto plan = plan_of<false>(ready);
    const auto tracked = plan_of<true>(ready);
    return new_recorded<Ready::order, element_of<Ready>, rank_of<Ready>, device_of<Ready>>(
        formula_of<Ready>(), &plan, derivative_of_formula<Ready>(), &tracked, ready.shape(), leaves);
  } else {
    return record(ready, value_of_formula(ready, leaves));
  }
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
    auto node = make_statement(e, leaves_of<E>(e));
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

}  // namespace detail
}  // namespace sinter
