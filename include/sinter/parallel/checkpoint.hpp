// sinter/parallel/checkpoint.hpp: functions and modules that run again in backward instead of keeping what it needs.
//
// T. Chen, B. Xu, C. Zhang, C. Guestrin, "Training deep nets with sublinear memory cost", arXiv 1604.06174 (2016).
//
// The second run is a graph of its own, walked by a pass inside the pass that came to the call. What was there before,
// parameters and operands among them, belongs to the pass around: gradients go to it directly, so that leaves which
// only the function reaches are finished with the others, and a pass that fails leaves all gradients as they were.
#pragma once

#include <vector>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/grad/kernel_backward.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/grad/view.hpp"
#include "sinter/nn/buffer_log.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/random/distribution.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct operands_of_a_checkpoint_that_are_not_all_tensors;
struct capture_the_others_in_the_function;
template <class...>
struct checkpointed_function_that_does_not_take;
struct take_one_tensor_or_variable_for_each_operand;
template <class>
struct checkpointed_function_that_returns;
struct return_one_tensor_variable_or_expression;
template <int>
struct checkpoint_of_variables_of_order;
struct use_variables_of_order_1;
template <class>
struct checkpointed_module_that_is_no_module;
struct give_a_module_or_call_sinter_checkpoint_with_a_function;

namespace detail {

/// The device to keep X on: Store, or where it is.
template <class X, class Store>
using kept_device = std::conditional_t<std::is_same_v<Store, any_device>, device_of<X>, Store>;

/// An operand from forward to backward: its value on Store, and its place in the graph.
template <class X, class Store>
class checkpoint_operand {
  using value_type = tensor<element_of<X>, rank_of<X>, kept_device<X, Store>>;

 public:
  explicit checkpoint_operand(const X& x)
      : value_(plain(x).template to<device_of<value_type>>()), state_(state_of(x)), version_(version()) {}
  const state_ptr& state() const { return state_; }
  /// Errors: autograd_error if it was written to since.
  void check_version(int number) const {
    if (version() != version_)
      refuse<autograd_error>({"checkpoint: operand ", number, " of shape ", value_.shape(),
                              " was modified in place after the call; its backward runs the function again: pass a "
                              "clone(), or write to it after backward()"});
  }
  X get() const {
    const auto value = value_.template to<device_of<X>>();
    if constexpr (is_variable<X>) return access::make_variable<1>(value, state_);
    else return value;
  }

 private:
  static state_ptr state_of(const X& x) {
    if constexpr (is_variable<X>) return access::state_of(x);
    else return {};
  }
  std::uint64_t version() const { return access::storage_of(value_)->version.load(std::memory_order_relaxed); }

  value_type value_;
  state_ptr state_;
  std::uint64_t version_;
};

}  // namespace detail

namespace nn::detail {

/// Calls f(name, version) for each parameter that has a value.
template <class F>
struct pick_versions {
  F f;
  template <class X>
  void operator()(const member_name& name, const X& x) const {
    if constexpr (is_parameter<X>)
      if (x.defined())
        f(name, sinter::detail::access::storage_of(stored_value(x))->version.load(std::memory_order_relaxed));
  }
  template <class M>
  void erased(const member_name* name, const M& m) const {
    m.each_member(name, *this);
  }
};
template <class F>
pick_versions(F) -> pick_versions<F>;

/// Lists the states of tracked parameters.
struct pick_states {
  std::vector<sinter::detail::state_ptr>& to;
  template <class X>
  void operator()(const member_name&, const X& x) const {
    if constexpr (is_variable<X>)
      if (x.defined()) to.push_back(sinter::detail::access::state_of(x));
  }
  template <class M>
  void erased(const member_name* name, const M& m) const {
    m.each_member(name, *this);
  }
};

/// The versions of a module's parameters: lists them, or looks whether one was written to since.
struct parameter_versions {
  std::vector<std::uint64_t> seen;

