// sinter/ops/pow.hpp: a to the power b.
#pragma once

#include "sinter/ops/multiply.hpp"

namespace sinter {
namespace ops {

struct pow_op : number_op {
  static constexpr const char* name = "pow";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first | uses::second | uses::result};
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return math::pow(a, b);
  }
  // b a^(b-1) and a^b ln a; 0 where a^0 and 0^b, which are constant, would give 0 inf.
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A& a, const B& b, const Y& y) {
    if constexpr (I == 0) return select(b == 0, zero_of(g), g * (b * pow(a, b - 1)));
    else return select(logical_and(a == 0, b >= 0), zero_of(g), g * (y * log(a)));
  }
};

/// x to a power that is the same for all elements; small whole powers are products.
template <class T>
struct power_op : number_op {
  static constexpr const char* name = "pow";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T exponent;

  template <class V>
  SINTER_WORD V apply(V x) const {
    if (exponent == T(1)) return x;
    if (exponent == T(2)) return multiply_op::apply(x, x);
    if (exponent == T(3)) return multiply_op::apply(multiply_op::apply(x, x), x);
    if (exponent == T(-1)) return math::reciprocal(x);
    return math::pow(x, exponent);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    const power_op lower{{}, exponent == T(0) ? T(0) : exponent - T(1)};  // 0 x^0 = 0 stands for the derivative of x^0
    if constexpr (expression<X>) return g * (exponent * sinter::detail::make_map(lower, x));
    else return g * (exponent * lower.apply(x));
  }
};

}  // namespace ops

/// a^b, elementwise and broadcast, tensors or literals. Integers wrap around; a negative exponent gives the truncated
/// value. Derivative: g b a^(b-1) to a (0 where b is 0), g y ln a to b (0 where a is 0 and b is not negative).
///
///     tensor y = pow(2.f, x);
template <class A, class B>
  requires(expression<B> && detail::fits<ops::pow_op, A, B>)
auto pow(A&& a, B&& b) {
  return detail::make_binary(ops::pow_op{}, std::forward<A>(a), std::forward<B>(b));
}

/// x to a literal power; 1, 2, 3 and -1 are computed as products.
///
///     tensor y = pow(x, 2);
template <expression A, literal B>
  requires(detail::fits<ops::pow_op, A, B>)
auto pow(A&& x, B exponent) {
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::power_op<T>{{}, detail::literal_value<T>(exponent)}, std::forward<A>(x));
}
SINTER_BINARY_REJECTIONS(pow, ops::pow_op)

}  // namespace sinter
