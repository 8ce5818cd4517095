// sinter/ops/cumprod.hpp: running products.
#pragma once

#include "sinter/ops/cumsum.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {
namespace ops {

struct cumprod_op {
  static constexpr const char* name = "cumprod";
  static constexpr bool keeps_operands = true;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::prod_reducer<T>;
  // With s(v)[k] the sum of v[k], v[k+1], ...: before the first zero s(g y) / x. At the first zero s(g z), with z the
  // products in which 1 stands for it. After it 0.
  template <class Tensor>
  static Tensor grad(const Tensor& g, const Tensor& x, const Tensor& y, int axis) {
    using sinter::detail::scan_now;
    const auto sum_from = [axis](const Tensor& a, const Tensor& b) {
      return scan_now<cumsum_op>(a.flip(axis) * b.flip(axis), axis).flip(axis);
    };
    const auto zeros = scan_now<cumsum_op>(x == 0, axis);
    const auto first = eval(zeros == 1 && x == 0);
    const auto z = scan_now<cumprod_op>(where(first, 1, x), axis);
    return where(zeros == 0, sum_from(g, y) / x, where(first, sum_from(g, z), 0));
  }
};

}  // namespace ops

/// y[i] = x[0] x[1] ... x[i] along an axis, -1 for the last. Integers and bool multiply to int64; float products are
/// gathered in double. Derivative: the sums of g y from the end, over x; exact where x has zeros too.
///
///     tensor survival = cumprod(1 - x, 1);
template <expression E>
  requires detail::scannable<ops::cumprod_op, E>
scan_expr<ops::cumprod_op, detail::prologue_of<E>> cumprod(E&& x, detail::whole axis) {
  return detail::make_scan<ops::cumprod_op>(std::forward<E>(x), axis);
}
SINTER_LINES_REJECTIONS(cumprod)
SINTER_AXIS_REJECTION(cumprod)

}  // namespace sinter