  template <class M>
  void list(const M& m) {
    const pick_versions now{[this](const member_name&, std::uint64_t v) { seen.push_back(v); }};
    walk(nullptr, now, m);
  }
  /// Errors: autograd_error with the name of one that was.
  template <class M>
  void check_versions(const M& m) const {
    std::size_t i = 0;
    const pick_versions now{[&](const member_name& name, std::uint64_t v) {
      if (v != seen[i++])
        sinter::detail::refuse<autograd_error>(
            {"checkpoint: parameter '", name.text(),
             "' was modified in place after the call; its backward runs the module again: call backward() first, and "
             "then step the optimizer"});
    }};
    walk(nullptr, now, m);
  }
};

}  // namespace nn::detail

namespace detail {

/// The tape entry of a call of F that gave a Y.
template <class F, class Y, class Store, class... X>
class checkpoint_backward final : public tape_entry {
 public:
  explicit checkpoint_backward(const F& function, const X&... x)
      : function_(function), operands_(make_pack(checkpoint_operand<X, Store>(x)...)), samples_(current_samples()) {
    name = "checkpoint";
    operands_->each([this](const auto& operand) { states_.push_back(operand.state()); });
    if constexpr (nn::is_module<F>) {
      versions_.list(*function_);
      list_parameters();
    } else {
      hides_inputs = true;  // what the function captures
    }
  }

  /// The first run, of the caller's own function, which records nothing.
  auto run(const F& function, const X&... x) {
    const no_grad guard;
    const draw_source draws(draws_, draw_source::role::writes);
    const nn::detail::buffer_run buffers(buffers_, nn::detail::buffer_run::which::first);
    return plain(Y(eval(function(x...))));
  }

  const state_ptr* inputs(int& count) const override {
    count = static_cast<int>(states_.size());
    return states_.data();
  }
  void release() override {
    function_.reset();
    operands_.reset();
    buffers_.entries.clear();
  }

  void backward(grad_state& of_result) override {
    auto& y = static_cast<typed_state<element_of<Y>, Y::rank, device_of<Y>>&>(of_result);
    int number = 0;
    operands_->each([&](const auto& operand) { operand.check_version(++number); });
    if constexpr (nn::is_module<F>) versions_.check_versions(*function_);
    const std::uint64_t first_order = grad_state::next_order();
    state_ptr root;
    {
      const Y again = run_again();
      if (!(again.shape() == y.shape))
        refuse<shape_error>({"checkpoint: the function gave shape ", again.shape(), " when it ran again, and ", y.shape,
                             " before; it must do the same in every run"});
      root = access::state_of(again);
    }
    if (!root) return;  // nothing in it is tracked
    const bool is_new = root->order >= first_order;
    if (!is_new) running_pass::current()->take_over(root);  // an operand, or what the function captures
    add_gradient(root, y.retain ? y.grad : tensor<element_of<Y>, Y::rank, device_of<Y>>(std::move(y.grad)));
    if (is_new) walk_back(root, false, first_order);
  }

 private:
  /// On a thread that may be another, and under whatever guards: what the first run had, and records.
  Y run_again() {
    struct recording_on {
      const int guards = std::exchange(no_grad_guards(), 0);
      ~recording_on() { no_grad_guards() = guards; }
    } const recorded;
    const samples_from samples(samples_);
    const draw_source draws(draws_, draw_source::role::repeats);
    const nn::detail::buffer_run buffers(buffers_, nn::detail::buffer_run::which::again);
    return operands_->apply([this](const auto&... operand) { return Y(eval((*function_)(operand.get()...))); });
  }

  void list_parameters() {
    const nn::detail::pick_states list{states_};
    nn::detail::walk(nullptr, list, *function_);
  }

