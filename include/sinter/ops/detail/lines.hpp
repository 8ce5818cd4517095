// sinter/ops/detail/lines.hpp: what functions along one axis take, and their rejections.
#pragma once

#include "sinter/expr/declare.hpp"

namespace sinter {

// Names in messages.
struct axis_that_is_not_given;
struct pass_the_axis_or_minus_1_for_the_last;
template <int...>
struct operands_of_ranks;
template <int Least, int Most>
struct use_an_operand_of_rank;
struct value_that_let_names_in_a_kernel_of_its_own;
struct evaluate_it_before_let;

namespace detail {

/// Of an operand that needs so many axes.
template <int Least, int Most, class E>
constexpr auto find_axes_mistake() {
  if constexpr (is_assignment<E>) return operand_check<E>{};
  else if constexpr (!expression<E>) return no_operands<E>{};
  else if constexpr (reads_name<E>)
    return mistake<value_that_let_names_in_a_kernel_of_its_own, evaluate_it_before_let>{};
  else if constexpr (rank_of<E> < Least || rank_of<E> > Most)
    return mistake<operands_of_ranks<rank_of<E>>, use_an_operand_of_rank<Least, Most>>{};
  else return fitting<element_of<E>>{};
}
template <class E, int Least = 1, int Most = max_rank>
using axes_mistake = decltype(find_axes_mistake<Least, Most, bare<E>>());
template <class E, int Least = 1, int Most = max_rank>
concept has_axes = is_fitting<axes_mistake<E, Least, Most>>;

/// The same of floating-point elements.
template <int Least, int Most, class E>
constexpr auto find_reals_mistake() {
  if constexpr (!has_axes<E, Least, Most>) return axes_mistake<E, Least, Most>{};
  else if constexpr (!floating_element<element_of<E>>)
    return mistake<element_type_without_this_op<element_of<E>>, use_another_element_type_or_cast>{};
  else return fitting<element_of<E>>{};
}
template <class E, int Least, int Most = max_rank>
using reals_mistake = decltype(find_reals_mistake<Least, Most, bare<E>>());
template <class E, int Least, int Most = max_rank>
concept has_reals = is_fitting<reals_mistake<E, Least, Most>>;

/// Of an operand that is scanned or sorted along an axis.
template <int Least, class E>
constexpr auto find_lines_mistake() {
  if constexpr (!has_axes<E, Least>) return axes_mistake<E, Least>{};
  else if constexpr (narrow_element<element_of<E>>)
    return mistake<element_type_without_this_op<element_of<E>>, use_another_element_type_or_cast>{};
  else return fitting<element_of<E>>{};
}
template <class E, int Least = 1>
using lines_mistake = decltype(find_lines_mistake<Least, bare<E>>());
/// Scans take E.
template <class E>
concept takes_lines = is_fitting<lines_mistake<E>>;
/// Sorts take E: a scalar is a line of one element.
template <class E>
using sort_mistake = lines_mistake<E, 0>;
template <class E>
concept takes_order = is_fitting<sort_mistake<E>>;

}  // namespace detail
}  // namespace sinter
