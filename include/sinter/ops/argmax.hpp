// sinter/ops/argmax.hpp: the index of the largest element.
#pragma once

#include "sinter/ops/detail/arg_extreme.hpp"

namespace sinter {
namespace ops {

struct argmax_op {
  static constexpr const char* name = "argmax";
  static constexpr bool needs_values = true;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::argmax_reducer<T>;
};

}  // namespace ops

namespace detail {

template <int R, class E>
auto argmax_of(const char*, const E& x, const axis_set& axes, const arg_options& o) {
  return arg_extreme_of<ops::argmax_op, R>(x, axes, o);
}

}  // namespace detail

/// Index (int64) of the first largest element of all in row-major order, or along an axis; the first NaN wins. No
/// derivative. Throws shape_error where there are no elements.
///
///     tensor predicted = argmax(logits, 1);
SINTER_REDUCTION(argmax, ops::argmax_op)
/// The same; of several that are equal the last where the options say so. Runs at once.
///
///     tensor predicted = argmax(logits, 1, {.select_last = true});
SINTER_REDUCTION_WITH(argmax, ops::argmax_op, detail::argmax_of, const arg_options& o)

}  // namespace sinter
