// sinter/ops/count_nonzero.hpp: count_nonzero, nansum, nanmean and stddev, reductions of a formula.
#pragma once

#include "sinter/ops/cast.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/isnan.hpp"
#include "sinter/ops/logical_not.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/sqrt.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/var.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {

// Declares name(x), name(x, axis) and name(x, {axes...}), the last two with keepdim as well, as formula(x, axes...).
// What does not fit is rejected as `op` is.
#define SINTER_FORMULA_REDUCTION(name, op, formula)                                                                \
  template <class E, class = std::enable_if_t<detail::reduces<op, E>>>                                             \
  auto name(const E& x) {                                                                                          \
    return formula(x);                                                                                             \
  }                                                                                                                \
  template <class E, class Axis, class... Keep, class = std::enable_if_t<detail::reduces<op, E, Axis, Keep...>>>   \
  auto name(const E& x, Axis axis, Keep... keep) {                                                                 \
    return formula(x, axis, keep...);                                                                              \
  }                                                                                                                \
  template <std::size_t N, class E, class... Keep, class = std::enable_if_t<detail::reduces<op, E, int, Keep...>>> \
  auto name(const E& x, const index_t(&axes)[N], Keep... keep) {                                                   \
    return formula(x, axes, keep...);                                                                              \
  }                                                                                                                \
  SINTER_REDUCTION_REJECTIONS(name, op)

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
inline constexpr auto root_of_var = [](const auto& x, const auto&... axes) { return sqrt(var(x, axes...)); };

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

/// The unbiased standard deviation, sqrt(var(x)); PyTorch's `std`, a name that C++ has taken.
///
///     tensor spread = stddev(x, 0);
SINTER_FORMULA_REDUCTION(stddev, ops::var_op, detail::root_of_var)

#undef SINTER_FORMULA_REDUCTION

}  // namespace sinter
