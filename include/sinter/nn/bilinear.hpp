// sinter/nn/bilinear.hpp: the layer of products of two inputs.
#pragma once

#include "sinter/nn/linear.hpp"
#include "sinter/ops/products.hpp"

namespace sinter::nn {

struct pass_a_generator_as_fourth_argument;

/// y[o] = x1^T W[o] x2 + b[o]: (…,in1) and (…,in2) => (…,out), with weight (out,in1,in2) and bias (out) as in
/// torch.nn.Bilinear, and initialised like it, uniform within 1 / sqrt(in1).
///
///     nn::bilinear match(20, 30, 1, gen);  // float on the cpu
///     variable scores = match(left, right);
///     nn::bilinear plain(20, 30, 1, gen, nn::no_bias);
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Bias = true>
struct bilinear : module<bilinear<T, D, Kind, Bias>> {
  using device_type = D;
  using kind = Kind;
  template <class To, class K>
  using rebind = bilinear<T, To, K, Bias>;

  bilinear() = default;
  bilinear(index_t inputs1, index_t inputs2, index_t outputs, generator& gen) {
    if (inputs1 < 0 || inputs2 < 0 || outputs < 0)
      sinter::detail::refuse<shape_error>(
          {"bilinear: ", inputs1, " and ", inputs2, " inputs and ", outputs, " outputs; none may be negative"});
    weight = init::fan_in_uniform<T, D>(gen, inputs1, extents<3>{{outputs, inputs1, inputs2}});
    if constexpr (Bias) bias = init::fan_in_uniform<T, D>(gen, inputs1, extents<1>{{outputs}});
  }
  bilinear(index_t inputs1, index_t inputs2, index_t outputs, generator& gen, no_bias_t)
    requires(!Bias)
      : bilinear(inputs1, inputs2, outputs, gen) {}
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_as_fourth_argument>
  bilinear(index_t, index_t, index_t) = delete;

  template <class X1, class X2>
  static constexpr auto mistake() {
    if constexpr (Bias) return sinter::detail::bilinear_mistake<X1, X2, decltype(weight), decltype(bias)>{};
    else return sinter::detail::bilinear_mistake<X1, X2, decltype(weight)>{};
  }
  template <class X1, class X2>
  auto forward(const X1& x1, const X2& x2) const {
    if constexpr (Bias) return sinter::bilinear(x1, x2, weight, bias);
    else return sinter::bilinear(x1, x2, weight);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("weight", m.weight...);
    if constexpr (Bias) f("bias", m.bias...);
  }

  parameter<T, 3, D, Kind> weight;
  parameter<T, 1, D, Kind> bias;
};

bilinear(index_t, index_t, index_t, generator&, no_bias_t) -> bilinear<float, cpu, tracked, false>;

}  // namespace sinter::nn
