// sinter/ops/cumprod.hpp: running products.
#pragma once

#include <limits>

#include "sinter/ops/abs.hpp"
#include "sinter/ops/all.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/cumsum.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/greater_equal.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/less_equal.hpp"
#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/multiply.hpp"

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

  // Where every y can be divided by, the sums of g y from the end, over x. Elsewhere no product is divided: with p[i]
  // the product of all before x[i], p[i] t[i], where t[i] = g[i] + x[i+1] t[i+1].
  template <int I, class G, class X>
  G grad(const G& g, const X& operand, const G& y) const {
    const G x = eval(operand);
    using sinter::detail::scan_now;
    using T = element_of<G>;
    using D = device_of<G>;
    if constexpr (is_cpu_v<D>) {
      using limits = std::numeric_limits<T>;
      const auto size = abs(y);
      if (eval(all(size >= limits::min() && size <= limits::max())).item())
        return scan_now<cumsum_op>(g.flip(axis) * y.flip(axis), axis).flip(axis) / x;
    }
    const index_t n = x.shape()[axis];
    if (n == 0) return g;
    const auto before = eval(cast<double>(ones_like(x)));
    before.slice(axis, 1, n) = scan_now<cumprod_op>(cast<double>(x.slice(axis, 0, n - 1)), axis);
    // t[i] is the sum of g[j] x[i + 1] ... x[j] over i <= j < i + step, and a[i] is x[i + 1] ... x[i + step].
    const auto t = eval(cast<double>(g)).clone();
    const auto a = eval(cast<double>(x)).clone();
    if (n > 1) a.slice(axis, 0, n - 1) = cast<double>(x.slice(axis, 1, n));
    for (index_t step = 1; step < n; step *= 2) {
      t.slice(axis, 0, n - step) += a.slice(axis, 0, n - step) * t.slice(axis, step, n);
      a.slice(axis, 0, n - step) *= a.slice(axis, step, n);
    }
    return cast<T>(before * t);
  }
};

}  // namespace ops

/// y[i] = x[0] x[1] ... x[i] along an axis, -1 for the last. Integers and bool multiply to int64; float products are
/// gathered in double. Derivative: to x[i] the sum over k of g[k] times the product of all but x[i] in y[k], whatever
/// they are: zeros and infinities too.
///
///     tensor survival = cumprod(1 - x, 1);
template <expression E>
  requires detail::takes_operands<ops::cumprod_op, E>
detail::kernel_of<ops::cumprod_op, E> cumprod(E&& x, detail::whole axis) {
  return detail::make_scan<ops::cumprod_op>(std::forward<E>(x), axis);
}
/// The same from the end, or without the element itself, or both; runs at once.
///
///     tensor product_before = cumprod(x, 0, {.exclusive = true});
template <expression E>
  requires detail::takes_operands<ops::cumprod_op, E>
auto cumprod(E&& x, detail::whole axis, const scan_options& o) {
  return detail::scan_in_a_way<ops::cumprod_op>(std::forward<E>(x), axis, o, 1);
}
SINTER_KERNEL_REJECTIONS(cumprod, ops::cumprod_op)
SINTER_AXIS_REJECTION(cumprod)

}  // namespace sinter
