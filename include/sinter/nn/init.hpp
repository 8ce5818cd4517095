// sinter/nn/init.hpp: initial values of parameters.
#pragma once

#include <cmath>

#include "sinter/random/create.hpp"

namespace sinter::nn::init {

/// Inputs of a unit: the product of all extents but the first, for weights (out, in, ...).
template <int R>
index_t fan_in(const extents<R>& shape) {
  index_t n = 1;
  for (int d = 1; d < R; ++d) n *= shape[d];
  return n;
}

/// U(-b, b) with b = 1 / sqrt(inputs): what PyTorch gives the weights and biases of linear and convolution layers
/// (its kaiming_uniform_ with a = sqrt(5)).
template <element T, device D, int R>
tensor<T, R, D> fan_in_uniform(generator& gen, index_t inputs, const extents<R>& shape) {
  const T bound = inputs > 0 ? static_cast<T>(1 / std::sqrt(static_cast<double>(inputs))) : T(0);
  return uniform<T, D>(gen, -bound, bound, shape);
}

/// U(-b, b) with b = gain sqrt(3 / inputs). K. He et al., ICCV 2015. The default gain is that of relu.
template <element T, device D, int R>
tensor<T, R, D> kaiming_uniform(generator& gen, const extents<R>& shape, double gain = 1.4142135623730951) {
  const index_t inputs = fan_in(shape);
  const T bound = inputs > 0 ? static_cast<T>(gain * std::sqrt(3.0 / static_cast<double>(inputs))) : T(0);
  return uniform<T, D>(gen, -bound, bound, shape);
}

/// Inputs and outputs of a unit, for weights (out, in, ...).
template <int R>
  requires(R >= 2)
double glorot_fans(const extents<R>& shape) {
  const index_t inputs = fan_in(shape);
  const index_t each = shape[1] > 0 ? inputs / shape[1] : 0;
  return static_cast<double>(inputs + shape[0] * each);
}

/// U(-b, b) with b = gain sqrt(6 / (inputs + outputs)), for weights (out, in, ...). X. Glorot and Y. Bengio, AISTATS
/// 2010.
template <element T, device D, int R>
  requires(R >= 2)
tensor<T, R, D> xavier_uniform(generator& gen, const extents<R>& shape, double gain = 1) {
  const double fans = glorot_fans(shape);
  const T bound = fans > 0 ? static_cast<T>(gain * std::sqrt(6 / fans)) : T(0);
  return uniform<T, D>(gen, -bound, bound, shape);
}

/// N(0, b^2) with b = gain sqrt(2 / (inputs + outputs)), likewise.
template <element T, device D, int R>
  requires(R >= 2)
tensor<T, R, D> xavier_normal(generator& gen, const extents<R>& shape, double gain = 1) {
  const double fans = glorot_fans(shape);
  return normal<T, D>(gen, T(0), fans > 0 ? static_cast<T>(gain * std::sqrt(2 / fans)) : T(0), shape);
}

}  // namespace sinter::nn::init
