// sinter/ops/detail/scan.hpp: what cumsum, cumprod, ... share: folds of all elements up to each along an axis.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/expr/reducer.hpp"
#include "sinter/ops/concat.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/detail/lines.hpp"

namespace sinter {

/// Behind the operands of cumsum and cumprod.
///
///     cumsum(x, 0, {.exclusive = true});
struct scan_options {
  bool exclusive = false;  ///< each result is that of the elements before, without its own
  bool reverse = false;    ///< from the last element to the first
};

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

/// The same in another way; `nothing` is the fold of no elements.
template <class Op, class E>
evaluated<kernel_of<Op, E>> scan_in_a_way(E&& e, index_t axis, const scan_options& o, int nothing) {
  using Y = evaluated<kernel_of<Op, E>>;
  check_defined(Op::name, e);
  const int a = checked_axis(Op::name, axis, rank_of<E>);
  evaluated<E> x = eval_to_read(std::forward<E>(e));
  if (o.reverse) x = x.flip(a);
  Y y = eval(make_scan<Op>(x, a));
  const index_t n = y.shape()[a];
  if (o.exclusive && n > 0) {
    auto first = y.shape();
    first[a] = 1;
    y = concat(a, full<element_of<Y>, device_of<Y>>(first, nothing), y.slice(a, 0, n - 1));
  }
  return o.reverse ? Y(y.flip(a)) : y;
}

}  // namespace detail
}  // namespace sinter
