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
  using reducer = sinter::detail::sum_reducer<T>;
  template <class Node>
  static auto finish(Node node, index_t n) {
    return std::move(node) / static_cast<element_of<Node>>(n);
  }
};

}  // namespace ops

/// The mean of all elements, along one axis, or along a list of axes; with keepdim they stay with extent 1. Floating
/// point; NaN where there is nothing to average. Derivative: g / n.
///
///     tensor centred = x - mean(x, 0, keepdim);
SINTER_REDUCTION(mean, ops::mean_op)

}  // namespace sinter