  std::optional<F> function_;
  std::optional<pack<checkpoint_operand<X, Store>...>> operands_;
  std::vector<state_ptr> states_;
  sample_numbers samples_;
  draw_log draws_;
  nn::detail::buffer_log buffers_;
  nn::detail::parameter_versions versions_;
};

template <class F, class... X>
using checkpoint_result = decltype(std::declval<const F&>()(std::declval<const X&>()...));

template <class F, class... X>
concept runs_on = requires(const F& f, const X&... x) { f(x...); };

template <class F, class... X>
constexpr auto find_checkpoint_mistake() {
  if constexpr (!(expression<X> && ...))
    return mistake<operands_of_a_checkpoint_that_are_not_all_tensors<X...>, capture_the_others_in_the_function>{};
  else if constexpr (((X::order > 1) || ...))
    return mistake<checkpoint_of_variables_of_order<2>, use_variables_of_order_1>{};
  else if constexpr (requires { typename F::no_forward; }) return typename F::no_forward{};
  else if constexpr (nn::is_module<F> && sizeof...(X) == 1 && !(same_device<X, F> && ...))
    return mistake<module_fed_from_another_device<device_of<X>..., device_of<F>>, copy_the_input_with_dot_to>{};
  else if constexpr (!runs_on<F, evaluated<X>...>)
    return mistake<checkpointed_function_that_does_not_take<evaluated<X>...>,
                   take_one_tensor_or_variable_for_each_operand>{};
  else if constexpr (!expression<checkpoint_result<F, evaluated<X>...>>)
    return mistake<checkpointed_function_that_returns<checkpoint_result<F, evaluated<X>...>>,
                   return_one_tensor_variable_or_expression>{};
  else if constexpr ((bare<checkpoint_result<F, evaluated<X>...>>::order > 1))
    return mistake<checkpoint_of_variables_of_order<2>, use_variables_of_order_1>{};
  else return fitting<void>{};
}
template <class F, class... X>
using checkpoint_mistake = decltype(find_checkpoint_mistake<bare<F>, bare<X>...>());

template <class Store, class F, class... X>
auto run_checkpoint(const F& f, const X&... x) {
  using Y = evaluated<checkpoint_result<F, X...>>;
  if constexpr (!is_variable<Y>) {
    return Y(eval(f(x...)));
  } else {
    if (!recording()) return Y(eval(f(x...)));
    (check_defined("checkpoint", x), ...);
    auto entry = sinter::detail::make_owned<checkpoint_backward<F, Y, Store, X...>>(f, x...);
    const auto value = entry->run(f, x...);
    return Y(produced<1>(value, std::move(entry)));
  }
}

}  // namespace detail

/// f(x...), of which only the operands are kept for backward: there f runs again, with what backward needs recorded. So
/// the memory of a chain of checkpoints is that of their operands and of the largest one alone, for one more forward in
/// time. As torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False). f is a module, or a function of tensors and
/// variables that returns one of them or an expression; the result is what f(x...) evaluates to.
///
/// The second run repeats the first: dropout and other draws have the same numbers, and generators are not moved on;
/// buffers of modules, such as the running moments of a batch norm, are read as they were and not written to again.
/// f is copied. Whatever it refers to must be there, and as it was, in backward: a variable that it captures gets its
/// gradient as an operand does. Checkpoints may stand inside one another.
///
/// With checkpoint<Store>(f, x...) the values of the operands lie on device Store from forward to backward: their
/// memory where they are is free meanwhile, if nobody else holds it. Both copies are waited for.
///
/// Errors, all in backward(): autograd_error for an operand, or a parameter or buffer of a module f, that was written
/// to after the call; value_error where f draws more often, and shape_error where it gives another shape, than in its
/// first run.
///
///     variable y = checkpoint(block, x);                                                    // a module
///     variable z = checkpoint<cpu>([&](const auto& a, const auto& b) { return relu(fc(a) + b); }, x, y);
template <device Store, class F, class... X>
  requires(sizeof...(X) > 0 && detail::is_fitting<detail::checkpoint_mistake<F, X...>>)
