// sinter/ops/in_place.hpp: +=, -=, *=, /= on tensors and views.
#pragma once

#include "sinter/expr/evaluate.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

struct left_side_is_const;
struct left_side_has_not_been_evaluated;
struct write_through_dot_in_place;
struct assign_it_to_a_tensor_first;

namespace detail {

template <class Y, class E>
constexpr auto find_update_mistake() {
  using Target = bare<Y>;
  if constexpr (is_assignment<Target> || is_assignment<bare<E>>) return operand_check<Y, E>{};
  else if constexpr (std::is_arithmetic_v<Target> && expression<E>) return number_mistake<Target, rank_of<E>>{};
  else if constexpr (!expression<Y> || !operand<E>) return no_operands<Y, E>{};
  else if constexpr (is_variable<Target>)
    return mistake<updating_a_tracked_variable_in_place, write_through_dot_value_instead>{};
  else if constexpr (!is_tensor<Target>)
    return mistake<left_side_has_not_been_evaluated, assign_it_to_a_tensor_first>{};
  else if constexpr (std::is_const_v<std::remove_reference_t<Y>>)
    return mistake<left_side_is_const, write_through_dot_in_place>{};
  else if constexpr (!std::is_same_v<operand_check<Y, E>, fitting<element_of<Y>>>) return operand_check<Y, E>{};
  else if constexpr (!expression<E>) return fitting<element_of<Y>>{};
  else if constexpr (is_tracked_v<E>)
    return mistake<expression_is_tracked_for_gradients, declare_a_variable_or_use_detach>{};
  else if constexpr ((rank_of<E>) > rank_of<Y>)
    return mistake<conversion_between_ranks<rank_of<E>, rank_of<Y>>, use_reshape_squeeze_or_unsqueeze>{};
  else return fitting<element_of<Y>>{};
}

/// fitting<T>, a mistake, or not_operands, of `y += e`.
template <class Y, class E>
using update_check = decltype(find_update_mistake<Y, E>());
template <class Op, class Y, class E>
using update_mistake = op_check<Op, update_check<Y, E>>;

/// The pending assignment that `y += e` is. Named, so that asking whether the operator exists runs nothing.
template <class Op, class Y, class E>
using updating = assignment<std::conditional_t<std::is_lvalue_reference_v<Y>, const bare<Y>&, bare<Y>>,
                            map_expr<Op, bare<Y>, bare<decltype(as_expr<element_of<Y>>(std::declval<E>()))>>>;

template <class Assignment, class Op, class Y, class E>
Assignment update(Op op, Y& y, E&& e) {
  check_defined("in-place update", y);
  return Assignment(y, make_map(op, y, as_expr<element_of<Y>>(std::forward<E>(e))));
}

}  // namespace detail

// `y += e` writes through y's storage, so every view sees it. e broadcasts to y. The update runs at the end of the
// statement, or in one pass with others inside fuse().
SINTER_IN_PLACE_OPERATOR(operator+=, ops::add_op)
SINTER_IN_PLACE_OPERATOR(operator-=, ops::subtract_op)
SINTER_IN_PLACE_OPERATOR(operator*=, ops::multiply_op)
SINTER_IN_PLACE_OPERATOR(operator/=, ops::divide_op)

}  // namespace sinter
