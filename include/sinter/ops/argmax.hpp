// sinter/ops/argmax.hpp: the index of the largest element.
#pragma once

#include "sinter/ops/detail/reduction.hpp"

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

/// Index (int64) of the first largest element of all in row-major order, or along an axis; the first NaN wins. No
/// derivative. Throws shape_error where there are no elements.
///
///     tensor predicted = argmax(logits, 1);
SINTER_REDUCTION(argmax, ops::argmax_op)

}  // namespace sinter
