// sinter/ops/detail/scan.hpp: what cumsum, cumprod, ... share: folds of all elements up to each along an axis.
#pragma once

#include "sinter/expr/reducer.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/detail/lines.hpp"

namespace sinter {
namespace ops {

/// Base of a scan, not of half and bfloat16: cast<float>() comes first. It has `reducer<T>`, the fold of elements T,
/// and its derivative as an expression, `grad`. Work after it is part of its kernel along the last axis alone.
struct scan_op : kernel_op {
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int) { return take::formula; }
  static constexpr bool takes_epilogue = true;

  int axis;
  explicit scan_op(int along) : axis(along) {}

  template <int R>
  const extents<R>& shape(const extents<R>& x) const {
    return x;
  }
  template <int R>
  bool has_rows_side_by_side(const extents<R>&) const {
    return axis == R - 1;
  }
  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::lines_mistake<X>{};
  }
};

}  // namespace ops

namespace detail {

template <class Op, class E>
auto make_scan(E&& e, index_t axis) {
  check_defined(Op::name, e);
  return make_kernel(Op(checked_axis(Op::name, axis, rank_of<E>)), std::forward<E>(e));
}

/// The scan of plain tensors, or of elementwise work on them; used by derivatives.
template <class Op, class E>
auto scan_now(const E& e, int axis) {
  return kernel_expr<Op, E>(Op(axis), e).result();
}

}  // namespace detail
}  // namespace sinter
