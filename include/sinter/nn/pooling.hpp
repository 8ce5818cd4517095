// sinter/nn/pooling.hpp: the pooling modules.
#pragma once

#include "sinter/nn/activation.hpp"
#include "sinter/ops/adaptive_pool.hpp"

namespace sinter::nn {

template <int N>
inline constexpr bool is_setting<max_pool_options<N>> = true;
template <int N>
inline constexpr bool is_setting<avg_pool_options<N>> = true;

/// The functions of the same names with their kernel and options, or their size.
///
///     nn::max_pool2d pool(3, {.stride = 2, .padding = 1});
///     nn::adaptive_avg_pool2d global(1);
#define SINTER_POOLING(name, axes, options_type, op)                                                              \
  struct name : stateless_kernel<name, sinter::detail::op<axes>> {                                                \
    name() = default;                                                                                             \
    explicit name(const per_axis<axes>& window, const options_type<axes>& o = {}) : kernel(window), options(o) {} \
    template <std::integral S, class... More, class Problem = options_that_are_not_in_braces,                     \
              class Fix = write_dot_stride_and_dot_padding_in_braces>                                             \
    name(const per_axis<axes>&, S, More...) = delete;                                                             \
    template <class X>                                                                                            \
    auto forward(X&& x) const {                                                                                   \
      return sinter::name(std::forward<X>(x), kernel, options);                                                   \
    }                                                                                                             \
    template <class F, class... M>                                                                                \
    static void visit(F&& f, M&... m) {                                                                           \
      f("kernel", m.kernel...);                                                                                   \
      f("options", m.options...);                                                                                 \
    }                                                                                                             \
    per_axis<axes> kernel = 1;                                                                                    \
    options_type<axes> options = {};                                                                              \
  };
#define SINTER_ADAPTIVE_POOLING(name, axes, op)                         \
  struct name : stateless_kernel<name, sinter::detail::op<axes>> {      \
    name() = default;                                                   \
    explicit name(const per_axis<axes>& of_result) : size(of_result) {} \
    template <class X>                                                  \
    auto forward(X&& x) const {                                         \
      return sinter::name(std::forward<X>(x), size);                    \
    }                                                                   \
    template <class F, class... M>                                      \
    static void visit(F&& f, M&... m) {                                 \
      f("size", m.size...);                                             \
    }                                                                   \
    per_axis<axes> size = 1;                                            \
  };
SINTER_POOLING(max_pool1d, 1, max_pool_options, max_pool_op)
SINTER_POOLING(max_pool2d, 2, max_pool_options, max_pool_op)
SINTER_POOLING(max_pool3d, 3, max_pool_options, max_pool_op)
SINTER_POOLING(avg_pool1d, 1, avg_pool_options, avg_pool_op)
SINTER_POOLING(avg_pool2d, 2, avg_pool_options, avg_pool_op)
SINTER_POOLING(avg_pool3d, 3, avg_pool_options, avg_pool_op)
SINTER_ADAPTIVE_POOLING(adaptive_max_pool1d, 1, adaptive_max_pool_op)
SINTER_ADAPTIVE_POOLING(adaptive_max_pool2d, 2, adaptive_max_pool_op)
SINTER_ADAPTIVE_POOLING(adaptive_max_pool3d, 3, adaptive_max_pool_op)
SINTER_ADAPTIVE_POOLING(adaptive_avg_pool1d, 1, adaptive_avg_pool_op)
SINTER_ADAPTIVE_POOLING(adaptive_avg_pool2d, 2, adaptive_avg_pool_op)
SINTER_ADAPTIVE_POOLING(adaptive_avg_pool3d, 3, adaptive_avg_pool_op)
#undef SINTER_POOLING
#undef SINTER_ADAPTIVE_POOLING

}  // namespace sinter::nn
