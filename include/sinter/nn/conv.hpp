// sinter/nn/conv.hpp: convolution layers.
#pragma once

#include "sinter/nn/linear.hpp"
#include "sinter/ops/conv_transpose.hpp"

namespace sinter::nn {

struct pass_a_generator_behind_the_kernel;
struct name_all_template_arguments_as_in_conv2d_double_cpu_tracked_false;

template <int N>
inline constexpr bool is_setting<conv_options<N>> = true;
template <int N>
inline constexpr bool is_setting<conv_transpose_options<N>> = true;

namespace detail {

/// The weights of a layer, (rows, columns / groups, kernel...), and to how many inputs an output is connected.
template <int N, floating_element T, device D>
tensor<T, N + 2, D> conv_weights(const char* name, index_t rows, index_t columns, index_t groups,
                                 const per_axis<N>& kernel, generator& gen, index_t& inputs) {
  using sinter::detail::refuse;
  if (rows < 0 || columns < 0)
    refuse<shape_error>({name, ": ", rows, " and ", columns, " channels; neither may be negative"});
  if (groups < 1) refuse<value_error>({name, ": groups is ", groups, "; it must be 1 or more"});
  if (rows % groups != 0 || columns % groups != 0)
    refuse<shape_error>({name, ": ", groups, " groups do not divide ", rows, " and ", columns, " channels"});
  extents<N + 2> shape;
  shape[0] = rows;
  inputs = shape[1] = columns / groups;
  for (int d = 0; d < N; ++d) {
    if (kernel[d] < 1) refuse<shape_error>({name, ": a kernel of ", kernel[d], " taps; it needs one or more"});
    inputs *= shape[d + 2] = kernel[d];
  }
  return init::fan_in_uniform<T, D>(gen, inputs, shape);
}

/// What all convolution layers are; Self is the layer over N axes, Options those of its function.
template <int N, class Self, class Options, floating_element T, device D, class Kind, bool Bias>
struct convolution : module<Self> {
  using device_type = D;
  using kind = Kind;
  using op = std::conditional_t<std::is_same_v<Options, conv_options<N>>, ops::conv_op<N, Bias>,
                                ops::conv_transpose_op<N, Bias>>;

  convolution() = default;

  template <class X>
  static constexpr auto mistake() {
    if constexpr (Bias) return sinter::detail::kernel_check<op, X, decltype(weight), decltype(bias)>{};
    else return sinter::detail::kernel_check<op, X, decltype(weight)>{};
  }

  /// Multiply-adds of one call that gives this shape; see summary().
  template <int R>
  index_t multiply_adds(const extents<R>& output) const {
    if (!weight.defined()) return 0;
    index_t windows = output[0];
    for (int d = 0; d < N; ++d) {
      index_t n = output[d + 2];
      if constexpr (requires { options.output_padding; })
        n = (n - 1 - options.output_padding[d] + 2 * options.padding.number("summary", d) -
             options.dilation[d] * (weight.extent(d + 2) - 1)) /
                options.stride[d] +
            1;
      windows *= n;
    }
    return windows * weight.numel();
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("weight", m.weight...);
    if constexpr (Bias) f("bias", m.bias...);
    f("options", m.options...);
  }

  parameter<T, N + 2, D, Kind> weight;
  parameter<T, 1, D, Kind> bias;
  Options options;

 protected:
  /// Makes the weights, and the bias of `outputs` numbers.
  void set_up(const char* name, index_t rows, index_t columns, index_t outputs, const per_axis<N>& kernel,
              generator& gen) {
    index_t inputs = 0;
    weight = conv_weights<N, T, D>(name, rows, columns, options.groups, kernel, gen, inputs);
    if constexpr (Bias) bias = init::fan_in_uniform<T, D>(gen, inputs, extents<1>{{outputs}});
  }
};

}  // namespace detail

/// The convolution over 2 axes: (N,C,H,W) => (N,F,H',W'), with weight (F,C/groups,KH,KW) and bias (F) as in
/// torch.nn.Conv2d, and initialised like it. See sinter::conv2d.
///
///     nn::conv2d first(3, 16, 3, gen, {.padding = 1});          // kernels of 3 x 3
///     nn::conv2d wide(3, 16, {1, 5}, gen, {.padding = {0, 2}});
///     nn::conv2d bare(3, 16, 3, gen, {.stride = 2}, nn::no_bias);
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Bias = true>
struct conv2d : detail::convolution<2, conv2d<T, D, Kind, Bias>, conv_options<2>, T, D, Kind, Bias> {
  template <class To, class K>
  using rebind = conv2d<T, To, K, Bias>;

