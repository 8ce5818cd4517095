// sinter/ops/cumsum.hpp: running sums.
#pragma once

#include "sinter/ops/detail/scan.hpp"

namespace sinter {
namespace ops {

struct cumsum_op {
  static constexpr const char* name = "cumsum";
  static constexpr bool keeps_operands = false;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::sum_reducer<T>;
  template <class Tensor>
  static Tensor grad(const Tensor& g, int axis) {
    return sinter::detail::scan_now<cumsum_op>(g.flip(axis), axis).flip(axis);
  }
};

}  // namespace ops

/// y[i] = x[0] + ... + x[i] along an axis, -1 for the last. Integers and bool sum to int64. Float sums are gathered in
/// double, so the error does not grow with the length. Elementwise work before it is part of its kernel, along the last
/// axis work after it too. Derivative: the sums of g from the end.
///
///     tensor total_so_far = cumsum(x, 0);
template <expression E>
  requires detail::scannable<ops::cumsum_op, E>
scan_expr<ops::cumsum_op, detail::prologue_of<E>> cumsum(E&& x, detail::whole axis) {
  return detail::make_scan<ops::cumsum_op>(std::forward<E>(x), axis);
}
SINTER_LINES_REJECTIONS(cumsum)
SINTER_AXIS_REJECTION(cumsum)

}  // namespace sinter
