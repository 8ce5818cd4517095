// sinter/ops/spread.hpp: stddev, var with a correction, std_mean, var_mean, cov and corrcoef.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/ops/clamp.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/diagonal.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/matmul.hpp"
#include "sinter/ops/mean.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/norm.hpp"
#include "sinter/ops/sqrt.hpp"
#include "sinter/ops/var.hpp"

namespace sinter {

/// A variance or standard deviation, and the mean.
template <class Y>
struct spread_and_mean {
  Y spread, mean;
};

namespace ops {

/// The mean of the squared distances from the mean.
struct mean_square_op : var_op {
  template <class T>
  using reducer = sinter::detail::mean_square_reducer<T>;
  template <class E>
  static auto summand(const E& distance, index_t n) {
    return square(distance) / static_cast<element_of<E>>(n);
  }
};

}  // namespace ops

namespace detail {

template <int R, class E>
auto var_of(const char* op, const E& x, const axis_set& axes, const var_options& o) {
  check_defined(op, x);
  const auto n = static_cast<double>(count_reduced(x, axes)), rest = n - o.correction;
  return make_reduction<ops::mean_square_op, R>(x, axes) *
         static_cast<compute_type<element_of<E>>>(n / (rest > 0 ? rest : 0));
}
template <int R, class E>
auto stddev_of(const char* op, const E& x, const axis_set& axes, const var_options& o) {
  return make_map(ops::root_op{}, var_of<R>(op, x, axes, o));
}
template <int R, class E, class F>
auto with_mean(const char* op, const E& x, const axis_set& axes, const F& spread_of) {
  check_defined(op, x);
  const auto value = eval_to_read(x);
  const auto spread = eval(spread_of(value)), centre = eval(make_reduction<ops::mean_op, R>(value, axes));
  return spread_and_mean<std::remove_const_t<decltype(spread)>>{spread, centre};
}
template <int R, class E>
auto var_mean_of(const char* op, const E& x, const axis_set& axes, const var_options& o) {
  return with_mean<R>(op, x, axes, [&](const auto& value) { return var_of<R>(op, value, axes, o); });
}
template <int R, class E>
auto std_mean_of(const char* op, const E& x, const axis_set& axes, const var_options& o) {
  return with_mean<R>(op, x, axes, [&](const auto& value) { return stddev_of<R>(op, value, axes, o); });
}

inline constexpr auto root_of_var = [](const auto& x, const auto&... axes) {
  return make_map(ops::root_op{}, var(x, axes...));
};

/// Rows of observations, one for each quantity.
template <class E>
auto observed(E&& e) {
  if constexpr (rank_of<E> == 1) return eval_to_read(std::forward<E>(e)).unsqueeze(0);
  else return eval_to_read(std::forward<E>(e));
}

}  // namespace detail

/// The variance with another correction than 1: sum((x - mean)^2) / (n - correction), 0 for that of a whole population.
/// As var. Of all elements the options need their name: var(x, var_options{.correction = 0}).
///
///     tensor spread = var(x, 1, {.correction = 0});
SINTER_REDUCTION_WITH(var, ops::var_op, detail::var_of, const var_options& o)

/// The unbiased standard deviation, sqrt(var(x)); PyTorch's `std`, a name that C++ has taken. Derivative: that of the
/// root and var, 0 where the deviation is 0.
///
///     tensor spread = stddev(x, 0);
SINTER_FORMULA_REDUCTION(stddev, ops::var_op, detail::root_of_var)
/// The same with another correction than 1; see var.
///
///     tensor spread = stddev(x, 0, {.correction = 0});
SINTER_REDUCTION_WITH(stddev, ops::var_op, detail::stddev_of, const var_options& o)

/// The variance as `spread`, and the mean as `mean`; runs at once. The options may be left out.
///
///     const auto [spread, centre] = var_mean(x, 1, keepdim);
SINTER_REDUCTION_WITH(var_mean, ops::var_op, detail::var_mean_of, const var_options& o = {})
/// The standard deviation as `spread`, and the mean as `mean`; runs at once. The options may be left out.
///
///     const auto [spread, centre] = std_mean(x, 1, keepdim, {.correction = 0});
SINTER_REDUCTION_WITH(std_mean, ops::var_op, detail::std_mean_of, const var_options& o = {})
SINTER_REDUCTION_REJECTIONS(var_mean, ops::var_op)
SINTER_REDUCTION_REJECTIONS(std_mean, ops::var_op)

/// The covariances of the rows of a matrix, each of which has the observations of one quantity:
/// sum((x_i - mean_i) (x_j - mean_j)) / (n - correction): (k,n) => (k,k). Of a vector its variance: (n) => (). Floating
/// point; runs at once. Derivative: that of the product.
///
///     tensor c = cov(samples.transpose());
template <class E>
  requires(detail::has_reals<E, 1, 2>)
auto cov(const E& x, const var_options& o = {}) {
  detail::check_defined("cov", x);
  using T = element_of<E>;
  const auto rows = detail::observed(x);
  const auto distance = eval(rows - mean(rows, 1, keepdim));
  const double rest = static_cast<double>(rows.shape()[1]) - o.correction;
  const auto all = eval(matmul(distance, distance.transpose()) / static_cast<compute_type<T>>(rest > 0 ? rest : 0));
  if constexpr (rank_of<E> == 1) return all.select(0, 0).select(0, 0);
  else return all;
}

/// The correlations of the rows of a matrix: their covariances over the root of the product of their variances, limited
/// to [-1, 1]: (k,n) => (k,k); of a vector 1. Floating point; runs at once. NaN where a row is constant. Derivative:
/// that of the formula.
///
///     tensor r = corrcoef(samples.transpose());
template <class E>
  requires(detail::has_reals<E, 1, 2>)
auto corrcoef(const E& x) {
  detail::check_defined("corrcoef", x);
  const auto all = cov(detail::observed(x));
  const auto deviation = eval(sqrt(diagonal(all)));
  const auto y = eval(clamp(all / deviation.unsqueeze(1) / deviation, -1, 1));
  if constexpr (rank_of<E> == 1) return y.select(0, 0).select(0, 0);
  else return y;
}

SINTER_FIRST_OPERAND_REJECTIONS(cov, reals_mistake, 1, 2)
SINTER_FIRST_OPERAND_REJECTIONS(corrcoef, reals_mistake, 1, 2)

}  // namespace sinter
