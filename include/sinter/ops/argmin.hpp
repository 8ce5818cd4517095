// sinter/ops/argmin.hpp: the index of the smallest element.
#pragma once

#include "sinter/ops/detail/arg_extreme.hpp"

namespace sinter {
namespace ops {

struct argmin_op {
  static constexpr const char* name = "argmin";
  static constexpr bool needs_values = true;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::argmin_reducer<T>;
};

}  // namespace ops

namespace detail {

template <int R, class E>
auto argmin_of(const char*, const E& x, const axis_set& axes, const arg_options& o) {
  return arg_extreme_of<ops::argmin_op, R>(x, axes, o);
}

}  // namespace detail

/// Index (int64) of the first smallest element of all in row-major order, or along an axis; the first NaN wins. No
/// derivative. Throws shape_error where there are no elements.
///
///     tensor predicted = argmin(logits, 1);
SINTER_REDUCTION(argmin, ops::argmin_op)
/// The same; of several that are equal the last where the options say so. Runs at once.
///
///     tensor predicted = argmin(logits, 1, {.select_last = true});
SINTER_REDUCTION_WITH(argmin, ops::argmin_op, detail::argmin_of, const arg_options& o)

}  // namespace sinter
