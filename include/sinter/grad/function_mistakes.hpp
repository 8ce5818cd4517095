// sinter/grad/function_mistakes.hpp: what forward and backward functions return, and why they do not fit their
// operands.
#pragma once

#include "sinter/grad/kernel_backward.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct operands_that_are_not_all_tensors;
struct capture_the_others_in_forward_and_backward;
struct copy_one_operand_with_dot_to_or_name_each_device_in_with_gradient;
template <class...>
struct operands_on_devices;
template <class...>
struct pass_one_operand_on_each_of;
struct value_that_let_names_in_a_function_with_gradient;
struct evaluate_it_before_let;
template <int>
struct function_with_gradient_of_variables_of_order;
struct use_variables_of_order_1_or_a_formula_of_ops;
template <class...>
struct forward_that_does_not_take;
struct take_one_tensor_for_each_operand;
template <class>
struct forward_that_returns;
struct return_a_tensor_or_an_expression_or_with_saved;
struct forward_that_uses_a_captured_variable;
struct pass_the_variable_as_an_operand_or_capture_its_value;
template <class>
struct saved_value_that_is_tracked;
struct save_its_detach;
template <class>
struct result_with_elements_that_have_no_gradient;
struct return_floating_point_elements;
template <class...>
struct backward_that_does_not_take;
struct take_the_gradient_of_the_result_and_then_each_saved_value;
template <class>
struct backward_that_returns;
struct return_a_gradient_or_gradients_with_one_for_each_operand;
template <int Gradients, int Operands>
struct backward_with_gradients_for_operands;
template <int Operand, class>
struct gradient_of_operand;
template <class>
struct elements_that_have_no_gradient;
struct return_zero_gradient_in_its_place;

namespace detail {

/// As what with_saved() keeps a value: expressions are evaluated.
template <class S>
struct saved_type {
  using type = S;
};
template <expression S>
  requires(!is_variable<S>)
struct saved_type<S> {
  using type = evaluated<S>;
};
template <class S>
using value_to_save = typename saved_type<std::decay_t<S>>::type;

}  // namespace detail

/// What with_saved() returns.
template <class Y, class... S>
struct saved_result {
  Y value;
  detail::pack<S...> saved;
};
/// What gradients() returns.
template <class... G>
struct gradient_list {
  detail::pack<G...> each;
};
/// The type of zero_gradient.
struct zero_gradient_t {};

/// Stands in backward for the gradient of an operand that the result does not depend on, such as labels.
inline constexpr zero_gradient_t zero_gradient{};

/// The result of a forward function and what it saves for backward; see with_gradient(). Expressions are evaluated
/// before they are saved. Tensors are kept with their version: backward refuses one that was written to since. Anything
/// else, such as a number, is kept as it is.
template <expression Y, class... S>
saved_result<detail::bare<Y>, detail::value_to_save<S>...> with_saved(Y&& y, S&&... saved) {
  return {std::forward<Y>(y), detail::make_pack(detail::value_to_save<S>(std::forward<S>(saved))...)};
}

/// The gradients that a backward function returns, one for each operand; see with_gradient(). An expression is
/// evaluated only if its operand is tracked.
template <class... G>
  requires((expression<G> || std::is_same_v<std::remove_cvref_t<G>, zero_gradient_t>) && ...)
gradient_list<detail::bare<G>...> gradients(G&&... g) {
  return {detail::make_pack(detail::bare<G>(std::forward<G>(g))...)};
}

