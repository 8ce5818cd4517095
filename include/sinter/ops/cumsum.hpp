// sinter/ops/cumsum.hpp: running sums.
#pragma once

#include "sinter/ops/detail/scan.hpp"

namespace sinter {
namespace ops {

struct cumsum_op : scan_op {
  static constexpr const char* name = "cumsum";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class T>
  using reducer = sinter::detail::sum_reducer<T>;
  template <class T, class...>
  using result = typename reducer<T>::result;
  using scan_op::scan_op;

  template <int I, class G, class X, class Y>
  G grad(const G& g, const X&, const Y&) const {
    return sinter::detail::scan_now<cumsum_op>(g.flip(axis), axis).flip(axis);
  }
};

}  // namespace ops

/// y[i] = x[0] + ... + x[i] along an axis, -1 for the last. Integers and bool sum to int64. Float sums are gathered in
/// double, so the error does not grow with the length. Elementwise work before it is part of its kernel, along the last
/// axis work after it too. Every element type but half and bfloat16. Derivative: the sums of g from the end.
///
///     tensor total_so_far = cumsum(x, 0);
template <expression E>
  requires detail::takes_operands<ops::cumsum_op, E>
detail::kernel_of<ops::cumsum_op, E> cumsum(E&& x, detail::whole axis) {
  return detail::make_scan<ops::cumsum_op>(std::forward<E>(x), axis);
}
/// The same from the end, or without the element itself, or both; runs at once.
///
///     tensor sum_before = cumsum(x, 0, {.exclusive = true});
template <expression E>
  requires detail::takes_operands<ops::cumsum_op, E>
auto cumsum(E&& x, detail::whole axis, const scan_options& o) {
  return detail::scan_in_a_way<ops::cumsum_op>(std::forward<E>(x), axis, o, 0);
}
SINTER_KERNEL_REJECTIONS(cumsum, ops::cumsum_op)
SINTER_AXIS_REJECTION(cumsum)

}  // namespace sinter
