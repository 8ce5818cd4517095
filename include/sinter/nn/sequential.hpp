// sinter/nn/sequential.hpp: modules one after the other, their devices checked where they are put together.
#pragma once

#include "sinter/expr/evaluate.hpp"
#include "sinter/nn/module.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct adjacent_modules_on_different_devices;
struct put_a_transfer_between_them_or_move_one_with_dot_to;

namespace nn {

namespace detail {

template <std::size_t I, class M>
struct slot {
  M module;
};

/// A number for each device, so that a chain is checked by a loop rather than by recursion over types.
template <class D>
constexpr int device_code() {
  if constexpr (std::is_same_v<D, any_device>) return -1;
  else return device_ordinal_v<D> * 3 + (std::is_same_v<D, cpu> ? 0 : is_cuda_v<D> ? 1 : 2);
}

template <class M>
concept has_device = requires { typename sinter::detail::bare<M>::device_type; };
/// Of what is no module -1: a function takes its input wherever that is.
template <class M>
constexpr int code_of_input() {
  if constexpr (has_device<M>) return device_code<device_of<M>>();
  else return -1;
}
template <class M>
constexpr int code_of_output() {
  if constexpr (has_device<M>) return device_code<typename output_device<M>::type>();
  else return -1;
}

struct chain_report {
  int input = -1;   ///< index of the module whose device the input must be on
  int output = -1;  ///< and of the one that decides where the output is
  int before = -1;  ///< the first pair that does not fit: what `before` gives, `after` does not take
  int after = -1;
};

template <class... M>
constexpr chain_report check_chain() {
  constexpr int n = sizeof...(M);
  const int in[std::size_t{n + 1}] = {code_of_input<M>()...};
  const int out[std::size_t{n + 1}] = {code_of_output<M>()...};
  chain_report r;
  for (int i = 0; i < n; ++i) {
    if (in[i] < 0) continue;
    if (r.input < 0) r.input = i;
    if (r.output >= 0 && out[r.output] != in[i] && r.before < 0) {
      r.before = r.output;
      r.after = i;
    }
    r.output = i;
  }
  return r;
}

template <int I, class First, class... Rest>
struct nth {
  using type = typename nth<I - 1, Rest...>::type;
};
template <class First, class... Rest>
struct nth<0, First, Rest...> {
  using type = First;
};

template <class... M>
concept fitting_chain = check_chain<M...>().before < 0;

template <class... M>
struct chain_devices {
  static constexpr chain_report report = check_chain<M...>();
  template <int I, bool Output>
  static constexpr auto device_at() {
    if constexpr (I < 0) return any_device{};
    else if constexpr (Output) return typename output_device<typename nth<I, M...>::type>::type{};
    else return device_of<typename nth<I, M...>::type>{};
  }
  using input = decltype(device_at<report.input, false>());
  using output = decltype(device_at<report.output, true>());
  using gives = decltype(device_at<report.before, true>());
  using takes = decltype(device_at<report.after, false>());
  static constexpr bool one_device =
      std::is_same_v<input, output> && ((device_code<device_of<M>>() < 0 || on_device<M, input>) && ...);
};

template <class V>
struct carried {
  V value;
};
template <class V, std::size_t I, class M>
auto operator|(carried<V>&& c, const slot<I, M>& s) {
  auto y = s.module(std::move(c.value));
  return carried<decltype(y)>{std::move(y)};
}

/// The chain on types alone: X reaches the next module, and Verdict says whether the modules before took their inputs.
template <class Verdict, class X>
struct carried_type {
  using verdict = Verdict;
};
template <class Verdict, class X, class M>
auto operator|(carried_type<Verdict, X> c, std::type_identity<M>) {
  if constexpr (sinter::detail::is_fitting<Verdict>) {
    using verdict = input_check<X, M>;
    if constexpr (sinter::detail::is_fitting<verdict>)
      return carried_type<verdict, decltype(std::declval<const M&>()(std::declval<X>()))>{};
    else return carried_type<verdict, X>{};
  } else {
    return c;
  }
}
template <class X, class... M>
using chain_mistake =
    typename decltype((carried_type<sinter::detail::fitting<void>, X>{} | ... | std::type_identity<M>{}))::verdict;

template <class Index, class... M>
struct slot_pack;
template <std::size_t... I, class... M>
struct slot_pack<std::index_sequence<I...>, M...> : slot<I, M>... {
  slot_pack() = default;
  explicit slot_pack(M&&... m) : slot<I, M>{std::move(m)}... {}