namespace detail {

template <class... T>
struct types {};

/// What forward returns, in its parts.
template <class R>
struct parts_of {
  using value = R;
  using saved = types<>;
};
template <class Y, class... S>
struct parts_of<saved_result<Y, S...>> {
  using value = Y;
  using saved = types<S...>;
};
template <class R>
struct gradient_types {
  using type = types<R>;
};
template <class... G>
struct gradient_types<gradient_list<G...>> {
  using type = types<G...>;
};

/// An operand as forward gets it.
template <class A>
using plain_operand = tensor<element_of<A>, rank_of<A>, device_of<A>>;
template <class F, class... A>
using forward_parts = parts_of<bare<std::invoke_result_t<const F&, const plain_operand<A>&...>>>;
template <class F, class... A>
using forward_value = evaluated<typename forward_parts<F, A...>::value>;

template <class R>
inline constexpr bool holds_gradients = expression<R> || std::is_same_v<R, zero_gradient_t>;
template <class... G>
inline constexpr bool holds_gradients<gradient_list<G...>> = true;

/// Why G is no gradient of A, operand number N.
template <int N, class G, class A>
constexpr auto find_gradient_mistake() {
  if constexpr (std::is_same_v<G, zero_gradient_t>) {
    return fitting<void>{};
  } else if constexpr (!floating_element<element_of<A>>) {
    return mistake<gradient_of_operand<N, elements_that_have_no_gradient<element_of<A>>>,
                   return_zero_gradient_in_its_place>{};
  } else {
    using conversion = conversion_mistake<G, element_of<A>, rank_of<A>, device_of<A>>;
    if constexpr (is_fitting<conversion>) return conversion{};
    else return mistake<gradient_of_operand<N, typename conversion::problem>, typename conversion::fix>{};
  }
}
template <int N, class G, class A, class... More, class... Operand>
constexpr auto find_gradients_mistake(types<G, More...>, types<A, Operand...>) {
  using first = decltype(find_gradient_mistake<N, G, A>());
  if constexpr (is_fitting<first> && sizeof...(More) > 0)
    return find_gradients_mistake<N + 1>(types<More...>(), types<Operand...>());
  else return first{};
}

/// Why B is not the backward function of operands A, a result Y and saved values S.
template <class B, class Y, class... S, class... A>
constexpr auto find_backward_mistake(types<S...>, types<A...> operands) {
  if constexpr (!std::is_invocable_v<const B&, const Y&, const S&...>) {
    return mistake<backward_that_does_not_take<Y, S...>, take_the_gradient_of_the_result_and_then_each_saved_value>{};
  } else {
    using R = bare<std::invoke_result_t<const B&, const Y&, const S&...>>;
    if constexpr (!holds_gradients<R>) {
      return mistake<backward_that_returns<R>, return_a_gradient_or_gradients_with_one_for_each_operand>{};
    } else {
      using list = typename gradient_types<R>::type;
      constexpr int count = []<class... G>(types<G...>) { return static_cast<int>(sizeof...(G)); }(list());
      if constexpr (count != sizeof...(A))
        return mistake<backward_with_gradients_for_operands<count, static_cast<int>(sizeof...(A))>,
                       return_a_gradient_or_gradients_with_one_for_each_operand>{};
      else return find_gradients_mistake<1>(list(), operands);
    }
  }
}

template <class... S>
constexpr auto find_saved_mistake(types<S...>) {
  return fitting<void>{};
}
template <class First, class... S>
constexpr auto find_saved_mistake(types<First, S...>) {
  if constexpr (is_variable<First>) return mistake<saved_value_that_is_tracked<First>, save_its_detach>{};
  else return find_saved_mistake(types<S...>());
}

/// Why F and B are no function of operands A, which fit as such.
template <class F, class B, class... A>
constexpr auto find_functions_mistake() {
  if constexpr (!std::is_invocable_v<const F&, const plain_operand<A>&...>) {
    return mistake<forward_that_does_not_take<plain_operand<A>...>, take_one_tensor_for_each_operand>{};
  } else {
    using parts = forward_parts<F, A...>;
    using Y = typename parts::value;
    if constexpr (!expression<Y>) {
      return mistake<forward_that_returns<Y>, return_a_tensor_or_an_expression_or_with_saved>{};
    } else if constexpr (is_tracked_v<Y>) {
      return mistake<forward_that_uses_a_captured_variable, pass_the_variable_as_an_operand_or_capture_its_value>{};
    } else if constexpr (!is_fitting<decltype(find_saved_mistake(typename parts::saved()))>) {
      return find_saved_mistake(typename parts::saved());
    } else if constexpr (!(is_tracked_v<A> || ...)) {
      return fitting<void>{};
    } else if constexpr (!floating_element<element_of<Y>>) {
      return mistake<result_with_elements_that_have_no_gradient<element_of<Y>>, return_floating_point_elements>{};
    } else {
      return find_backward_mistake<B, evaluated<Y>>(typename parts::saved(), types<A...>());
    }
  }
}

/// fitting<...>, or why F and B are not called with A. Where: the declared devices of the operands, or none.
template <class F, class B, class... A, class... Where>
constexpr auto find_call_mistake(types<Where...>) {
  if constexpr ((is_assignment<A> || ...)) {
    return operand_check<A...>{};
  } else if constexpr (sizeof...(A) == 0 || !(expression<A> && ...)) {
    return mistake<operands_that_are_not_all_tensors<A...>, capture_the_others_in_forward_and_backward>{};
  } else if constexpr (sizeof...(Where) == 0 && !devices_agree<A...>) {
    return mistake<operands_on_different_devices<device_of<A>...>,
                   copy_one_operand_with_dot_to_or_name_each_device_in_with_gradient>{};
  } else if constexpr (sizeof...(Where) > 0 && !std::is_same_v<types<Where...>, types<device_of<A>...>>) {
    return mistake<operands_on_devices<device_of<A>...>, pass_one_operand_on_each_of<Where...>>{};
  } else if constexpr ((reads_name<A> || ...)) {
    return mistake<value_that_let_names_in_a_function_with_gradient, evaluate_it_before_let>{};
  } else if constexpr (constexpr int order = larger(A::order...); order > 1) {
    return mistake<function_with_gradient_of_variables_of_order<order>, use_variables_of_order_1_or_a_formula_of_ops>{};
  } else {
    return find_functions_mistake<F, B, A...>();
  }
}
template <class Where, class F, class B, class... A>
using call_check = decltype(find_call_mistake<F, B, bare<A>...>(Where()));

/// What the call returns: a tensor, or a variable if an operand is tracked. No type where the operands do not fit.
template <bool Fits, class F, class... A>
struct call_result {};
template <class F, class... A>
struct call_result<true, F, A...> {
  using value = forward_value<F, A...>;
  using type = typename result_of_point<element_of<value>, rank_of<value>, device_of<value>, larger(A::order...)>::type;
};

}  // namespace detail
}  // namespace sinter
