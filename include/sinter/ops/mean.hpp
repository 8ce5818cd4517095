// sinter/ops/mean.hpp: the arithmetic mean along axes.
#pragma once

#include "sinter/ops/detail/reduction.hpp"
#include "sinter/ops/divide.hpp"

namespace sinter {
namespace ops {

struct mean_op {
  static constexpr const char* name = "mean";
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = floating_element<T>;
  template <class T>
  using reducer = sinter::detail::mean_reducer<T>;
  template <class E>
  static auto summand(const E& e, index_t n) {
    return e / static_cast<element_of<E>>(n);
  }
};

}  // namespace ops

/// The mean of all elements, along one axis, or along a list of axes; with keepdim they stay with extent 1. Floating
/// point; right also where the sum is beyond the range of the type; NaN where there is nothing to average. Derivative:
/// g / n.
///
///     tensor centred = x - mean(x, 0, keepdim);
SINTER_REDUCTION(mean, ops::mean_op)

}  // namespace sinter
