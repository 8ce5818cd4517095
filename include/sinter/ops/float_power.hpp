// sinter/ops/float_power.hpp: powers in double.
#pragma once

#include "sinter/ops/cast.hpp"
#include "sinter/ops/pow.hpp"

namespace sinter {

namespace detail {

template <class A>
decltype(auto) in_double(A&& a) {
  if constexpr (literal<A>) return static_cast<double>(a);
  else if constexpr (std::is_same_v<element_of<A>, double>) return std::forward<A>(a);
  else return cast<double>(std::forward<A>(a));
}
template <class A, class B>
concept powers_in_double = operand<A> && operand<B> && (expression<A> || expression<B>) && fits<ops::pow_op, A, B>;

}  // namespace detail

/// a^b in double, whatever the element type: pow(cast<double>(a), cast<double>(b)), with its derivative.
///
///     tensor y = float_power(x, 2);
template <class A, class B>
  requires(detail::powers_in_double<A, B>)
auto float_power(A&& a, B&& b) {
  return pow(detail::in_double(std::forward<A>(a)), detail::in_double(std::forward<B>(b)));
}
SINTER_BINARY_REJECTIONS(float_power, ops::pow_op)

}  // namespace sinter
