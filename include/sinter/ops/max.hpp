// sinter/ops/max.hpp: the largest element along axes.
#pragma once

#include "sinter/ops/detail/extreme.hpp"

namespace sinter {
namespace ops {

struct max_op : extreme_op {
  static constexpr const char* name = "max";
  template <class T>
  using reducer = sinter::detail::max_reducer<T>;
};

}  // namespace ops

/// The largest element of all, along one axis, or along a list of axes; with keepdim they stay with extent 1. NaN wins.
/// Derivative: g, shared equally among the elements that are largest, or NaN. Throws shape_error where there are no
/// elements.
///
///     tensor row_max = max(x, 1);
SINTER_REDUCTION(max, ops::max_op)

}  // namespace sinter
