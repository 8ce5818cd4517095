// sinter/ops/min.hpp: the smallest element along axes.
#pragma once

#include "sinter/ops/detail/extreme.hpp"

namespace sinter {
namespace ops {

struct min_op : extreme_op {
  static constexpr const char* name = "min";
  template <class T>
  using reducer = sinter::detail::min_reducer<T>;
};

}  // namespace ops

/// The smallest element of all, along one axis, or along a list of axes; with keepdim they stay with extent 1. NaN
/// wins. Derivative: g, shared equally among the elements that are smallest, or NaN. Throws shape_error where there are
/// no elements.
///
///     tensor row_min = min(x, 1);
SINTER_REDUCTION(min, ops::min_op)

}  // namespace sinter
