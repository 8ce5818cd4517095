// sinter/grad/with_gradient.hpp: functions whose derivative the user writes.
#pragma once

#include <optional>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/grad/function_mistakes.hpp"

namespace sinter {

namespace detail {

/// A saved value, with its version where it is a tensor.
template <class S>
class kept_value {
 public:
  explicit kept_value(S value) : value_(std::move(value)), version_(version_now()) {}
  const S& get() const { return value_; }
  /// Errors: autograd_error if it was written to since.
  void check_version(const char* name, int number) const {
    if constexpr (is_tensor<S>)
      if (version_now() != version_)
        refuse<autograd_error>(
            {"backward of '", name, "': saved value ", number, " of shape ", value_.shape(),
             " was modified in place after the call; save a clone(), or write to it after backward()"});
  }

 private:
  std::uint64_t version_now() const {
    if constexpr (is_tensor<S>)
      if (value_.defined()) return access::storage_of(value_)->version.load(std::memory_order_relaxed);
    return 0;
  }

  S value_;
  std::uint64_t version_;
};

/// The tape entry of a call with result Y, operands X and saved values S.
template <class B, class Y, class Saved, class Operands>
class function_backward;
template <class B, class Y, class... S, class... X>
class function_backward<B, Y, types<S...>, types<X...>> final : public tape_entry {
 public:
  function_backward(const char* called, const B& function, const state_ptr (&sources)[sizeof...(X)],
                    const pack<S...>& saved)
      : backward_(function), saved_(saved.apply([](const auto&... s) { return make_pack(kept_value<S>(s)...); })) {
    name = called;
    std::copy(sources, sources + sizeof...(X), sources_);
  }

  const state_ptr* inputs(int& count) const override {
    count = sizeof...(X);
    return sources_;
  }
  void release() override {
    backward_.reset();
    saved_.reset();
  }
  void backward(grad_state& y) override {
    int number = 0;
    saved_->each([&](const auto& s) { s.check_version(name, ++number); });
    const Y& g = static_cast<state_of<Y>&>(y).grad;
    give(saved_->apply([&](const auto&... s) { return (*backward_)(g, s.get()...); }));
  }

 private:
  template <class X0>
  using state_of = typed_state<element_of<X0>, X0::rank, device_of<X0>>;

  template <class G>
  void give(G&& gradient) const {
    give_to<X...>(0, std::forward<G>(gradient));
  }
  template <class... G>
  void give(gradient_list<G...>&& all) const {
    all.each.apply([this](const auto&... g) {
      int operand = 0;
      (this->template give_to<X>(operand++, g), ...);
    });
  }
  /// Adds the gradient g to that of an operand.
  template <class Operand, class G>
  void give_to(int operand, const G& g) const {
    if constexpr (expression<G>) {
      const state_ptr& source = sources_[operand];
      if (!source) return;
      check_defined(name, g);
      auto& s = static_cast<state_of<Operand>&>(*source);
      if (!(g.shape() == s.shape))
        refuse<shape_error>({"backward of '", name, "': the gradient of operand ", operand + 1, " has shape ",
                             g.shape(), ", the operand has shape ", s.shape, "; return one of that shape"});
      auto&& ready = materialise(g);
      if constexpr (is_tensor<bare<decltype(ready)>>)
        if (is_ours(g, ready)) return add_gradient(source, ready);
      bool add = false;
      s.gradient(add);
      write_or_add(ready, s.grad, add);
    }
  }

  /// May the memory of g's value become that of a gradient, if no other handle shows it?
  template <class G, class Value>
  static bool is_ours(const G& g, const Value& value) {
    if constexpr (is_point<G>) return g.only_owner();
    else return !access::storage_of(value)->borrowed;
  }

