// sinter/nn/any_module.hpp: a module whose type is hidden, so that a deep network is not one type.
#pragma once

#include <string>
#include <utility>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/grad/view.hpp"
#include "sinter/nn/state.hpp"
#include "sinter/nn/summary.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct module_on_another_device_than_any_module;
struct move_the_module_with_dot_to;
template <class>
struct parameter_or_buffer_that_any_module_cannot_hold;
struct use_rank_0_to_5_and_the_element_type_of_any_module;
template <class, class>
struct any_module_that_was_not_told_of_device;
struct name_the_device_in_nn_devices;

namespace nn {

/// The devices on which an any_module may live.
template <device... D>
struct devices {
  template <class X>
  static constexpr bool contain = (std::is_same_v<X, D> || ...);
};

template <element T, int R, device D, class Kind, class Devices>
class any_module;

namespace detail {

/// The types of parameters and buffers that an any_module may hold; their place in the list is their number.
template <class T, class D, class Kind>
using held_types = sinter::detail::kernel::type_list<
    parameter<T, 0, D, Kind>, parameter<T, 1, D, Kind>, parameter<T, 2, D, Kind>, parameter<T, 3, D, Kind>,
    parameter<T, 4, D, Kind>, parameter<T, 5, D, Kind>, buffer<T, 0, D>, buffer<T, 1, D>, buffer<T, 2, D>,
    buffer<T, 3, D>, buffer<T, 4, D>, buffer<T, 5, D>, buffer<std::int64_t, 0, D>, buffer<std::int64_t, 1, D>>;

template <class X, class... L>
constexpr int number_in(sinter::detail::kernel::type_list<L...>) {
  int i = 0, found = -1;
  static_cast<void>(((std::is_same_v<X, L> ? void(found = i++) : void(++i)), ...));
  return found;
}

/// Takes what an any_module holds, one by one; `number` is that of its type.
struct held_sink {
  void* to;
  void (*take)(void* to, const member_name&, const void* member, int number);
};

struct generator_sink {
  void* to;
  void (*take)(void* to, const member_name&, generator&);
  void operator()(const member_name& name, generator& g) const { take(to, name, g); }
};

/// Passes the members of a module on to a sink.
template <class Types>
struct pass_members {
  held_sink sink;
  template <class X>
  void operator()(const member_name& name, const X& x) const {
    if constexpr (is_stored<X>) sink.take(sink.to, name, &x, number_in<X>(Types{}));
  }
  template <class M>
  void erased(const member_name* name, const M& m) const {
    m.each_member(name, *this);
  }
};

/// Calls f(name, member) with the member in its type.
template <class F, class... L>
void call_typed(const F& f, const member_name& name, const void* member, int number,
                sinter::detail::kernel::type_list<L...>) {
  int i = 0;
  static_cast<void>(((i++ == number ? void(f(name, *static_cast<const L*>(member))) : void()), ...));
}

/// The visitor that finds a member which no any_module<T, ..., D, Kind> can hold.
template <class T, class D, class Kind>
struct holdable_members {
  template <class X>
    requires(!is_stored<X> || number_in<X>(held_types<T, D, Kind>{}) >= 0)
  void operator()(const member_name&, const X&) const {}
  template <class X, class Problem = parameter_or_buffer_that_any_module_cannot_hold<X>,
            class Fix = use_rank_0_to_5_and_the_element_type_of_any_module>
    requires(is_stored<X> && number_in<X>(held_types<T, D, Kind>{}) < 0)
  void operator()(const member_name&, const X&) const = delete;
  template <class M>
  void erased(const member_name*, const M&) const {}
};

/// Goes through the types of members that SINTER_MEMBERS lists, for the first one, Found, that no any_module<T, ..., D,
/// Kind> can hold.
template <class T, class D, class Kind, class Found = void>
struct find_unholdable {
  using found = Found;
};
template <class T, class D, class Kind, class Found, class X>
auto operator+(find_unholdable<T, D, Kind, Found> so_far, std::type_identity<X>) {
  if constexpr (!std::is_void_v<Found>) return so_far;
  else if constexpr (is_stored<X> && number_in<X>(held_types<T, D, Kind>{}) < 0)
    return find_unholdable<T, D, Kind, X>{};
  else if constexpr (requires { X::template fold_types<find_unholdable<T, D, Kind>, X>(); })
    return decltype(X::template fold_types<find_unholdable<T, D, Kind>, X>()){};  // declared, never defined
  else return so_far;
}
template <class M, class T, class D, class Kind>
using unholdable_in = typename decltype(find_unholdable<T, D, Kind>{} + std::type_identity<M>{})::found;

template <class T, int R, class To, class Kind, class Devices>
struct held_mover {
  any_module<T, R, To, Kind, Devices> (*moved)(const void*, member_copies&);
};

/// What is done with the module of an any_module; its address is the first argument.
template <class T, int R, class D, class Kind, class Devices>
struct held_actions;
template <class T, int R, class D, class Kind, class... Ds>
struct held_actions<T, R, D, Kind, devices<Ds...>> : held_mover<T, R, Ds, Kind, devices<Ds...>>... {
  using value_type = parameter<T, R, D, Kind>;
  void* (*copy)(const void*);
  void (*destroy)(void*) noexcept;
  value_type (*forward)(const void*, const value_type&);
  void (*each_member)(const member_name*, const void*, held_sink);
  void (*each_generator)(const member_name*, void*, generator_sink);
  void (*train)(void*, bool);
  void (*describe)(const member_name*, const void*, summary_builder&);
  any_module<T, R, D, plain, devices<Ds...>> (*plain_view)(const void*);
};

template <class M, class T, int R, class D, class Kind, class Devices>
struct held_module;
template <class M, class T, int R, class D, class Kind, class... Ds>
struct held_module<M, T, R, D, Kind, devices<Ds...>> {
  using value_type = parameter<T, R, D, Kind>;
  static const M& at(const void* m) { return *static_cast<const M*>(m); }