  conv2d() = default;
  conv2d(index_t inputs, index_t outputs, const per_axis<2>& kernel, generator& gen, const conv_options<2>& how = {}) {
    this->options = how;
    this->set_up("conv2d", outputs, inputs, outputs, kernel, gen);
  }
  conv2d(index_t inputs, index_t outputs, const per_axis<2>& kernel, generator& gen, const conv_options<2>& how,
         no_bias_t)
    requires(!Bias)
      : conv2d(inputs, outputs, kernel, gen, how) {}
  template <class Problem = the_type_of_this_layer_has_a_bias,
            class Fix = name_all_template_arguments_as_in_conv2d_double_cpu_tracked_false>
    requires(Bias)
  conv2d(index_t, index_t, const per_axis<2>&, generator&, const conv_options<2>&, no_bias_t) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv2d(index_t, index_t, const per_axis<2>&, const conv_options<2>& = {}) = delete;
  template <std::integral S, class Problem = weights_without_a_generator,
            class Fix = pass_a_generator_behind_the_kernel>
  conv2d(index_t, index_t, const per_axis<2>&, S, generator&) = delete;
  template <std::integral S, std::integral P, class... More, class Problem = weights_without_a_generator,
            class Fix = pass_a_generator_behind_the_kernel>
  conv2d(index_t, index_t, const per_axis<2>&, S, P, More&&...) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv2d(index_t, index_t, const per_axis<2>&, const conv_options<2>&, generator&) = delete;
  template <std::integral S, class... More, class Problem = sinter::options_that_are_not_in_braces,
            class Fix = sinter::write_dot_stride_and_dot_padding_in_braces>
  conv2d(index_t, index_t, const per_axis<2>&, generator&, S, More&&...) = delete;

  template <class X>
  auto forward(X&& x) const {
    if constexpr (Bias) return sinter::conv2d(std::forward<X>(x), this->weight, this->bias, this->options);
    else return sinter::conv2d(std::forward<X>(x), this->weight, this->options);
  }
};
conv2d(index_t, index_t, const per_axis<2>&, generator&) -> conv2d<float, cpu, tracked, true>;
conv2d(index_t, index_t, const per_axis<2>&, generator&, const conv_options<2>&) -> conv2d<float, cpu, tracked, true>;
conv2d(index_t, index_t, const per_axis<2>&, generator&, const conv_options<2>&, no_bias_t)
    -> conv2d<float, cpu, tracked, false>;
conv2d(index_t, index_t, const per_axis<2>&, const conv_options<2>& = {}) -> conv2d<float, cpu, tracked, true>;

/// The convolution over 1 axis: (N,C,L) => (N,F,L'), with weight (F,C/groups,K) and bias (F) as in
/// torch.nn.Conv1d, and initialised like it. See sinter::conv1d.
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Bias = true>
struct conv1d : detail::convolution<1, conv1d<T, D, Kind, Bias>, conv_options<1>, T, D, Kind, Bias> {
  template <class To, class K>
  using rebind = conv1d<T, To, K, Bias>;

  conv1d() = default;
  conv1d(index_t inputs, index_t outputs, const per_axis<1>& kernel, generator& gen, const conv_options<1>& how = {}) {
    this->options = how;
    this->set_up("conv1d", outputs, inputs, outputs, kernel, gen);
  }
  conv1d(index_t inputs, index_t outputs, const per_axis<1>& kernel, generator& gen, const conv_options<1>& how,
         no_bias_t)
    requires(!Bias)
      : conv1d(inputs, outputs, kernel, gen, how) {}
  template <class Problem = the_type_of_this_layer_has_a_bias,
            class Fix = name_all_template_arguments_as_in_conv2d_double_cpu_tracked_false>
    requires(Bias)
  conv1d(index_t, index_t, const per_axis<1>&, generator&, const conv_options<1>&, no_bias_t) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv1d(index_t, index_t, const per_axis<1>&, const conv_options<1>& = {}) = delete;
  template <std::integral S, class Problem = weights_without_a_generator,
            class Fix = pass_a_generator_behind_the_kernel>
  conv1d(index_t, index_t, const per_axis<1>&, S, generator&) = delete;
  template <std::integral S, std::integral P, class... More, class Problem = weights_without_a_generator,
            class Fix = pass_a_generator_behind_the_kernel>
  conv1d(index_t, index_t, const per_axis<1>&, S, P, More&&...) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv1d(index_t, index_t, const per_axis<1>&, const conv_options<1>&, generator&) = delete;
  template <std::integral S, class... More, class Problem = sinter::options_that_are_not_in_braces,
            class Fix = sinter::write_dot_stride_and_dot_padding_in_braces>
  conv1d(index_t, index_t, const per_axis<1>&, generator&, S, More&&...) = delete;

