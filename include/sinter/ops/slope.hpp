// sinter/ops/slope.hpp: a value with its derivative by one number, through the words of math/.
#pragma once

#include "sinter/ops/abs.hpp"
#include "sinter/ops/acos.hpp"
#include "sinter/ops/asin.hpp"
#include "sinter/ops/atan.hpp"
#include "sinter/ops/cbrt.hpp"
#include "sinter/ops/cos.hpp"
#include "sinter/ops/cosh.hpp"
#include "sinter/ops/erf.hpp"
#include "sinter/ops/erfc.hpp"
#include "sinter/ops/exp.hpp"
#include "sinter/ops/exp2.hpp"
#include "sinter/ops/expm1.hpp"
#include "sinter/ops/log.hpp"
#include "sinter/ops/log10.hpp"
#include "sinter/ops/log1p.hpp"
#include "sinter/ops/log2.hpp"
#include "sinter/ops/maximum.hpp"
#include "sinter/ops/minimum.hpp"
#include "sinter/ops/reciprocal.hpp"
#include "sinter/ops/rsqrt.hpp"
#include "sinter/ops/sigmoid.hpp"
#include "sinter/ops/sin.hpp"
#include "sinter/ops/sinh.hpp"
#include "sinter/ops/sqrt.hpp"
#include "sinter/ops/tan.hpp"
#include "sinter/ops/tanh.hpp"

namespace sinter::math {

/// A value and its derivative. V is a kind of value; what a formula computes of one is a `sloped`, too, and numbers and
/// values of V beside it are constants. Words without a derivative, such as floor, take none.
template <class V>
struct sloped {
  V value, slope;
};

template <class V>
struct kind<sloped<V>> {
  using element = element_t<V>;
  using mask_type = mask_t<V>;
  template <class U>
  using rebind = sloped<rebind_t<V, U>>;
  static constexpr int lanes = lanes_v<V>;
};

namespace detail {

template <class X>
inline constexpr bool is_sloped = false;
template <class V>
inline constexpr bool is_sloped<sloped<V>> = true;

template <class V>
SINTER_WORD sloped<V> with_slope(sloped<V> x) {
  return x;
}
template <class V>
SINTER_WORD sloped<V> with_slope(V x) {
  return {x, V(0)};
}
template <class V, arithmetic C>
  requires(!std::is_same_v<V, C>)
SINTER_WORD sloped<V> with_slope(C x) {
  return with_slope<V>(constant<V>(x));
}

}  // namespace detail

template <class V>
SINTER_WORD sloped<V> operator-(sloped<V> x) {
  return {-x.value, -x.slope};
}

// Each of two operands with a slope, and of one beside a constant.
#define SINTER_OF_TWO(name, formula)                                           \
  template <class V>                                                           \
  SINTER_WORD auto name(sloped<V> a, sloped<V> b) {                            \
    formula                                                                    \
  }                                                                            \
  template <class V, class B>                                                  \
    requires(!detail::is_sloped<B> && (std::is_same_v<V, B> || arithmetic<B>)) \
  SINTER_WORD auto name(sloped<V> a, B b) {                                    \
    return name(a, detail::with_slope<V>(b));                                  \
  }                                                                            \
  template <class A, class V>                                                  \
    requires(!detail::is_sloped<A> && (std::is_same_v<V, A> || arithmetic<A>)) \
  SINTER_WORD auto name(A a, sloped<V> b) {                                    \
    return name(detail::with_slope<V>(a), b);                                  \
  }
#define SINTER_VALUE(a, b) return sloped<V>{a, b};
SINTER_OF_TWO(operator+, SINTER_VALUE(a.value + b.value, a.slope + b.slope))
SINTER_OF_TWO(operator-, SINTER_VALUE(a.value - b.value, a.slope - b.slope))
SINTER_OF_TWO(operator*, SINTER_VALUE(a.value* b.value, a.slope* b.value + a.value * b.slope))
SINTER_OF_TWO(operator/, const V y = a.value / b.value; SINTER_VALUE(y, (a.slope - y * b.slope) / b.value))
SINTER_OF_TWO(operator<, return a.value < b.value;)
SINTER_OF_TWO(operator<=, return a.value <= b.value;)
SINTER_OF_TWO(operator>, return a.value > b.value;)
SINTER_OF_TWO(operator>=, return a.value >= b.value;)
SINTER_OF_TWO(operator==, return a.value == b.value;)
SINTER_OF_TWO(operator!=, return a.value != b.value;)
#define SINTER_BY_OP(op)                   \
  const V y = op::apply(a.value, b.value); \
  return sloped<V>{                        \
      y, op::template grad<0>(a.slope, a.value, b.value, y) + op::template grad<1>(b.slope, a.value, b.value, y)};
SINTER_OF_TWO(min, SINTER_BY_OP(ops::minimum_op))
SINTER_OF_TWO(max, SINTER_BY_OP(ops::maximum_op))
#undef SINTER_BY_OP
#undef SINTER_VALUE
#undef SINTER_OF_TWO

template <class M, class A, class B>
  requires(detail::is_sloped<A> || detail::is_sloped<B>)
SINTER_WORD auto select(M condition, A a, B b) {
  using V = decltype([] {
    if constexpr (detail::is_sloped<A>) return A{}.value;
    else return B{}.value;
  }());
  const sloped<V> x = detail::with_slope<V>(a), y = detail::with_slope<V>(b);
  return sloped<V>{select(condition, x.value, y.value), select(condition, x.slope, y.slope)};
}

#define SINTER_BY_OP(word, op)                             \
  template <class V>                                       \
  SINTER_WORD sloped<V> word(sloped<V> x) {                \
    const V y = math::word(x.value);                       \
    return {y, op::template grad<0>(x.slope, x.value, y)}; \
  }
SINTER_BY_OP(abs, ops::abs_op)
SINTER_BY_OP(acos, ops::acos_op)
SINTER_BY_OP(asin, ops::asin_op)
SINTER_BY_OP(atan, ops::atan_op)
SINTER_BY_OP(cbrt, ops::cbrt_op)
SINTER_BY_OP(cos, ops::cos_op)
SINTER_BY_OP(cosh, ops::cosh_op)
SINTER_BY_OP(erf, ops::erf_op)
SINTER_BY_OP(erfc, ops::erfc_op)
SINTER_BY_OP(exp, ops::exp_op)
SINTER_BY_OP(exp2, ops::exp2_op)
SINTER_BY_OP(expm1, ops::expm1_op)
SINTER_BY_OP(log, ops::log_op)
SINTER_BY_OP(log10, ops::log10_op)
SINTER_BY_OP(log1p, ops::log1p_op)
SINTER_BY_OP(log2, ops::log2_op)
SINTER_BY_OP(reciprocal, ops::reciprocal_op)
SINTER_BY_OP(rsqrt, ops::rsqrt_op)
SINTER_BY_OP(sigmoid, ops::sigmoid_op)
SINTER_BY_OP(sin, ops::sin_op)
SINTER_BY_OP(sinh, ops::sinh_op)
SINTER_BY_OP(sqrt, ops::sqrt_op)
SINTER_BY_OP(tan, ops::tan_op)
SINTER_BY_OP(tanh, ops::tanh_op)
#undef SINTER_BY_OP

}  // namespace sinter::math
