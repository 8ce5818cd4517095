// sinter/core/device.hpp: the names of devices in error messages, and which of them there are.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "sinter/core/declare.hpp"
#include "sinter/core/error.hpp"

namespace sinter {

/// "cpu", "numa:1", "cuda:0".
template <device D>
std::string device_name() {
  if constexpr (std::is_same_v<D, cpu>) return "cpu";
  else return (is_cuda_v<D> ? "cuda:" : "numa:") + std::to_string(device_ordinal_v<D>);
}

/// A host device is always there; a GPU only with a driver and the device (see cuda/).
template <device D>
bool available();

namespace detail {

template <class E>
struct device_of_impl {};
template <class E>
  requires requires { typename E::device_type; }
struct device_of_impl<E> {
  using type = typename E::device_type;
};

}  // namespace detail

/// The device of a tensor, variable, expression or module.
template <class E>
using device_of = typename detail::device_of_impl<detail::bare<E>>::type;

/// True when A and B live on one device; a literal lives on any.
template <class A, class B>
concept same_device = std::is_same_v<device_of<A>, device_of<B>> || std::is_same_v<device_of<A>, any_device> ||
                      std::is_same_v<device_of<B>, any_device>;

/// An expression, tensor, variable or module that lives on D.
template <class E, class D>
concept on_device = device<D> && std::is_same_v<device_of<E>, D>;

// Names that appear in the error message of a deleted overload: what is wrong, and the way out.
template <class...>
struct operands_on_different_devices;
template <class...>
struct mixed_element_types;
template <class>
struct floating_literal_with_elements_of_type;
template <class>
struct no_host_access_to_memory_of;
struct copy_one_operand_with_dot_to;
struct convert_one_operand_with_cast;
struct write_an_integer_literal_or_cast_the_tensor;
struct copy_to_the_host_with_dot_to_cpu;

/// Calls `f(D{})` with the device of `Ds...` that `choice` names ("cpu", "cuda:0", "numa:1"), or with the first one
/// available when choice is empty or "auto". Throws device_error when the name is not in the list or not available.
template <device... Ds, class F>
decltype(auto) with_device(std::string_view choice, F&& f);

namespace detail {

/// Why D is not available; nothing if it is.
template <device D>
std::string trouble_with();

template <device D>
bool device_matches(std::string_view choice) {
  if (choice.empty() || choice == "auto") return available<D>();
  return choice == device_name<D>() || (choice == "cuda" && is_cuda_v<D> && device_ordinal_v<D> == 0);
}

struct listed_device {
  std::string name;
  bool is_available;
};
/// "cpu, cuda:0 (not available)".
SINTER_SHARED_COLD std::string devices_listed(std::initializer_list<listed_device> devices);
#if SINTER_DEFINES
SINTER_SHARED_COLD std::string devices_listed(std::initializer_list<listed_device> devices) {
  std::string text;
  for (const listed_device& d : devices)
    text += (text.empty() ? "" : ", ") + d.name + (d.is_available ? "" : " (not available)");
  return text;
}
#endif
template <device... Ds>
std::string device_list() {
  return devices_listed({{device_name<Ds>(), available<Ds>()}...});
}

template <class F, device D, device... Ds>
decltype(auto) with_device_impl(std::string_view choice, F& f, std::string (*all)()) {
  if (device_matches<D>(choice)) {
    if (const std::string trouble = trouble_with<D>(); !trouble.empty())
      refuse<device_error>({"with_device: ", device_name<D>(), " is not available: ", trouble});
    return f(D{});
  }
  if constexpr (sizeof...(Ds) > 0) {
    return with_device_impl<F, Ds...>(choice, f, all);
  } else {
    refuse<device_error>({"with_device: '", choice, "' is none of the devices this program chooses from: ", all()});
    return f(D{});
  }
}

}  // namespace detail

template <device... Ds, class F>
decltype(auto) with_device(std::string_view choice, F&& f) {
  static_assert(sizeof...(Ds) > 0, "sinter: with_device<D...> needs at least one device");
  return detail::with_device_impl<F, Ds...>(choice, f, &detail::device_list<Ds...>);
}

}  // namespace sinter