auto checkpoint(const F& f, X&&... x) {
  return detail::run_checkpoint<Store>(f, detail::eval_to_read(std::forward<X>(x))...);
}
template <class F, class... X>
  requires(sizeof...(X) > 0 && detail::is_fitting<detail::checkpoint_mistake<F, X...>>)
auto checkpoint(const F& f, X&&... x) {
  return detail::run_checkpoint<any_device>(f, detail::eval_to_read(std::forward<X>(x))...);
}
template <class F, class... X, class Problem = typename detail::checkpoint_mistake<F, X...>::problem,
          class Fix = typename detail::checkpoint_mistake<F, X...>::fix>
  requires(sizeof...(X) > 0)
void checkpoint(const F&, X&&...) = delete;
template <device Store, class F, class... X, class Problem = typename detail::checkpoint_mistake<F, X...>::problem,
          class Fix = typename detail::checkpoint_mistake<F, X...>::fix>
  requires(sizeof...(X) > 0)
void checkpoint(const F&, X&&...) = delete;

namespace nn {

namespace detail {

/// Names where the output is, for modules that say so.
template <class M>
struct output_as_of {};
template <class M>
  requires requires { typename M::output_device; }
struct output_as_of<M> {
  using output_device = typename M::output_device;
};

template <class M>
constexpr auto find_checkpointed_mistake() {
  using sinter::detail::mistake;
  if constexpr (!is_module<M>)
    return mistake<checkpointed_module_that_is_no_module<M>, give_a_module_or_call_sinter_checkpoint_with_a_function>{};
  else if constexpr (requires { typename M::no_forward; }) return typename M::no_forward{};
  else return sinter::detail::fitting<void>{};
}
template <class M>
using checkpointed_mistake = decltype(find_checkpointed_mistake<M>());

}  // namespace detail

/// What checkpointed() returns: M, each call of which is a checkpoint(). Parameters and buffers have M's names.
template <is_module M, class Store = any_device>
struct checkpointed_module : module<checkpointed_module<M, Store>>, detail::output_as_of<M> {
  using device_type = device_of<M>;
  using kind = typename M::kind;
  template <class To, class K>
  using rebind = checkpointed_module<typename detail::rebound<M, To, K>::type, Store>;
  template <class K>
  using as = checkpointed_module<typename detail::kind_changed<M, K>::type, Store>;

  checkpointed_module() = default;
  explicit checkpointed_module(M m) : module(std::move(m)) {}

  M module;

  template <class X>
  auto forward(X&& x) const {
    if constexpr (std::is_same_v<Store, any_device>) return sinter::checkpoint(module, std::forward<X>(x));
    else return sinter::checkpoint<Store>(module, std::forward<X>(x));
  }
  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    if constexpr (detail::is_erased<M>) f("module", s.module...);
    else M::visit(f, s.module...);
  }
};

/// The module with each call as a checkpoint(); with checkpointed<Store>(m) its operand lies on Store until backward.
/// It shares m's parameters, and named_parameters() and state() are m's.
///
///     nn::module_list blocks(12, [&] { return nn::checkpointed(make_block(gen)); });
///     nn::sequential model{nn::checkpointed<cpu>(first), nn::checkpointed<cpu>(second), last};
template <class M>
  requires(sinter::detail::is_fitting<detail::checkpointed_mistake<M>>)
checkpointed_module<M> checkpointed(const M& m) {
  return checkpointed_module<M>(m);
}
template <device Store, class M>
  requires(sinter::detail::is_fitting<detail::checkpointed_mistake<M>>)
checkpointed_module<M, Store> checkpointed(const M& m) {
  return checkpointed_module<M, Store>(m);
}
template <class M, class Problem = typename detail::checkpointed_mistake<M>::problem,
          class Fix = typename detail::checkpointed_mistake<M>::fix>
void checkpointed(const M&) = delete;
template <device Store, class M, class Problem = typename detail::checkpointed_mistake<M>::problem,
          class Fix = typename detail::checkpointed_mistake<M>::fix>
void checkpointed(const M&) = delete;

}  // namespace nn
}  // namespace sinter
