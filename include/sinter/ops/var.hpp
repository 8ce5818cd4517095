// sinter/ops/var.hpp: the variance along axes.
#pragma once

#include "sinter/ops/detail/reduction.hpp"
#include "sinter/ops/mean.hpp"
#include "sinter/ops/square.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

namespace ops {

struct var_op {
  using fix_of_third = write_dot_correction_0_in_braces_or_keepdim;
  static constexpr const char* name = "var";
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = floating_element<T>;
  template <class T>
  using reducer = sinter::detail::var_reducer<T>;
  template <class E>
  static auto prepare(const E& e, const sinter::detail::axis_set& axes) {
    return e - sinter::detail::make_reduction<mean_op, rank_of<E>>(e, axes);
  }
  template <class E>
  static auto summand(const E& distance, index_t n) {
    using T = element_of<E>;
    return square(distance) * (n > 1 ? T(1) / static_cast<T>(n - 1) : std::numeric_limits<T>::quiet_NaN());
  }
};

}  // namespace ops

/// The unbiased variance, sum((x - mean)^2) / (n - 1), of all elements, along one axis, or along a list of axes; with
/// keepdim they stay with extent 1. Two passes, so no cancellation; right wherever it is in the range of the type, also
/// where the sum is not. NaN of fewer than two elements.
/// Derivative: 2 g (x - mean) / (n - 1).
///
///     tensor spread = sqrt(var(x, 0));
SINTER_REDUCTION(var, ops::var_op)

}  // namespace sinter
