// sinter/nn/linear.hpp: the fully connected layer.
#pragma once

#include "sinter/nn/init.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/ops/matmul_axes.hpp"

namespace sinter::nn {

struct weights_without_a_generator;
struct pass_a_generator_as_third_argument;
struct the_type_of_this_layer_has_a_bias;
struct bias_given_as_an_option_though_it_is_part_of_the_type;
struct write_nn_no_bias_behind_the_generator;
struct name_all_template_arguments_as_in_linear_double_cpu_tracked_false;

/// As last argument of a linear layer: x W^T, without + b.
struct no_bias_t {};
inline constexpr no_bias_t no_bias{};

namespace detail {

/// What {.bias = false} makes, where a layer has that in its type.
struct bias_option {
  bool bias;
};

}  // namespace detail

/// x W^T + b: (…,in) => (…,out), with weight (out,in) and bias (out) as in torch.nn.Linear, and initialised like it.
///
///     nn::linear fc(784, 10, gen);                        // float on the cpu
///     nn::linear<double, numa<0>> fc(784, 10, gen);
///     nn::linear projection(784, 10, gen, nn::no_bias);
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Bias = true>
struct linear : module<linear<T, D, Kind, Bias>> {
  using device_type = D;
  using kind = Kind;
  template <class To, class K>
  using rebind = linear<T, To, K, Bias>;

  linear() = default;
  linear(index_t inputs, index_t outputs, generator& gen) {
    if (inputs < 0 || outputs < 0)
      sinter::detail::refuse<shape_error>(
          {"linear: ", inputs, " inputs and ", outputs, " outputs; neither may be negative"});
    weight = init::fan_in_uniform<T, D>(gen, inputs, extents<2>{{outputs, inputs}});
    if constexpr (Bias) bias = init::fan_in_uniform<T, D>(gen, inputs, extents<1>{{outputs}});
  }
  linear(index_t inputs, index_t outputs, generator& gen, no_bias_t)
    requires(!Bias)
      : linear(inputs, outputs, gen) {}
  template <class Problem = the_type_of_this_layer_has_a_bias,
            class Fix = name_all_template_arguments_as_in_linear_double_cpu_tracked_false>
    requires(Bias)
  linear(index_t, index_t, generator&, no_bias_t) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_as_third_argument>
  linear(index_t, index_t) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_as_third_argument>
  linear(index_t, index_t, detail::bias_option, generator&) = delete;
  template <std::same_as<bool> B, class Problem = weights_without_a_generator,
            class Fix = pass_a_generator_as_third_argument>
  linear(index_t, index_t, B) = delete;
  template <class Problem = bias_given_as_an_option_though_it_is_part_of_the_type,
            class Fix = write_nn_no_bias_behind_the_generator>
  linear(index_t, index_t, generator&, detail::bias_option) = delete;

  template <class X>
  static constexpr auto mistake() {
    if constexpr (Bias) return sinter::detail::linear_mistake<X, decltype(weight), decltype(bias)>{};
    else return sinter::detail::linear_mistake<X, decltype(weight)>{};
  }
  template <class X>
  auto forward(X&& x) const {
    if constexpr (Bias) return sinter::linear(std::forward<X>(x), weight, bias);
    else return sinter::linear(std::forward<X>(x), weight);
  }

  /// Of one call that gives this shape; see summary().
  template <int R>
  index_t multiply_adds(const extents<R>& output) const {
    return output.numel() * weight.extent(1);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("weight", m.weight...);
    if constexpr (Bias) f("bias", m.bias...);
  }

  parameter<T, 2, D, Kind> weight;
  parameter<T, 1, D, Kind> bias;
};

linear(index_t, index_t, generator&, no_bias_t) -> linear<float, cpu, tracked, false>;

}  // namespace sinter::nn
