// sinter/expr/operands.hpp: what ops ask of their operands, and the name of each mistake.
#pragma once

#include "sinter/core/concepts.hpp"

namespace sinter {

template <class...>
struct element_type_without_this_op;
struct use_another_element_type_or_cast;
struct operand_is_an_assignment_that_has_not_run;
struct write_the_assignment_as_a_statement_of_its_own;

namespace detail {

template <class D, class... Rest>
struct first_of_devices {
  using type = D;
};
template <class D, class... Rest>
struct first_of_devices<any_device, D, Rest...> : first_of_devices<D, Rest...> {};
/// The device of the first operand that has one; any_device for none.
template <class... A>
struct first_device : first_of_devices<device_of<A>...> {};

// The element type that literals among the operands take.
template <class... A>
struct literal_target {
  using type = void;
};
template <class A, class... Rest>
struct literal_target<A, Rest...> : literal_target<Rest...> {};
template <class A, class... Rest>
  requires expression<A>
struct literal_target<A, Rest...> {
  using type = element_of<A>;
};
template <class... A>
using literals_type = typename literal_target<A...>::type;

template <class A>
struct operand_traits {
  using device = any_device;
  using element = bare<A>;
};
template <class A>
  requires expression<A>
struct operand_traits<A> {
  using device = device_of<A>;
  using element = element_of<A>;
};
/// The device of an operand; any_device for a literal.
template <class A>
using operand_device = typename operand_traits<A>::device;
/// The element type of an operand; of a literal, its own.
template <class A>
using operand_element = typename operand_traits<A>::element;

template <class D, class... Device>
inline constexpr bool all_on = ((std::is_same_v<Device, D> || std::is_same_v<Device, any_device>) && ...);

/// All on one device; literals are on any.
template <class... A>
inline constexpr bool devices_agree =
    all_on<typename first_of_devices<operand_device<A>...>::type, operand_device<A>...>;

/// All of one element type; literals take it.
template <class... A>
inline constexpr bool elements_agree = ((literal<A> || std::is_same_v<operand_element<A>, literals_type<A...>>) && ...);

template <class... A>
constexpr auto find_operand_mistake() {
  if constexpr ((is_assignment<A> || ...))
    return mistake<operand_is_an_assignment_that_has_not_run, write_the_assignment_as_a_statement_of_its_own>{};
  else if constexpr (!(operand<A> && ...) || !(expression<A> || ...)) return no_operands<A...>{};
  else if constexpr (!devices_agree<A...>)
    return mistake<operands_on_different_devices<operand_device<A>...>, copy_one_operand_with_dot_to>{};
  else if constexpr (!elements_agree<A...>)
    return mistake<mixed_element_types<operand_element<A>...>, convert_one_operand_with_cast>{};
  else if constexpr (!(literal_fits<A, literals_type<A...>> && ...))
    return mistake<floating_literal_with_elements_of_type<literals_type<A...>>,
                   write_an_integer_literal_or_cast_the_tensor>{};
  else return fitting<literals_type<A...>>{};
}

/// fitting<T>, a mistake, or not_operands.
template <class... A>
using operand_check = decltype(find_operand_mistake<bare<A>...>());

template <class Op, class T>
concept accepts = Op::template accepts<T>;

template <class Op, class Check>
struct op_check : Check {
  static constexpr bool fits = false;
};
template <class Op, class T>
struct op_check<Op, fitting<T>> {
  static constexpr bool fits = true;
};
/// What to do about elements of type T, of which there is no Op.
template <class Op, class T>
struct fix_of_element_type {
  using type = use_another_element_type_or_cast;
};
template <class Op>
  requires requires { typename Op::fix_for_masks; }
struct fix_of_element_type<Op, bool> {
  using type = typename Op::fix_for_masks;
};
template <class Op, class T>
  requires(!accepts<Op, T>)
struct op_check<Op, fitting<T>> : mistake<element_type_without_this_op<T>, typename fix_of_element_type<Op, T>::type> {
  static constexpr bool fits = false;
};

/// Op takes these operands.
template <class Op, class... A>
inline constexpr bool fits = op_check<Op, operand_check<A...>>::fits;
/// Its `problem` and `fix` exist only where the operands are ours and do not fit.
template <class Op, class... A>
using mistake_of = op_check<Op, operand_check<A...>>;

}  // namespace detail
}  // namespace sinter