  static void* copy(const void* m) { return new M(at(m)); }
  static void destroy(void* m) noexcept { delete static_cast<M*>(m); }
  static value_type forward(const void* m, const value_type& x) { return at(m)(x); }
  static void each_member(const member_name* outer, const void* m, held_sink sink) {
    const pass_members<held_types<T, D, Kind>> pass{sink};
    walk(outer, pass, at(m));
  }
  static void each_generator(const member_name* outer, void* m, generator_sink sink) {
    const pick_generators<generator_sink> pick{sink};
    walk(outer, pick, *static_cast<M*>(m));
  }
  static void train(void* m, bool on) { static_cast<M*>(m)->train(on); }
  static void describe(const member_name* outer, const void* m, summary_builder& to) { to.add(outer, at(m)); }
  static auto plain_view(const void* m) { return any_module<T, R, D, plain, devices<Ds...>>(infer(at(m))); }
  template <class To>
  static auto moved(const void* m, member_copies& copies) {
    using Moved = typename rebound<M, To, typename M::kind>::type;
    auto copy = sinter::detail::make_owned<Moved>();
    const copy_members put{copies};
    walk(nullptr, put, *copy, at(m));
    return any_module<T, R, To, Kind, devices<Ds...>>(std::move(copy));
  }
  static constexpr held_actions<T, R, D, Kind, devices<Ds...>> actions{
      {&moved<Ds>}..., &copy, &destroy, &forward, &each_member, &each_generator, &train, &describe, &plain_view};
};

template <class M, class D, class Devices>
inline constexpr bool goes_everywhere = false;
template <class M, class D, class... Ds>
inline constexpr bool goes_everywhere<M, D, devices<Ds...>> =
    has_plain_twin<M> && (requires { typename rebound<M, Ds, typename M::kind>::type; } && ...);

/// What is wrong with holding M.
template <class M, class T, int R, class D, class Kind, class Devices>
constexpr auto find_held_mistake() {
  using sinter::detail::mistake;
  if constexpr (!is_module<M> || is_erased<M>) return sinter::detail::not_operands{};
  else if constexpr ((device<device_of<M>> && !on_device<M, D>) || requires { typename M::output_device; })
    return mistake<module_on_another_device_than_any_module<device_of<M>, D>, move_the_module_with_dot_to>{};
  else if constexpr (!goes_everywhere<M, D, Devices>)
    return mistake<module_that_is_no_template_of_device_and_kind<M>,
                   declare_it_template_device_D_class_Kind_or_give_it_a_rebind>{};
  else if constexpr (!std::is_void_v<unholdable_in<M, T, D, Kind>>)
    return mistake<parameter_or_buffer_that_any_module_cannot_hold<unholdable_in<M, T, D, Kind>>,
                   use_rank_0_to_5_and_the_element_type_of_any_module>{};
  else return input_check<const parameter<T, R, D, Kind>&, M>{};
}
template <class M, class T, int R, class D, class Kind, class Devices>
using held_mistake = decltype(find_held_mistake<bare<M>, T, R, D, Kind, Devices>());

}  // namespace detail

/// Holds any module from tensors of T, rank R, on D to such tensors, and is then that module: parameters, buffers,
/// state, names, training and errors are those of the one it holds. Code that uses it is compiled once for all of them,
/// so that compile time grows with the kinds of blocks of a network, not with their number.
///
/// Copies are those of the held module: they share its weights. Moves to devices that Devices names, D among them.
/// Kind tracked takes variables and plain tensors and gives variables; kind plain, which infer() makes, takes and gives
/// tensors. The held module's parameters and buffers have T as element type and rank 0 to 5; buffers may also be int64
/// of rank 0 and 1. Errors: value_error for a call while it is empty.
///
///     using block = nn::any_module<float, 2>;
///     nn::module_list<block> blocks;
///     blocks.push_back(nn::linear(8, 8, gen));
///     blocks.push_back(nn::relu());
template <element T, int R, device D = cpu, class Kind = tracked, class Devices = devices<D>>
class any_module : public module<any_module<T, R, D, Kind, Devices>> {
  static_assert(Devices::template contain<D>, "sinter: nn::devices of an any_module must name the device it lives on");

