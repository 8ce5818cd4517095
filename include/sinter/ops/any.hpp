// sinter/ops/any.hpp: whether at least one element is true.
#pragma once

#include "sinter/ops/detail/reduction.hpp"

namespace sinter {
namespace ops {

struct any_op {
  static constexpr const char* name = "any";
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::any_reducer<T>;
};

}  // namespace ops

/// Whether at least one element is true (not zero), over all, along one axis, or along a list of axes; with keepdim
/// they stay with extent 1. Of nothing: false. No derivative.
///
///     bool found = any(x > 3).item();
SINTER_REDUCTION(any, ops::any_op)

}  // namespace sinter