  std::optional<B> backward_;
  std::optional<pack<kept_value<S>...>> saved_;
  state_ptr sources_[sizeof...(X)];
};

template <class A>
state_ptr state_of_operand(const A& a) {
  if constexpr (is_variable<A>) return access::state_of(a);
  else return {};
}

}  // namespace detail

/// What with_gradient() returns: a function of tensors, variables and expressions of them.
template <class F, class B, device... Where>
class function_with_gradient {
  template <class... A>
  using call_check = detail::call_check<detail::types<Where...>, F, B, A...>;

 public:
  function_with_gradient(F forward, B backward, const char* name)
      : forward_(std::move(forward)), backward_(std::move(backward)), name_(name) {}

  /// Runs forward on the values of the operands: a tensor, or a variable if an operand is tracked.
  template <class... A>
  typename detail::call_result<detail::is_fitting<call_check<A...>>, F, detail::bare<A>...>::type operator()(
      A&&... operands) const {
    (detail::check_defined(name_, operands), ...);
    return call(detail::eval_to_read(std::forward<A>(operands))...);
  }
  /// What does not fit is rejected, with the reason as Problem and the way out as Fix.
  template <class... A, class Problem = typename call_check<A...>::problem, class Fix = typename call_check<A...>::fix>
  void operator()(A&&...) const = delete;

 private:
  template <class... A>
  typename detail::call_result<true, F, A...>::type call(const A&... operands) const {
    using parts = detail::forward_parts<F, A...>;
    using Y = detail::forward_value<F, A...>;
    auto all = forward_(detail::plain(operands)...);
    Y value;
    if constexpr (expression<decltype(all)>) value = eval(std::move(all));
    else value = eval(std::move(all.value));
    if (!value.defined()) detail::refuse<value_error>({name_, ": forward returned an empty tensor"});
    if constexpr ((is_tracked_v<A> || ...)) {
      const detail::state_ptr sources[] = {detail::state_of_operand(operands)...};
      bool tracked = false;
      for (const detail::state_ptr& s : sources) tracked = tracked || s;
      if (!tracked || !detail::recording()) return detail::unrecorded<1>(value);
      using node = detail::function_backward<B, Y, typename parts::saved, detail::types<detail::plain_operand<A>...>>;
      if constexpr (expression<decltype(all)>)
        return detail::produced<1>(value, detail::make_owned<node>(name_, backward_, sources, detail::pack<>()));
      else return detail::produced<1>(value, detail::make_owned<node>(name_, backward_, sources, all.saved));
    } else {
      return value;
    }
  }

  F forward_;
  B backward_;
  const char* name_;
};

/// A function whose derivative is the one that its user writes. forward takes the values of the operands, as tensors,
/// and returns a tensor or an expression, or with_saved(y, s, ...) to hand values to backward. backward takes the
/// gradient of the result, a tensor of its shape, and each saved value, and returns the gradient of the operand: a
/// tensor or an expression of the operand's shape, element type and device; gradients(g, ...) where there are several
/// operands, zero_gradient for one on which the result does not depend.
///
/// The function runs where it is called. Its result is a tensor, or a variable if an operand is one; under no_grad
/// nothing is saved. Operands are on one device, unless with_gradient<D, ...>() names the device of each; variables are
/// of order 1. backward must not write to what it gets. The name, a literal, stands in messages. Errors: autograd_error
/// in backward() for a saved tensor that was written to, shape_error for a gradient of another shape, and what the two
/// functions throw.
///
///     const auto rounded = with_gradient([](const auto& x) { return round(x); },     // straight through
///                                        [](const auto& g) { return g; });
///     variable y = rounded(x * 4) / 4;
///     const auto product = with_gradient([](const auto& a, const auto& b) { return with_saved(a * b, a, b); },
///                                        [](const auto& g, const auto& a, const auto& b) { return gradients(g * b, g * a); });
template <device... Where, class F, class B>
function_with_gradient<F, B, Where...> with_gradient(F forward, B backward, const char* name = "with_gradient") {
  return {std::move(forward), std::move(backward), name};
}

}  // namespace sinter