 public:
  using device_type = D;
  using kind = Kind;
  using value_type_of_module = parameter<T, R, D, Kind>;
  using erased_module = void;
  template <class To, class K>
    requires(Devices::template contain<To>)
  using rebind = any_module<T, R, To, K, Devices>;

  any_module() = default;
  template <class M>
    requires(sinter::detail::is_fitting<detail::held_mistake<M, T, R, D, Kind, Devices>>)
  any_module(M held)  // NOLINT: implicit on purpose
      : any_module(sinter::detail::make_owned<M>(std::move(held))) {}
  template <class M, class Problem = typename detail::held_mistake<M, T, R, D, Kind, Devices>::problem,
            class Fix = typename detail::held_mistake<M, T, R, D, Kind, Devices>::fix>
  any_module(M) = delete;

  any_module(const any_module& other)
      : module<any_module>(),
        held_(other.held_ == nullptr ? nullptr : other.actions_->copy(other.held_)),
        actions_(other.actions_) {}
  any_module(any_module&& other) noexcept : held_(std::exchange(other.held_, nullptr)), actions_(other.actions_) {}
  any_module& operator=(any_module other) noexcept {
    std::swap(held_, other.held_);
    std::swap(actions_, other.actions_);
    return *this;
  }
  ~any_module() {
    if (held_ != nullptr) actions_->destroy(held_);
  }

  /// Whether it holds a module.
  bool defined() const noexcept { return held_ != nullptr; }

  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::conversion_mistake<X, T, R, D, std::is_same_v<Kind, tracked> && is_tracked_v<X> ? 1 : 0>{};
  }
  template <class X>
  value_type_of_module forward(const X& x) const {
    if (held_ == nullptr) throw value_error("any_module: it holds no module");
    if constexpr (std::is_same_v<Kind, tracked> && !is_tracked_v<X>)
      return actions_->forward(held_, sinter::detail::unrecorded<1>(tensor<T, R, D>(x)));
    else return actions_->forward(held_, value_type_of_module(x));
  }

  /// Empty: what it holds has no types that could be listed.
  template <class F, class... M>
  static void visit(F&&, M&...) {}

  // For walk().
  template <class F>
  void each_member(const detail::member_name* outer, const F& f) const {
    if (held_ == nullptr) return;
    const auto take = [](void* to, const detail::member_name& name, const void* member, int number) {
      detail::call_typed(*static_cast<const F*>(to), name, member, number, detail::held_types<T, D, Kind>{});
    };
    actions_->each_member(outer, held_, {const_cast<F*>(&f), take});
  }
  template <class F>
  void each_generator(const detail::member_name* outer, const F& pick) const {
    if (held_ == nullptr) return;
    const auto take = [](void* to, const detail::member_name& name, generator& g) {
      static_cast<const F*>(to)->f(name, g);
    };
    actions_->each_generator(outer, held_, {const_cast<F*>(&pick), take});
  }
  void describe(const detail::member_name* outer, detail::summary_builder& to) const {
    if (held_ != nullptr) actions_->describe(outer, held_, to);
  }
  template <class To>
  any_module<T, R, To, Kind, Devices> moved(detail::member_copies& copies) const {
    if (held_ == nullptr) return {};
    const detail::held_mover<T, R, To, Kind, Devices>& mover = *actions_;
    return mover.moved(held_, copies);
  }
  any_module<T, R, D, plain, Devices> plain_view() const {
    if (held_ == nullptr) return {};
    return actions_->plain_view(held_);
  }
  void set_training(bool on) {
    if (held_ != nullptr) actions_->train(held_, on);
  }

 private:
  template <class, class, int, class, class, class>
  friend struct detail::held_module;

  template <class M>
  explicit any_module(sinter::detail::owned_ptr<M> held)
      : held_(held.get()), actions_(&detail::held_module<M, T, R, D, Kind, Devices>::actions) {
    static_cast<void>([](M& m) {
      const detail::holdable_members<T, D, Kind> look;
      detail::walk(nullptr, look, m);
    });
    static_cast<void>(held.release());
  }

  void* held_ = nullptr;
  const detail::held_actions<T, R, D, Kind, Devices>* actions_ = nullptr;
};

}  // namespace nn
}  // namespace sinter
