// sinter/ops/op.hpp: what an op is made of: the element types it accepts, and the helpers its formulas are written
// with.
#pragma once

#include "sinter/expr/declare.hpp"
#include "sinter/expr/kernel.hpp"
#include "sinter/math/scalar.hpp"

namespace sinter::ops {

namespace detail {

template <class Op>
concept has_element_types = requires {
  { Op::template accepts<float> } -> std::convertible_to<bool>;
} && (requires { typename Op::template result<float>; } || requires { typename Op::template result<float, float>; } ||
      requires { typename Op::template result<float, float, float>; });

template <class Op>
concept has_whole_derivative = sinter::detail::has_grad_uses<Op> == sinter::detail::has_grad<Op>;

}  // namespace detail

/// An elementwise op: a class, not final, with the members below. docs/adding-an-op.md goes through an example. False,
/// never an error, for any other type.
template <class Op>
concept is_elementwise_op =
    // static constexpr const char* name: as error messages and explain() call it.
    sinter::detail::has_name<Op> &&
    // accepts<T>, result<T...>: the element types that it takes and gives, usually from one of the bases below.
    detail::has_element_types<Op> &&
    // apply(v...): the formula, for any kind of value, in words of math/vocabulary.hpp and operators only.
    sinter::detail::has_apply<Op> &&
    // grad_uses[I]: what the derivative to operand I reads: uses::first, uses::second, uses::result, ...
    // grad<I>(g, v..., y): that derivative times g. Its arguments are values, or expressions (for derivatives of
    // derivatives), so it is written in operators, literals and unqualified words. What grad_uses does not name is a
    // placeholder and may not be used. An op without a derivative has neither.
    detail::has_whole_derivative<Op>;

/// True; for a class that is no elementwise op, an error that names what is missing.
template <class Op>
constexpr bool check_elementwise_op() {
  // Of a concept the compiler would list what it consists of.
  constexpr bool name = sinter::detail::has_name<Op>, elements = detail::has_element_types<Op>,
                 formula = sinter::detail::has_apply<Op>, derivative = detail::has_whole_derivative<Op>;
  static_assert(name, "sinter: an elementwise op needs 'static constexpr const char* name'; see docs/adding-an-op.md");
  static_assert(elements,
                "sinter: an elementwise op needs 'accepts<T>' and 'result<T...>', usually from a base such as "
                "real_op; see docs/adding-an-op.md");
  static_assert(formula, "sinter: an elementwise op needs its formula, 'apply'; see docs/adding-an-op.md");
  static_assert(derivative,
                "sinter: an elementwise op needs both 'grad' and 'grad_uses', or neither; see "
                "docs/adding-an-op.md");
  return true;
}

// In derivatives an unqualified `exp(x)` finds the word for values and, by argument, the function for expressions.
using namespace math;  // NOLINT

/// Floating-point types; the result has the operands' type.
struct real_op {
  template <class T>
  static constexpr bool accepts = floating_element<T>;
  template <class T, class...>
  using result = T;
};

/// Every element type but bool; the result has the operands' type.
struct number_op {
  template <class T>
  static constexpr bool accepts = !std::is_same_v<T, bool>;
  template <class T, class...>
  using result = T;
};

struct use_two_ampersands_two_bars_or_an_exclamation_mark_for_masks;
/// Integers; the result has the operands' type.
struct integer_op {
  using fix_for_masks = use_two_ampersands_two_bars_or_an_exclamation_mark_for_masks;
  template <class T>
  static constexpr bool accepts = integer_element<T>;
  template <class T, class...>
  using result = T;
};

/// Every element type, giving bool.
struct predicate_op {
  template <class T>
  static constexpr bool accepts = true;
  template <class...>
  using result = bool;
};

/// Every element type that has an order, giving bool: not bool itself, so that `0 < a < 1` is no comparison of a mask.
struct order_op : number_op {
  template <class...>
  using result = bool;
};

/// bool to bool.
struct logical_op {
  template <class T>
  static constexpr bool accepts = std::is_same_v<T, bool>;
  template <class...>
  using result = bool;
};

/// Op on bool alone, as operators are, so that `x && y` is no question about numbers.
template <class Op>
struct of_masks : Op {
  template <class T>
  static constexpr bool accepts = logical_op::accepts<T>;
};

/// A zero of G's kind, for derivatives that vanish.
template <class G>
SINTER_WORD auto zero_of(const G& g) {
  if constexpr (expression<G>) return g * 0;
  else return math::constant<G>(0);
}

/// The number c with the element type of `like`, for derivatives: `g * number(g, 0.5)`.
template <class G>
SINTER_WORD auto number([[maybe_unused]] const G& like, double c) {
  if constexpr (expression<G>) return static_cast<compute_type<element_of<G>>>(c);
  else return math::constant<G>(c);
}

/// Another op inside a derivative: `call<sigmoid_op>(x)`.
template <class Op, class... A>
SINTER_WORD auto call(const A&... a) {
  if constexpr ((expression<A> && ...)) return sinter::detail::make_map(Op{}, a...);
  else return Op{}.apply(a...);
}

namespace detail {

template <class V>
inline constexpr bool is_mask = false;
template <class T, int L>
inline constexpr bool is_mask<math::mask<T, L>> = true;

}  // namespace detail

/// A value as its element type; comparisons give masks, whose lanes are as wide as what was compared.
template <class V>
SINTER_WORD auto without_mask(V v) {
  if constexpr (detail::is_mask<V>) return math::cast<bool>(v);
  else return v;
}

/// Integer scalars as the unsigned type in which overflow is defined to wrap around, as it does in vectors.
template <class V>
SINTER_WORD auto wrapping(V v) {
  if constexpr (math::integer<V>) return static_cast<math::detail::wrapping_t<V>>(v);
  else return v;
}

}  // namespace sinter::ops
