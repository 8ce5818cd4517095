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

struct cumprod_op : scan_op {
  static constexpr const char* name = "cumprod";
  static constexpr unsigned grad_uses[1] = {uses::first | uses::result};
  template <class T>
  using reducer = sinter::detail::prod_reducer<T>;
  template <class T, class...>
  using result = typename reducer<T>::result;
  using scan_op::scan_op;

  // With s(v)[k] the sum of v[k], v[k+1], ...: before the first zero s(g y) / x. At the first zero s(g z), with z the
  // products in which 1 stands for it. After it 0.
  template <int I, class G, class X>
  G grad(const G& g, const X& operand, const G& y) const {
    using sinter::detail::scan_now;
    const G x = eval(operand);
    const auto sum_from = [this](const G& a, const G& b) {
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
  requires detail::takes_operands<ops::cumprod_op, E>
detail::kernel_of<ops::cumprod_op, E> cumprod(E&& x, detail::whole axis) {
  return detail::make_scan<ops::cumprod_op>(std::forward<E>(x), axis);
}
SINTER_KERNEL_REJECTIONS(cumprod, ops::cumprod_op)
SINTER_AXIS_REJECTION(cumprod)

}  // namespace sinter
