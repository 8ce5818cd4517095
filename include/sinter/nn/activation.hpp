// sinter/nn/activation.hpp: modules without parameters: activations, softmax, flatten, dropout.
#pragma once

#include "sinter/nn/module.hpp"
#include "sinter/ops/celu.hpp"
#include "sinter/ops/elu.hpp"
#include "sinter/ops/gelu.hpp"
#include "sinter/ops/glu.hpp"
#include "sinter/ops/hardsigmoid.hpp"
#include "sinter/ops/hardswish.hpp"
#include "sinter/ops/leaky_relu.hpp"
#include "sinter/ops/log_sigmoid.hpp"
#include "sinter/ops/log_softmax.hpp"
#include "sinter/ops/mish.hpp"
#include "sinter/ops/relu.hpp"
#include "sinter/ops/relu6.hpp"
#include "sinter/ops/selu.hpp"
#include "sinter/ops/sigmoid.hpp"
#include "sinter/ops/silu.hpp"
#include "sinter/ops/softmax.hpp"
#include "sinter/ops/softplus.hpp"
#include "sinter/ops/softsign.hpp"
#include "sinter/ops/tanh.hpp"
#include "sinter/ops/tanhshrink.hpp"
#include "sinter/random/dropout.hpp"

namespace sinter::nn {

/// Base of modules that work alike on any device and hold no parameters.
template <class Self>
struct stateless : module<Self> {
  using device_type = any_device;
  using kind = plain;
  template <class, class>
  using rebind = Self;
  template <class F, class... M>
  static void visit(F&&, M&...) {}
};
/// Base of those that call one kernel op: Op says which inputs they take.
template <class Self, class Op>
struct stateless_kernel : stateless<Self> {
  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::kernel_check<Op, X>{};
  }
};

#define SINTER_ACTIVATION(name)                                               \
  struct name : stateless<name> {                                             \
    template <class X>                                                        \
    auto forward(X&& x) const -> decltype(sinter::name(std::forward<X>(x))) { \
      return sinter::name(std::forward<X>(x));                                \
    }                                                                         \
  };
SINTER_ACTIVATION(relu)
SINTER_ACTIVATION(sigmoid)
SINTER_ACTIVATION(tanh)
SINTER_ACTIVATION(gelu)
SINTER_ACTIVATION(silu)
SINTER_ACTIVATION(softplus)
SINTER_ACTIVATION(selu)
SINTER_ACTIVATION(mish)
SINTER_ACTIVATION(relu6)
SINTER_ACTIVATION(hardswish)
SINTER_ACTIVATION(hardsigmoid)
SINTER_ACTIVATION(softsign)
SINTER_ACTIVATION(tanhshrink)
SINTER_ACTIVATION(log_sigmoid)
#undef SINTER_ACTIVATION

/// The functions of the same names with a setting: the slope below zero, or the axis.
#define SINTER_ACTIVATION_WITH(name, type, setting, initially)                        \
  struct name : stateless<name> {                                                     \
    name() = default;                                                                 \
    explicit name(type x) : setting(x) {}                                             \
    template <class X>                                                                \
      requires requires(X&& x, type with) { sinter::name(std::forward<X>(x), with); } \
    auto forward(X&& x) const {                                                       \
      return sinter::name(std::forward<X>(x), setting);                               \
    }                                                                                 \
    template <class F, class... M>                                                    \
    static void visit(F&& f, M&... m) {                                               \
      f(#setting, m.setting...);                                                      \
    }                                                                                 \
    type setting = initially;                                                         \
  };
SINTER_ACTIVATION_WITH(leaky_relu, double, slope, 0.01)
SINTER_ACTIVATION_WITH(elu, double, alpha, 1.0)
SINTER_ACTIVATION_WITH(celu, double, alpha, 1.0)
SINTER_ACTIVATION_WITH(glu, index_t, axis, -1)
SINTER_ACTIVATION_WITH(softmax, index_t, axis, -1)
SINTER_ACTIVATION_WITH(log_softmax, index_t, axis, -1)
#undef SINTER_ACTIVATION_WITH

/// What it is given.
struct identity : stateless<identity> {
  template <expression X>
  auto forward(X&& x) const {
    return sinter::eval(std::forward<X>(x));
  }
};

/// (N, ...) => (N, product of the rest).
struct flatten : stateless<flatten> {
  template <expression X>
    requires(rank_of<X> >= 2)
  auto forward(X&& x) const {
    const auto value = sinter::eval(std::forward<X>(x));
    index_t rest = 1;
    for (int d = 1; d < value.rank; ++d) rest *= value.shape()[d];
    return value.reshape({value.shape()[0], rest});
  }
};

struct pass_a_generator_as_second_argument;

namespace detail {

/// What the modules that drop have in common. Self has drop(x, p, source).
template <class Self, class Kind>
struct dropping : module<Self> {
  using device_type = any_device;
  using kind = Kind;

  dropping() = default;
  dropping(double probability, generator& gen) : p(probability), source(gen.split()) {
    if (!(p >= 0 && p <= 1))
      sinter::detail::refuse<value_error>({"dropout: the probability must be in [0, 1], not ", p});
  }

  template <class X, class S = Self>  // S, as clang 14 asks Self while it is incomplete
    requires(std::is_same_v<Kind, plain> || requires(X&& x, generator& g) { S::drop(std::forward<X>(x), 0.5, g); })
  auto forward(X&& x) const {
    if constexpr (std::is_same_v<Kind, plain>) {
      return sinter::detail::bare<X>(std::forward<X>(x));
    } else {
      if (!state.training || p == 0) return sinter::eval(std::forward<X>(x));
      return sinter::eval(Self::drop(std::forward<X>(x), p, source));
    }
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("mode", m.state...);
    f("p", m.p...);
    f("source", m.source...);
  }

  double p = 0.5;
  mode state;
  mutable generator source;
};

}  // namespace detail

#define SINTER_DROPOUT(name)                                                                                        \
  template <class Kind = tracked>                                                                                   \
  struct name : detail::dropping<name<Kind>, Kind> {                                                                \
    template <class, class K>                                                                                       \
    using rebind = name<K>;                                                                                         \
    name() = default;                                                                                               \
    name(double probability, generator& gen) : detail::dropping<name, Kind>(probability, gen) {}                    \
    template <class Problem = random_numbers_without_a_generator, class Fix = pass_a_generator_as_second_argument>  \
    explicit name(double) = delete;                                                                                 \
    template <class X>                                                                                              \
    static auto drop(X&& x, double p, generator& source) -> decltype(sinter::name(std::forward<X>(x), p, source)) { \
      return sinter::name(std::forward<X>(x), p, source);                                                           \
    }                                                                                                               \
  };
/// Drops with probability p in training mode, passes its input on otherwise; see sinter::dropout, and sinter::dropout2d
/// for whole channels. Holds a generator of its own, split off the one given.
SINTER_DROPOUT(dropout)
SINTER_DROPOUT(dropout1d)
SINTER_DROPOUT(dropout2d)
SINTER_DROPOUT(dropout3d)
#undef SINTER_DROPOUT

}  // namespace sinter::nn