  template <class X>
  auto forward(X&& x) const {
    if constexpr (Bias) return sinter::conv1d(std::forward<X>(x), this->weight, this->bias, this->options);
    else return sinter::conv1d(std::forward<X>(x), this->weight, this->options);
  }
};
conv1d(index_t, index_t, const per_axis<1>&, generator&) -> conv1d<float, cpu, tracked, true>;
conv1d(index_t, index_t, const per_axis<1>&, generator&, const conv_options<1>&) -> conv1d<float, cpu, tracked, true>;
conv1d(index_t, index_t, const per_axis<1>&, generator&, const conv_options<1>&, no_bias_t)
    -> conv1d<float, cpu, tracked, false>;
conv1d(index_t, index_t, const per_axis<1>&, const conv_options<1>& = {}) -> conv1d<float, cpu, tracked, true>;

/// The convolution over 3 axes: (N,C,D,H,W) => (N,F,D',H',W'), with weight (F,C/groups,KD,KH,KW) and bias (F) as in
/// torch.nn.Conv3d, and initialised like it. See sinter::conv3d.
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Bias = true>
struct conv3d : detail::convolution<3, conv3d<T, D, Kind, Bias>, conv_options<3>, T, D, Kind, Bias> {
  template <class To, class K>
  using rebind = conv3d<T, To, K, Bias>;

  conv3d() = default;
  conv3d(index_t inputs, index_t outputs, const per_axis<3>& kernel, generator& gen, const conv_options<3>& how = {}) {
    this->options = how;
    this->set_up("conv3d", outputs, inputs, outputs, kernel, gen);
  }
  conv3d(index_t inputs, index_t outputs, const per_axis<3>& kernel, generator& gen, const conv_options<3>& how,
         no_bias_t)
    requires(!Bias)
      : conv3d(inputs, outputs, kernel, gen, how) {}
  template <class Problem = the_type_of_this_layer_has_a_bias,
            class Fix = name_all_template_arguments_as_in_conv2d_double_cpu_tracked_false>
    requires(Bias)
  conv3d(index_t, index_t, const per_axis<3>&, generator&, const conv_options<3>&, no_bias_t) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv3d(index_t, index_t, const per_axis<3>&, const conv_options<3>& = {}) = delete;
  template <std::integral S, class Problem = weights_without_a_generator,
            class Fix = pass_a_generator_behind_the_kernel>
  conv3d(index_t, index_t, const per_axis<3>&, S, generator&) = delete;
  template <std::integral S, std::integral P, class... More, class Problem = weights_without_a_generator,
            class Fix = pass_a_generator_behind_the_kernel>
  conv3d(index_t, index_t, const per_axis<3>&, S, P, More&&...) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv3d(index_t, index_t, const per_axis<3>&, const conv_options<3>&, generator&) = delete;
  template <std::integral S, class... More, class Problem = sinter::options_that_are_not_in_braces,
            class Fix = sinter::write_dot_stride_and_dot_padding_in_braces>
  conv3d(index_t, index_t, const per_axis<3>&, generator&, S, More&&...) = delete;

