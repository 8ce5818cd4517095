// sinter/ops/cast.hpp: conversion to another element type.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

template <class To, class From>
struct cast_op {
  static constexpr const char* name = "cast";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class>
  static constexpr bool accepts = true;
  template <class>
  using result = To;
  template <class V>
  SINTER_WORD static auto apply(V x) {
    if constexpr (narrow_element<To>) return math::rounded<To>(math::cast<float>(x));
    else return math::cast<To>(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    if constexpr (expression<G>) return cast<From>(g);
    else return math::cast<compute_type<From>>(g);
  }
};

}  // namespace ops

/// x with elements of type To. Fractions become integers by truncation towards 0, limited to the range of To, NaN
/// becomes 0; integers become smaller ones by their low bits, as in C++; bool is whether x != 0. To the type it has: x
/// itself. Derivative: g, cast back, between floating-point types; the result of a cast to an integer or bool is not
/// tracked.
///
///     tensor<float, 2> y = cast<float>(pixels) / 255;
template <element To, expression A>
auto cast(A&& x) {
  if constexpr (std::is_same_v<To, element_of<A>>) return detail::bare<A>(std::forward<A>(x));
  else return detail::make_map(ops::cast_op<To, element_of<A>>{}, std::forward<A>(x));
}
template <element To, class A, class Problem = typename detail::no_operands<A>::problem,
          class Fix = typename detail::no_operands<A>::fix>
void cast(A&&) = delete;

}  // namespace sinter
