// sinter/ops/all.hpp: whether every element is true.
#pragma once

#include "sinter/ops/detail/reduction.hpp"

namespace sinter {
namespace ops {

struct all_op {
  static constexpr const char* name = "all";
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::all_reducer<T>;
};

}  // namespace ops

/// Whether every element is true (not zero), over all, along one axis, or along a list of axes; with keepdim they stay
/// with extent 1. Of nothing: true. No derivative.
///
///     bool found = all(x > 3).item();
SINTER_REDUCTION(all, ops::all_op)

}  // namespace sinter
