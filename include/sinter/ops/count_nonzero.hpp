// sinter/ops/count_nonzero.hpp: count_nonzero, nansum, nanmean, aminmax and sum_to_size, reductions of a formula.
#pragma once

#include "sinter/ops/cast.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/isnan.hpp"
#include "sinter/ops/logical_not.hpp"
#include "sinter/ops/max.hpp"
#include "sinter/ops/min.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {

namespace detail {

inline constexpr auto count_of_nonzero = [](const auto& x, const auto&... axes) {
  return sum(cast<std::int64_t>(x != 0), axes...);
};
inline constexpr auto sum_without_nan = [](const auto& x, const auto&... axes) {
  return sum(where(isnan(x), 0, x), axes...);
};
inline constexpr auto mean_without_nan = [](const auto& x, const auto&... axes) {
  return sum_without_nan(x, axes...) / sum(cast<element_of<decltype(x)>>(!isnan(x)), axes...);
};

/// Both extremes of a value.
template <class Y>
struct extremes {
  Y min, max;
};
inline constexpr auto both_extremes = [](const auto& x, const auto&... axes) {
  const auto value = eval_to_read(x);
  const auto least = eval(min(value, axes...)), largest = eval(max(value, axes...));
  return extremes<std::remove_const_t<decltype(least)>>{least, largest};
};

}  // namespace detail

/// How many elements are not 0, of all, along one axis, or along a list of axes; with keepdim they stay with extent 1.
/// An int64, without derivative.
///
///     tensor per_row = count_nonzero(x, 1);
SINTER_FORMULA_REDUCTION(count_nonzero, ops::sum_op, detail::count_of_nonzero)

/// The sum of what is not NaN, floating point. Derivative: g where x is not NaN.
///
///     tensor total = nansum(x);
SINTER_FORMULA_REDUCTION(nansum, ops::sum_op, detail::sum_without_nan)

/// The mean of what is not NaN, floating point; NaN where all is. Derivative: g over their number where x is not NaN.
///
///     tensor centre = nanmean(x, 0);
SINTER_FORMULA_REDUCTION(nanmean, ops::sum_op, detail::mean_without_nan)

/// The smallest element as `min` and the largest as `max`, as min and max give them; runs at once.
///
///     const auto [low, high] = aminmax(x, 1);
SINTER_FORMULA_REDUCTION(aminmax, ops::max_op, detail::both_extremes)

/// x summed to a shape that broadcasts to its own, which undoes broadcasting: (5,3) to {1, 3} adds up the rows. Runs at
/// once; integers and bool sum to int64. Derivative: g, repeated. Errors: shape_error for a shape that does not
/// broadcast to x's.
///
///     tensor bias_gradient = sum_to_size(g, {10});
template <class E, std::size_t N>
  requires(detail::reduces<ops::sum_op, E> && int{N} <= rank_of<E>)
auto sum_to_size(const E& x, const index_t (&shape)[N]) {
  constexpr int R = rank_of<E>, before = R - int{N};
  detail::check_defined("sum_to_size", x);
  detail::axis_set axes;
  for (int d = 0; d < R; ++d) {
    const index_t n = x.shape()[d], to = d < before ? 1 : shape[d - before];
    axes.has[d] = d < before || (to == 1 && n != 1);
    if (to != n && to != 1)
      detail::refuse<shape_error>(
          {"sum_to_size: shape ", detail::shape_piece{shape, int{N}}, " does not broadcast to shape ", x.shape()});
  }
  return eval(detail::make_reduction<ops::sum_op, R>(x, axes)).reshape(shape);
}
template <class E, std::size_t N, class Problem = typename detail::reduction_mistake<ops::sum_op, E>::problem,
          class Fix = typename detail::reduction_mistake<ops::sum_op, E>::fix>
void sum_to_size(E&&, const index_t (&)[N]) = delete;

}  // namespace sinter
