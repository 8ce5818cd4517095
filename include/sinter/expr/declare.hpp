// sinter/expr/declare.hpp: macros that declare the functions of an op together with the rejection of every mistake.
#pragma once

#include <concepts>
#include <type_traits>
#include <utility>

#include "sinter/expr/expression.hpp"
#include "sinter/expr/op_members.hpp"

namespace sinter::detail {

// Any text. A parameter of this type costs clang one note where it does not fit; a constrained template costs it three.
struct any_text {
  template <std::convertible_to<const char*> T>
  any_text(const T&);
};

}  // namespace sinter::detail

// Says what an op lacks where its functions are declared. The library's own ops are not checked here, since every file
// would pay for it; a test that defines SINTER_CHECKS_OWN_OPS checks them. Behind the last of them ops.hpp turns the
// check on.
#ifdef SINTER_CHECKS_OWN_OPS
#define SINTER_CHECK_OP(...) static_assert(__VA_ARGS__);
#else
#define SINTER_CHECK_OP(...)
#endif

// As a system header, so that g++ does not follow a message with lines about the macro.
#pragma GCC system_header

// Next to each function stands one deleted for what does not fit, with two defaulted parameters that are the message:
// `Problem = operands_on_different_devices<cpu, cuda<0>>; Fix = copy_one_operand_with_dot_to`. A deleted function is
// chosen and then rejected, so `requires { a + b; }` is simply false. enable_if rather than `requires`, because clang
// spends one note on it and three on a constraint.

// The rejections of a function (or operator) of one, two or three operands, for elements that `op` accepts.
#define SINTER_UNARY_REJECTIONS(name, op)                                                   \
  template <class A, class Problem = typename ::sinter::detail::mistake_of<op, A>::problem, \
            class Fix = typename ::sinter::detail::mistake_of<op, A>::fix>                  \
  void name(A&&) = delete;
#define SINTER_BINARY_REJECTIONS(name, op)                                                              \
  template <class A, class B, class Problem = typename ::sinter::detail::mistake_of<op, A, B>::problem, \
            class Fix = typename ::sinter::detail::mistake_of<op, A, B>::fix>                           \
  void name(A&&, B&&) = delete;
#define SINTER_TERNARY_REJECTIONS(name, op)                                                                         \
  template <class A, class B, class C, class Problem = typename ::sinter::detail::mistake_of<op, A, B, C>::problem, \
            class Fix = typename ::sinter::detail::mistake_of<op, A, B, C>::fix>                                    \
  void name(A&&, B&&, C&&) = delete;

// Declares `name(a)` for an op of one operand, with its rejections.
#define SINTER_UNARY_FUNCTION(name, op)                                       \
  SINTER_CHECK_OP(::sinter::ops::check_elementwise_op<op>())                  \
  template <class A, class = std::enable_if_t<::sinter::detail::fits<op, A>>> \
  auto name(A&& a) {                                                          \
    return ::sinter::detail::make_map(op{}, std::forward<A>(a));              \
  }                                                                           \
  SINTER_UNARY_REJECTIONS(name, op)

// Declares `name(a, b)` (or `operator+(a, b)`), with its rejections. At least one operand is an expression.
#define SINTER_BINARY_FUNCTION(name, op)                                                  \
  SINTER_CHECK_OP(::sinter::ops::check_elementwise_op<op>())                              \
  template <class A, class B, class = std::enable_if_t<::sinter::detail::fits<op, A, B>>> \
  auto name(A&& a, B&& b) {                                                               \
    return ::sinter::detail::make_binary(op{}, std::forward<A>(a), std::forward<B>(b));   \
  }                                                                                       \
  SINTER_BINARY_REJECTIONS(name, op)

// Declares `name(a, b, c)`, with its rejections. At least one operand is an expression.
#define SINTER_TERNARY_FUNCTION(name, op)                                                                    \
  SINTER_CHECK_OP(::sinter::ops::check_elementwise_op<op>())                                                 \
  template <class A, class B, class C, class = std::enable_if_t<::sinter::detail::fits<op, A, B, C>>>        \
  auto name(A&& a, B&& b, C&& c) {                                                                           \
    return ::sinter::detail::make_ternary(op{}, std::forward<A>(a), std::forward<B>(b), std::forward<C>(c)); \
  }                                                                                                          \
  SINTER_TERNARY_REJECTIONS(name, op)

// The rejection of element types for a function of one real operand and numbers.
#define SINTER_REAL_ONLY(name)                                                               \
  template <::sinter::expression A, class... Number,                                         \
            class Problem = ::sinter::element_type_without_this_op<::sinter::element_of<A>>, \
            class Fix = ::sinter::use_another_element_type_or_cast>                          \
    requires(!::sinter::floating_element<::sinter::element_of<A>>)                           \
  void name(A&&, Number...) = delete;

// Declares an operator that updates its left side, with its rejections.
#define SINTER_IN_PLACE_OPERATOR(name, op)                                                                  \
  template <class Y, class E, class = std::enable_if_t<::sinter::detail::update_mistake<op, Y, E>::fits>>   \
  ::sinter::detail::updating<op, Y, E> name(Y&& y, E&& e) {                                                 \
    return ::sinter::detail::update<::sinter::detail::updating<op, Y, E>>(op{}, y, std::forward<E>(e));     \
  }                                                                                                         \
  template <class Y, class E, class Problem = typename ::sinter::detail::update_mistake<op, Y, E>::problem, \
            class Fix = typename ::sinter::detail::update_mistake<op, Y, E>::fix>                           \
  void name(Y&&, E&&) = delete;

