// sinter/ops/ternary.hpp: declares functions of three operands, and of one operand and numbers, with their rejections.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter::detail {

template <class A>
struct device_or_any {
  using type = any_device;
};
template <class A>
  requires expression<A>
struct device_or_any<A> {
  using type = device_of<A>;
};
/// The device of an operand; any_device for a literal.
template <class A>
using operand_device = typename device_or_any<A>::type;
template <class A>
using operand_element = typename element_or_literal<A>::type;
/// The element type that literals among the operands take.
template <class... A>
using literals_type = typename literal_target<A...>::type;

template <class A, class B, class C>
concept three_operands = operand<A> && operand<B> && operand<C> && (expression<A> || expression<B> || expression<C>);

template <class A, class B, class C>
concept three_devices_agree = devices_agree<A, B> && devices_agree<A, C> && devices_agree<B, C>;

template <class A, class B, class C>
concept three_elements_agree = elements_agree<A, B> && elements_agree<A, C> && elements_agree<B, C>;

template <class A, class B, class C>
concept three_literals_fit = literal_fits<A, literals_type<A, B, C>> && literal_fits<B, literals_type<A, B, C>> &&
                             literal_fits<C, literals_type<A, B, C>>;

template <class A, class B, class C>
concept three_compatible = three_operands<A, B, C> && three_devices_agree<A, B, C> && three_elements_agree<A, B, C> &&
                           three_literals_fit<A, B, C>;

template <class Op, class A, class B, class C>
auto make_ternary(Op op, A&& a, B&& b, C&& c) {
  using T = literals_type<A, B, C>;
  return make_map(op, as_node<T>(std::forward<A>(a)), as_node<T>(std::forward<B>(b)), as_node<T>(std::forward<C>(c)));
}

}  // namespace sinter::detail

namespace sinter {

/// An expression of float or double elements.
template <class E>
concept real_expression = expression<E> && floating_element<element_of<E>>;

}  // namespace sinter

// Declares `name(a, b, c)` for a ternary op together with every rejection. At least one operand is an expression.
#define SINTER_TERNARY_FUNCTION(name, op)                                                                              \
  template <class A, class B, class C>                                                                                 \
    requires(::sinter::detail::three_compatible<A, B, C> &&                                                            \
             op::template accepts<::sinter::detail::literals_type<A, B, C>>)                                           \
  auto name(A&& a, B&& b, C&& c) {                                                                                     \
    return ::sinter::detail::make_ternary(op{}, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));           \
  }                                                                                                                    \
  template <class A, class B, class C,                                                                                 \
            class Problem = ::sinter::operands_on_different_devices<                                                   \
                ::sinter::detail::operand_device<A>, ::sinter::detail::operand_device<B>,                              \
                ::sinter::detail::operand_device<C>>,                                                                  \
            class Fix = ::sinter::copy_one_operand_with_dot_to>                                                        \
    requires(::sinter::detail::three_operands<A, B, C> && !::sinter::detail::three_devices_agree<A, B, C>)             \
  void name(const A&, const B&, const C&) = delete;                                                                    \
  template <class A, class B, class C,                                                                                 \
            class Problem = ::sinter::mixed_element_types<::sinter::detail::operand_element<A>,                        \
                                                          ::sinter::detail::operand_element<B>,                        \
                                                          ::sinter::detail::operand_element<C>>,                       \
            class Fix = ::sinter::convert_one_operand_with_cast>                                                       \
    requires(::sinter::detail::three_operands<A, B, C> && ::sinter::detail::three_devices_agree<A, B, C> &&            \
             !::sinter::detail::three_elements_agree<A, B, C>)                                                         \
  void name(const A&, const B&, const C&) = delete;                                                                    \
  template <class A, class B, class C,                                                                                 \
            class Problem =                                                                                            \
                ::sinter::floating_literal_with_elements_of_type<::sinter::detail::literals_type<A, B, C>>,            \
            class Fix = ::sinter::write_an_integer_literal_or_cast_the_tensor>                                         \
    requires(::sinter::detail::three_operands<A, B, C> && ::sinter::detail::three_devices_agree<A, B, C> &&            \
             ::sinter::detail::three_elements_agree<A, B, C> && !::sinter::detail::three_literals_fit<A, B, C>)        \
  void name(const A&, const B&, const C&) = delete;

// The rejection of element types for a function of one real operand and numbers.
#define SINTER_REAL_ONLY(name)                                                                                         \
  template <::sinter::expression A, class... Number,                                                                   \
            class Problem = ::sinter::element_type_without_this_op<::sinter::element_of<A>>,                           \
            class Fix = ::sinter::use_another_element_type_or_cast>                                                    \
    requires(!::sinter::real_expression<A>)                                                                            \
  void name(A&&, Number...) = delete;
