// sinter/ops/local_response_norm.hpp: each element over a power of what its neighbours in other channels are.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/avg_pool.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/pad.hpp"
#include "sinter/ops/pow.hpp"
#include "sinter/ops/square.hpp"

namespace sinter {

/// Behind the operands of local_response_norm.
///
///     local_response_norm(x, 5, {.k = 2});
struct local_response_norm_options {
  double alpha = 1e-4;  ///< what the mean of squares counts
  double beta = 0.75;   ///< the power
  double k = 1;         ///< what is added to it
};

/// x / (k + alpha m)^beta of x (N,C,…), where m is the sum of the squares of `size` channels around each, size / 2 of
/// them before it, over size. Floating point; runs at once. Derivative: that of the formula. Errors: value_error for a
/// size below 1. Krizhevsky et al., "ImageNet classification with deep convolutional neural networks", 2012.
///
///     tensor h = local_response_norm(pictures, 5);
template <class X>
  requires(detail::has_reals<X, 3>)
auto local_response_norm(const X& x, detail::whole size, const local_response_norm_options& o = {}) {
  detail::check_defined("local_response_norm", x);
  const index_t n = size;
  if (n < 1) detail::refuse<value_error>({"local_response_norm: a window of ", n, " channels; it must be 1 or more"});
  const auto value = detail::eval_to_read(x);
  if (value.numel() == 0) return eval(value * 1);
  // (N,…,C), as which it lies in memory channels-last: the window slides along C.
  const auto lines = eval(square(value)).reshape({value.shape()[0], value.shape()[1], -1}).transpose();
  const auto around = eval(avg_pool1d(pad(lines, {n / 2, (n - 1) / 2}), n, {.stride = 1}));
  const auto mean = around.transpose().reshape(value.shape().values);
  return eval(value / pow(o.k + o.alpha * mean, o.beta));
}
SINTER_FIRST_OPERAND_REJECTIONS(local_response_norm, reals_mistake, 3)

}  // namespace sinter
