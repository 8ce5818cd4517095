// sinter/nn/function.hpp: a function as a module of a chain.
#pragma once

#include "sinter/nn/activation.hpp"
#include "sinter/nn/sequential.hpp"

namespace sinter {

// Names in messages.
struct function_with_captures;
struct capture_nothing_or_write_a_module;

namespace nn {

/// A function of one input without parameters. It captures nothing, so that copies on other devices are made of its
/// type alone. `nn::sequential` takes such a function as it is.
///
///     nn::sequential model{nn::linear(4, 8, gen), [](const auto& x) { return x * sigmoid(x); }, nn::linear(8, 2, gen)};
template <class F>
struct function : stateless<function<F>> {
  function() = default;
  function(F)  // NOLINT: implicit on purpose
    requires(std::is_empty_v<F>)
  {}
  template <class Problem = function_with_captures, class Fix = capture_nothing_or_write_a_module>
    requires(!std::is_empty_v<F>)
  function(F) = delete;

  template <expression X>
  auto forward(X&& x) const {
    return sinter::eval(F()(std::forward<X>(x)));
  }
};

namespace detail {

template <class M>
concept function_of_input = !has_device<M> && std::is_class_v<M>;
template <class M>
struct module_of {
  using type = M;
};
template <function_of_input M>
struct module_of<M> {
  using type = function<M>;
};

}  // namespace detail

template <class... M>
  requires(detail::function_of_input<M> || ...)
sequential(M...) -> sequential<typename detail::module_of<M>::type...>;

}  // namespace nn
}  // namespace sinter
