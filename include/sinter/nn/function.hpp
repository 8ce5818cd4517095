// sinter/nn/function.hpp: a function as a module of a chain.
#pragma once

#include "sinter/nn/activation.hpp"
#include "sinter/nn/sequential.hpp"

namespace sinter {

// Names in messages.
template <class>
struct neither_a_module_nor_a_function_without_captures;
struct capture_nothing_or_write_a_module;

namespace nn {

namespace detail {

/// All objects of type F do the same: F holds nothing, and one can be made from nothing.
template <class F>
concept stands_for_itself = std::is_empty_v<F> && std::is_default_constructible_v<F>;
template <class M>
concept no_module = !has_device<M>;

}  // namespace detail

/// A function of one input without parameters. It captures nothing, so that copies on other devices are made of its
/// type alone. `nn::sequential` takes such a function as it is.
///
///     nn::sequential model{nn::linear(4, 8, gen), [](const auto& x) { return x * sigmoid(x); }, nn::linear(8, 2, gen)};
template <class F>
struct function : stateless<function<F>> {
  function() = default;
  function(F)  // NOLINT: implicit on purpose
    requires detail::stands_for_itself<F>
  {}
  template <class Problem = neither_a_module_nor_a_function_without_captures<F>,
            class Fix = capture_nothing_or_write_a_module>
    requires(!detail::stands_for_itself<F>)
  function(F) = delete;

  template <expression X>
  auto forward(X&& x) const {
    return sinter::eval(F()(std::forward<X>(x)));
  }
};

namespace detail {

template <class M>
struct module_of {
  using type = M;
};
template <no_module M>
struct module_of<M> {
  using type = function<M>;
};

}  // namespace detail

template <class... M>
  requires(detail::no_module<M> || ...)
sequential(M...) -> sequential<typename detail::module_of<M>::type...>;

}  // namespace nn
}  // namespace sinter
