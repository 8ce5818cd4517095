// sinter/ops/argmin.hpp: the index of the smallest element.
#pragma once

#include "sinter/ops/detail/reduction.hpp"

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

/// Index (int64) of the first smallest element of all in row-major order, or along an axis; the first NaN wins. No
/// derivative. Throws shape_error where there are no elements.
///
///     tensor predicted = argmin(logits, 1);
SINTER_REDUCTION(argmin, ops::argmin_op)

}  // namespace sinter
