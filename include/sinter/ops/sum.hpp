// sinter/ops/sum.hpp: the sum along axes.
#pragma once

#include "sinter/ops/detail/reduction.hpp"

namespace sinter {
namespace ops {

struct sum_op {
  static constexpr const char* name = "sum";
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::sum_reducer<T>;
};

}  // namespace ops

/// The sum of all elements (rank 0), along one axis, or along a list of axes; with keepdim they stay with extent 1.
/// Integers and bool sum to int64. Float sums are gathered in vectors over short runs and in double between them, so
/// the error does not grow with the length. Derivative: g, broadcast along the axes.
///
///     tensor total = sum(x);
///     tensor per_row = sum(square(x), 1);
SINTER_REDUCTION(sum, ops::sum_op)

}  // namespace sinter