  template <class X>
  auto forward(X&& x) const {
    if constexpr (Bias) return sinter::conv3d(std::forward<X>(x), this->weight, this->bias, this->options);
    else return sinter::conv3d(std::forward<X>(x), this->weight, this->options);
  }
};
conv3d(index_t, index_t, const per_axis<3>&, generator&) -> conv3d<float, cpu, tracked, true>;
conv3d(index_t, index_t, const per_axis<3>&, generator&, const conv_options<3>&) -> conv3d<float, cpu, tracked, true>;
conv3d(index_t, index_t, const per_axis<3>&, generator&, const conv_options<3>&, no_bias_t)
    -> conv3d<float, cpu, tracked, false>;
conv3d(index_t, index_t, const per_axis<3>&, const conv_options<3>& = {}) -> conv3d<float, cpu, tracked, true>;

/// The transposed convolution over 2 axes: (N,C,H,W) => (N,F,H',W'), with weight (C,F/groups,KH,KW) and bias (F) as in
/// torch.nn.ConvTranspose2d, and initialised like it. See sinter::conv_transpose2d.
///
///     nn::conv_transpose2d up(16, 3, 4, gen, {.stride = 2, .padding = 1});
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Bias = true>
struct conv_transpose2d
    : detail::convolution<2, conv_transpose2d<T, D, Kind, Bias>, conv_transpose_options<2>, T, D, Kind, Bias> {
  template <class To, class K>
  using rebind = conv_transpose2d<T, To, K, Bias>;

  conv_transpose2d() = default;
  conv_transpose2d(index_t inputs, index_t outputs, const per_axis<2>& kernel, generator& gen,
                   const conv_transpose_options<2>& how = {}) {
    this->options = how;
    this->set_up("conv_transpose2d", inputs, outputs, outputs, kernel, gen);
  }
  conv_transpose2d(index_t inputs, index_t outputs, const per_axis<2>& kernel, generator& gen,
                   const conv_transpose_options<2>& how, no_bias_t)
    requires(!Bias)
      : conv_transpose2d(inputs, outputs, kernel, gen, how) {}
  template <class Problem = the_type_of_this_layer_has_a_bias,
            class Fix = name_all_template_arguments_as_in_conv2d_double_cpu_tracked_false>
    requires(Bias)
  conv_transpose2d(index_t, index_t, const per_axis<2>&, generator&, const conv_transpose_options<2>&,
                   no_bias_t) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv_transpose2d(index_t, index_t, const per_axis<2>&, const conv_transpose_options<2>& = {}) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv_transpose2d(index_t, index_t, const per_axis<2>&, const conv_transpose_options<2>&, generator&) = delete;

  template <class X>
  auto forward(X&& x) const {
    if constexpr (Bias) return sinter::conv_transpose2d(std::forward<X>(x), this->weight, this->bias, this->options);
    else return sinter::conv_transpose2d(std::forward<X>(x), this->weight, this->options);
  }
};
conv_transpose2d(index_t, index_t, const per_axis<2>&, generator&) -> conv_transpose2d<float, cpu, tracked, true>;
conv_transpose2d(index_t, index_t, const per_axis<2>&, generator&, const conv_transpose_options<2>&)
    -> conv_transpose2d<float, cpu, tracked, true>;
conv_transpose2d(index_t, index_t, const per_axis<2>&, generator&, const conv_transpose_options<2>&, no_bias_t)
    -> conv_transpose2d<float, cpu, tracked, false>;
conv_transpose2d(index_t, index_t, const per_axis<2>&, const conv_transpose_options<2>& = {})
    -> conv_transpose2d<float, cpu, tracked, true>;

/// The transposed convolution over 1 axis: (N,C,L) => (N,F,L'), with weight (C,F/groups,K) and bias (F) as in
/// torch.nn.ConvTranspose1d, and initialised like it. See sinter::conv_transpose1d.
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Bias = true>
struct conv_transpose1d
    : detail::convolution<1, conv_transpose1d<T, D, Kind, Bias>, conv_transpose_options<1>, T, D, Kind, Bias> {
  template <class To, class K>
  using rebind = conv_transpose1d<T, To, K, Bias>;

  conv_transpose1d() = default;
  conv_transpose1d(index_t inputs, index_t outputs, const per_axis<1>& kernel, generator& gen,
                   const conv_transpose_options<1>& how = {}) {
    this->options = how;
    this->set_up("conv_transpose1d", inputs, outputs, outputs, kernel, gen);
  }
  conv_transpose1d(index_t inputs, index_t outputs, const per_axis<1>& kernel, generator& gen,
                   const conv_transpose_options<1>& how, no_bias_t)
    requires(!Bias)
      : conv_transpose1d(inputs, outputs, kernel, gen, how) {}
  template <class Problem = the_type_of_this_layer_has_a_bias,
            class Fix = name_all_template_arguments_as_in_conv2d_double_cpu_tracked_false>
    requires(Bias)
  conv_transpose1d(index_t, index_t, const per_axis<1>&, generator&, const conv_transpose_options<1>&,
                   no_bias_t) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv_transpose1d(index_t, index_t, const per_axis<1>&, const conv_transpose_options<1>& = {}) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv_transpose1d(index_t, index_t, const per_axis<1>&, const conv_transpose_options<1>&, generator&) = delete;

  template <class X>
  auto forward(X&& x) const {
    if constexpr (Bias) return sinter::conv_transpose1d(std::forward<X>(x), this->weight, this->bias, this->options);
    else return sinter::conv_transpose1d(std::forward<X>(x), this->weight, this->options);
  }
};
conv_transpose1d(index_t, index_t, const per_axis<1>&, generator&) -> conv_transpose1d<float, cpu, tracked, true>;
conv_transpose1d(index_t, index_t, const per_axis<1>&, generator&, const conv_transpose_options<1>&)
    -> conv_transpose1d<float, cpu, tracked, true>;
conv_transpose1d(index_t, index_t, const per_axis<1>&, generator&, const conv_transpose_options<1>&, no_bias_t)
    -> conv_transpose1d<float, cpu, tracked, false>;
conv_transpose1d(index_t, index_t, const per_axis<1>&, const conv_transpose_options<1>& = {})
    -> conv_transpose1d<float, cpu, tracked, true>;

/// The transposed convolution over 3 axes: (N,C,D,H,W) => (N,F,D',H',W'), with weight (C,F/groups,KD,KH,KW) and bias
/// (F) as in torch.nn.ConvTranspose3d, and initialised like it. See sinter::conv_transpose3d.
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Bias = true>
struct conv_transpose3d
    : detail::convolution<3, conv_transpose3d<T, D, Kind, Bias>, conv_transpose_options<3>, T, D, Kind, Bias> {
  template <class To, class K>
  using rebind = conv_transpose3d<T, To, K, Bias>;

  conv_transpose3d() = default;
  conv_transpose3d(index_t inputs, index_t outputs, const per_axis<3>& kernel, generator& gen,
                   const conv_transpose_options<3>& how = {}) {
    this->options = how;
    this->set_up("conv_transpose3d", inputs, outputs, outputs, kernel, gen);
  }
  conv_transpose3d(index_t inputs, index_t outputs, const per_axis<3>& kernel, generator& gen,
                   const conv_transpose_options<3>& how, no_bias_t)
    requires(!Bias)
      : conv_transpose3d(inputs, outputs, kernel, gen, how) {}
  template <class Problem = the_type_of_this_layer_has_a_bias,
            class Fix = name_all_template_arguments_as_in_conv2d_double_cpu_tracked_false>
    requires(Bias)
  conv_transpose3d(index_t, index_t, const per_axis<3>&, generator&, const conv_transpose_options<3>&,
                   no_bias_t) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv_transpose3d(index_t, index_t, const per_axis<3>&, const conv_transpose_options<3>& = {}) = delete;
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_behind_the_kernel>
  conv_transpose3d(index_t, index_t, const per_axis<3>&, const conv_transpose_options<3>&, generator&) = delete;

  template <class X>
  auto forward(X&& x) const {
    if constexpr (Bias) return sinter::conv_transpose3d(std::forward<X>(x), this->weight, this->bias, this->options);
    else return sinter::conv_transpose3d(std::forward<X>(x), this->weight, this->options);
  }
};
conv_transpose3d(index_t, index_t, const per_axis<3>&, generator&) -> conv_transpose3d<float, cpu, tracked, true>;
conv_transpose3d(index_t, index_t, const per_axis<3>&, generator&, const conv_transpose_options<3>&)
    -> conv_transpose3d<float, cpu, tracked, true>;
conv_transpose3d(index_t, index_t, const per_axis<3>&, generator&, const conv_transpose_options<3>&, no_bias_t)
    -> conv_transpose3d<float, cpu, tracked, false>;
conv_transpose3d(index_t, index_t, const per_axis<3>&, const conv_transpose_options<3>& = {})
    -> conv_transpose3d<float, cpu, tracked, true>;

}  // namespace sinter::nn