  template <class X>
  auto run(const X& x) const {
    return through(carried<X>{x}).value;
  }
  /// c | first module | second module | ...
  template <class C>
  auto through(C c) const {
    return (std::move(c) | ... | static_cast<const slot<I, M>&>(*this));
  }
  template <class F, class... S>
  static void visit_all(F& f, S&... s) {
    (visit_one<I>(f, s...), ...);
  }
  template <std::size_t N, class F, class... S>
  static void visit_one(F& f, S&... s) {
    f(sinter::detail::joined({N}), s.template get<N>()...);
  }
};

/// Present, as output_device, only where a chain spans devices.
template <class Devices, bool OneDevice = Devices::one_device || std::is_same_v<typename Devices::input, any_device>>
struct chain_output {};
template <class Devices>
struct chain_output<Devices, false> {
  using output_device = typename Devices::output;
};

}  // namespace detail

// Names in messages.
struct sequential_without_modules;
struct write_the_modules_in_its_braces_or_use_module_list;
struct write_dot_get_with_the_number_in_angle_brackets;

/// Feeds each module's value to the next. Elementwise modules are expressions that run inside what follows or precedes
/// them. Modules on different devices need a transfer between them. Parameters are named "0.weight", "2.bias", ...
///
///     nn::sequential model{nn::linear(64, 128, gen), nn::relu(), nn::linear(128, 10, gen)};
template <class... M>
struct sequential : module<sequential<M...>>, detail::chain_output<detail::chain_devices<M...>> {
  using devices = detail::chain_devices<M...>;
  using device_type = typename devices::input;
  using kind = std::conditional_t<(std::is_same_v<typename M::kind, tracked> || ...), tracked, plain>;
  template <class D, class K>
  using rebind = sequential<typename detail::rebound<M, D, K>::type...>;
  template <class K>
  using as = sequential<typename detail::kind_changed<M, K>::type...>;

  sequential() = default;
  explicit sequential(M... m)
    requires(sizeof...(M) > 0 && detail::fitting_chain<M...>)
      : slots_(std::move(m)...) {}
  template <class Problem = adjacent_modules_on_different_devices<typename devices::gives, typename devices::takes>,
            class Fix = put_a_transfer_between_them_or_move_one_with_dot_to>
    requires(!detail::fitting_chain<M...>)
  explicit sequential(M...) = delete;

  template <class X>
  static constexpr auto mistake() {
    return detail::chain_mistake<X, M...>{};
  }
  template <class X>
  auto forward(const X& x) const {
    return slots_.run(x);
  }

  /// Module number N.
  template <std::size_t N>
  auto& get() {
    return element<N>(slots_);
  }
  template <std::size_t N>
  const auto& get() const {
    return element<N>(slots_);
  }
  static constexpr std::size_t size() { return sizeof...(M); }
  template <class I, class Problem = sinter::number_where_the_type_depends_on_it,
            class Fix = write_dot_get_with_the_number_in_angle_brackets>
  void operator[](I) const = delete;
  SINTER_MEMBER_NAMED_OTHERWISE(add, write_the_modules_in_its_braces_or_use_module_list)
  SINTER_MEMBER_NAMED_OTHERWISE(append, write_the_modules_in_its_braces_or_use_module_list)
  SINTER_MEMBER_NAMED_OTHERWISE(push_back, write_the_modules_in_its_braces_or_use_module_list)

  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    slot_pack::visit_all(f, s...);
  }

 private:
  using slot_pack = detail::slot_pack<std::make_index_sequence<sizeof...(M)>, M...>;
  template <std::size_t N, class X>
  static X& module_in(detail::slot<N, X>& s) {
    return s.module;
  }
  template <std::size_t N, class X>
  static const X& module_in(const detail::slot<N, X>& s) {
    return s.module;
  }
  template <std::size_t N, class S>
  static auto& element(S& s) {
    static_assert(N < sizeof...(M), "sinter: sequential has fewer modules");
    return module_in<N>(s);
  }

  slot_pack slots_;
};
template <>
struct sequential<> {
  template <class Problem = sequential_without_modules, class Fix = write_the_modules_in_its_braces_or_use_module_list>
  sequential() = delete;
};
template <class... M>
sequential(M...) -> sequential<M...>;

/// The bridge between devices: copies its input from From to To, and the gradient back.
///
///     nn::sequential model{conv_part, nn::transfer<numa<0>, cpu>(), dense_part};
template <device From, device To>
struct transfer : module<transfer<From, To>> {
  using device_type = From;
  using output_device = To;
  using kind = plain;
  template <class K>
  using as = transfer;

  template <class X>
  auto forward(X&& x) const {
    return sinter::eval(std::forward<X>(x)).template to<To>();
  }
  template <class F, class... M>
  static void visit(F&&, M&...) {}
};

}  // namespace nn
}  // namespace sinter