// The rejections of a function whose first operand op::mistake() judges, whatever its other parameters.
#define SINTER_OPERAND_REJECTIONS(name, op)                                                                       \
  template <class A, class... Parameter, class Problem = typename ::sinter::detail::kernel_check<op, A>::problem, \
            class Fix = typename ::sinter::detail::kernel_check<op, A>::fix>                                      \
  void name(A&&, Parameter&&...) = delete;

// The rejections of a function whose first operand goes to the kernel op, or whose first two do, whatever its other
// parameters.
#define SINTER_KERNEL_REJECTIONS(name, op)              \
  SINTER_CHECK_OP(::sinter::ops::check_kernel_op<op>()) \
  SINTER_OPERAND_REJECTIONS(name, op)
#define SINTER_BINARY_KERNEL_REJECTIONS(name, op)                                       \
  SINTER_CHECK_OP(::sinter::ops::check_kernel_op<op>())                                 \
  template <class A, class B, class... Parameter,                                       \
            class Problem = typename ::sinter::detail::kernel_check<op, A, B>::problem, \
            class Fix = typename ::sinter::detail::kernel_check<op, A, B>::fix>         \
  void name(A&&, B&&, Parameter&&...) = delete;

// The rejection of a loss whose reduction is text, as in PyTorch.
#define SINTER_TEXT_REJECTION(name)                                                     \
  template <class A, class B, class Problem = ::sinter::reduction_that_is_text,         \
            class Fix = ::sinter::write_reduction_mean_reduction_sum_or_reduction_none> \
  void name(A&&, B&&, ::sinter::detail::any_text) = delete;
// That of options in braces, of a loss that has none.
#define SINTER_LOSS_IN_BRACES(name)                                                \
  template <class A, class B, class Problem = ::sinter::loss_options_in_braces,    \
            class Fix = ::sinter::write_the_number_and_then_reduction_none_or_sum> \
  void name(A&&, B&&, const ::sinter::detail::loss_in_braces&) = delete;

// The rejection of an option that is text, as in PyTorch: behind the first operand and other parameters.
#define SINTER_OPTION_AS_TEXT(name, fix, ...)                                                  \
  template <class X, class Problem = ::sinter::option_that_is_text, class Fix = ::sinter::fix> \
  void name(X&&, __VA_ARGS__ __VA_OPT__(, )::sinter::detail::any_text, auto&&...) = delete;

// The rejections of a function whose first two, or three, operands `judged` looks at, whatever its other parameters.
#define SINTER_REJECTIONS_OF_TWO(name, judged)                                               \
  template <class A, class B, class... More, class Problem = typename judged<A, B>::problem, \
            class Fix = typename judged<A, B>::fix>                                          \
  void name(A&&, B&&, More&&...) = delete;
#define SINTER_REJECTIONS_OF_THREE(name, judged)                                                         \
  template <class A, class B, class C, class... More, class Problem = typename judged<A, B, C>::problem, \
            class Fix = typename judged<A, B, C>::fix>                                                   \
  void name(A&&, B&&, C&&, More&&...) = delete;

// The rejections of a function of an operand that needs at least so many axes, whatever its other parameters, and where
// those are lists of N numbers, or begin with such.
#define SINTER_AXES_REJECTIONS(name, least)                                                                     \
  template <class E, class... More, class Problem = typename ::sinter::detail::axes_mistake<E, least>::problem, \
            class Fix = typename ::sinter::detail::axes_mistake<E, least>::fix>                                 \
  void name(E&&, More&&...) = delete;
#define SINTER_AXES_LIST_REJECTIONS(name, least, ...)                                                           \
  template <class E, std::size_t N, class Problem = typename ::sinter::detail::axes_mistake<E, least>::problem, \
            class Fix = typename ::sinter::detail::axes_mistake<E, least>::fix>                                 \
  void name(E&&, __VA_ARGS__) = delete;

// The rejection of a call without the axis, of a function that has no default for it.
#define SINTER_AXIS_REJECTION(name)                                                   \
  template <::sinter::expression E, class Problem = ::sinter::axis_that_is_not_given, \
            class Fix = ::sinter::pass_the_axis_or_minus_1_for_the_last>              \
  void name(E&&) = delete;
// The rejections of a function whose first operand has the mistake of that name, with these numbers, whatever its other
// parameters.
#define SINTER_FIRST_OPERAND_REJECTIONS(name, mistake_of_it, ...)                                            \
  template <class E, class... Parameter,                                                                     \
            class Problem = typename ::sinter::detail::mistake_of_it<E __VA_OPT__(, ) __VA_ARGS__>::problem, \
            class Fix = typename ::sinter::detail::mistake_of_it<E __VA_OPT__(, ) __VA_ARGS__>::fix>         \
  void name(E&&, Parameter&&...) = delete;
// Those of a function of takes_lines and of takes_order.
#define SINTER_LINES_REJECTIONS(name) SINTER_FIRST_OPERAND_REJECTIONS(name, lines_mistake)
#define SINTER_SORT_REJECTIONS(name) SINTER_FIRST_OPERAND_REJECTIONS(name, sort_mistake)

// The rejections of a reduction of `op`.
#define SINTER_REDUCTION_REJECTIONS(name, op)                                                           \
  template <class E, class... Rest,                                                                     \
            class Problem = typename ::sinter::detail::reduction_mistake<op, E, Rest...>::problem,      \
            class Fix = typename ::sinter::detail::reduction_mistake<op, E, Rest...>::fix>              \
  void name(E&&, const Rest&...) = delete;                                                              \
  template <std::size_t N, class E, class... Rest,                                                      \
            class Problem = typename ::sinter::detail::reduction_mistake<op, E, int, Rest...>::problem, \
            class Fix = typename ::sinter::detail::reduction_mistake<op, E, int, Rest...>::fix>         \
  void name(E&&, const ::sinter::index_t(&)[N], const Rest&...) = delete;
