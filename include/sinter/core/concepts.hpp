// sinter/core/concepts.hpp: what an expression is, and the traits every room asks of one.
#pragma once

#include <initializer_list>

#include "sinter/core/device.hpp"
#include "sinter/core/shape.hpp"

namespace sinter {

template <class T>
struct constant_expr;
template <class Target, class E>
class assignment;
template <class Tensor>
class pending;

// Names in messages.
struct tensor_that_is_still_on_its_way;
struct call_get_which_waits_for_it;

/// A tensor, a variable, or operations over them that have not run yet: anything with an element type, a static rank,
/// a device and a shape.
template <class E>
concept expression = requires {
  typename detail::bare<E>::value_type;
  typename detail::bare<E>::device_type;
  { detail::bare<E>::rank } -> std::convertible_to<int>;
  requires detail::bare<E>::is_expression;
};

/// A literal operand: it takes the element type of the tensor beside it.
template <class S>
concept literal = std::is_arithmetic_v<detail::bare<S>> || narrow_element<detail::bare<S>>;

namespace detail {

/// A literal fits elements of type T unless that would drop its fraction.
template <class A, class T>
inline constexpr bool literal_fits = !literal<A> || !floating_element<bare<A>> || floating_element<T>;

}  // namespace detail

/// What an elementwise operator accepts.
template <class A>
concept operand = expression<A> || literal<A>;

/// Element type of a tensor, variable or expression.
template <class E>
using element_of = typename detail::bare<E>::value_type;

/// Rank of a tensor, variable or expression.
template <expression E>
inline constexpr int rank_of = detail::bare<E>::rank;

/// True when the expression has a variable among its leaves, so that it evaluates to a variable.
template <class E>
inline constexpr bool is_tracked_v = detail::bare<E>::order > 0;

// Names that appear in messages of deleted conversions.
template <class...>
struct conversion_between_devices;
template <class...>
struct conversion_between_element_types;
template <int, int>
struct conversion_between_ranks;
template <int, int>
struct conversion_between_orders;
template <int, int>
struct indices_for_rank;
struct write_one_index_per_axis;
struct extents_that_are_not_in_braces;
struct write_them_in_braces;
struct name_of_pytorch_or_numpy;
struct axis_that_is_left_out;
struct name_the_axis_as_the_rank_is_part_of_the_type;
struct number_where_the_type_depends_on_it;
struct operands_in_braces;
struct write_them_without_the_braces;
struct indices_in_braces;
struct write_a_tensor_of_indices;
struct write_padding_same_or_padding_valid;
struct use_a_gradient_listener_in_backward;
struct write_vector_norm_with_the_order_and_the_axis;
struct write_keepdim_without_braces;
struct shape_with_an_axis;
struct write_size_of_the_axis;
struct write_grad_of_variables_of_order_2_or_backward_and_dot_grad;
struct detach_it_or_leave_it_out_of_the_optimizer;
struct flag_that_is_not_named;
struct write_dot_retain_graph_in_braces;
struct write_an_index_for_each_axis_in_round_brackets;
struct write_an_index_in_square_brackets_or_select;
struct write_x_of_i_or_slice_or_index_select;
struct call_the_function_index_put;
struct write_a_formula_or_a_loop_from_begin_to_end;
struct write_to_cuda_0_in_angle_brackets;
// A member, a function or a class whose name another library has and this one does not: the message says what to write.
// The `...` is that of C: a pack of types takes twice the memory of the compiler, for each type of expression.
#define SINTER_MEMBER_NAMED_OTHERWISE(name, fix)                       \
  template <class Problem = name_of_pytorch_or_numpy, class Fix = fix> \
  void name(...) const = delete;
#define SINTER_MEMBER_OF_LIST_NAMED_OTHERWISE(name, fix)                        \
  SINTER_MEMBER_NAMED_OTHERWISE(name, fix)                                      \
  template <class I, class Problem = name_of_pytorch_or_numpy, class Fix = fix> \
  void name(std::initializer_list<I>, ...) const = delete;
// The weakest of overloads, so that each function of that name which fits is preferred.
#define SINTER_FUNCTION_NAMED_OTHERWISE(name, fix)                     \
  template <class Problem = name_of_pytorch_or_numpy, class Fix = fix> \
  void name(...) = delete;
#define SINTER_CLASS_NAMED_OTHERWISE(name, fix)                                      \
  struct name {                                                                      \
    template <class... A, class Problem = name_of_pytorch_or_numpy, class Fix = fix> \
    explicit name(A&&...) = delete;                                                  \
  };
// The same of a class that takes options in braces, alone or behind an argument.
#define SINTER_CLASS_OF_OPTIONS_NAMED_OTHERWISE(name, fix, options)                  \
  struct name {                                                                      \
    template <class... A, class Problem = name_of_pytorch_or_numpy, class Fix = fix> \
    explicit name(A&&...) = delete;                                                  \
    template <class Problem = name_of_pytorch_or_numpy, class Fix = fix>             \
    explicit name(const options&) = delete;                                          \
    template <class A, class Problem = name_of_pytorch_or_numpy, class Fix = fix>    \
    name(A&&, const options&) = delete;                                              \
  };

struct option_of_another_name;
namespace detail {
/// A member of a struct of options that goes by another name here: the message says what to write.
template <class Write>
struct option_named_otherwise {
  constexpr option_named_otherwise() = default;
  template <class... T, class Problem = option_of_another_name, class Fix = Write>
    requires(sizeof...(T) > 0)
  constexpr option_named_otherwise(const T&...) = delete;
  bool operator==(const option_named_otherwise&) const = default;
};
/// Whatever is given as an option of a form that is rejected.
struct any_option {
  constexpr any_option() = default;
  template <class T>
  constexpr any_option(const T&) {}
};
struct keepdim_in_braces {
  any_option keepdim, dim, axis;
};
struct factor_in_braces {
  any_option alpha, value;
};
/// The first member of options that are given by name only: it keeps {2} from setting the next one.
struct only_by_name {
  constexpr only_by_name() = default;
  bool operator==(const only_by_name&) const = default;
};
struct loss_in_braces {
  any_option weight, ignore_index, pos_weight, margin, beta, delta, p, log_input, full, log_target, blank, reduction,
      label_smoothing;
};
}  // namespace detail
struct write_span_or_a_loop_from_begin_to_end;
struct print_it_to_an_ostream;
struct write_where_of_mask_a_and_b;
struct call_it_as_a_function_of_sinter_linalg_hpp;
struct write_zeros_ones_or_full_with_a_shape;
struct make_another_tensor_as_the_type_has_the_rank;
struct write_copy_of_uniform_or_normal_with_a_generator;
struct make_a_variable_of_it;
struct factor_of_an_operand;
struct multiply_the_operand_by_it;
struct write_dot_value_and_then_dot_data;
struct device_or_element_type_that_is_text;
struct write_it_in_angle_brackets_as_in_to_cpu_or_to_float;
struct extents_in_parentheses;
struct write_zeros_ones_or_empty_with_them_in_braces;
struct options_that_are_not_in_braces;
struct write_dot_stride_and_dot_padding_in_braces;
struct write_dot_scale_factor_and_dot_mode_in_braces;
struct loss_options_in_braces;
struct write_the_number_and_then_reduction_none_or_sum;
struct reduction_that_is_text;
struct write_reduction_mean_reduction_sum_or_reduction_none;
struct option_that_is_text;
struct leave_it_out_or_write_matrix_norm;
struct write_reduction_sum_prod_mean_max_or_min;
struct write_pad_mode_reflect_replicate_or_circular;
struct write_dot_size_and_dot_mode_in_braces_such_as_interpolation_bilinear;
struct index_that_is_a_tensor;
struct write_index_select_masked_select_masked_fill_or_where;
struct axes_that_are_known_when_the_program_runs;
struct write_reshape_with_the_shape;
struct number_given_to_a_handle_which_has_no_shape_of_its_own;
struct write_x_dot_in_place_equals_number_or_full;
struct write_full_of_a_shape_and_the_number;
struct copy_explicitly_with_dot_to;
struct convert_explicitly_with_cast;
struct use_reshape_squeeze_or_unsqueeze;
template <class>
struct expression_not_yet_evaluated_on;
struct write_eval_of_it_before_dot_to;
struct write_eval_of_it_before_its_elements;
template <int, class>
struct tensor_of_rank_in_place_of;
struct write_dot_item;
struct write_all_or_any_of_it_and_then_dot_item;
struct reduce_it_with_sum_mean_or_max_and_then_write_dot_item;
struct expression_is_tracked_for_gradients;
struct updating_a_tracked_variable_in_place;
struct write_through_dot_value_instead;
struct declare_a_variable_or_use_detach;
struct declare_all_variables_of_one_order;

namespace detail {

template <class E>
inline constexpr bool is_tensor = false;
template <class T, auto Shape, class D>
inline constexpr bool is_tensor<tensor<T, Shape, D>> = true;
template <class E>
inline constexpr bool is_variable = false;
template <class T, auto Shape, class D, int Order>
inline constexpr bool is_variable<variable<T, Shape, D, Order>> = true;

template <class X>
inline constexpr bool is_pending = false;
template <class Tensor>
inline constexpr bool is_pending<pending<Tensor>> = true;

template <class A>
inline constexpr bool is_assignment = false;
template <class Target, class E>
inline constexpr bool is_assignment<assignment<Target, E>> = true;

/// E, or of an assignment the tensor on its left side.
template <class E>
struct assigned_type {
  using type = E;
};
template <class Target, class E>
struct assigned_type<assignment<Target, E>> {
  using type = bare<Target>;
};
template <class E>
using assigned = typename assigned_type<bare<E>>::type;

template <class E, class T, int Rank, class D>
concept writes_to = std::is_same_v<element_of<E>, T> && rank_of<E> <= Rank &&
                    (std::is_same_v<device_of<E>, D> || std::is_same_v<device_of<E>, any_device>) && !is_tracked_v<E>;

/// A mistake as the message of a deleted overload shows it: `Problem = ...; Fix = ...`.
template <class Problem, class Fix>
struct mistake {
  using problem = Problem;
  using fix = Fix;
};
/// What is not ours to judge: a mistake or not, the overload is not for these types.
struct not_operands {};
/// Of A... that are not all operands: a mistake where one is a pending, else nothing that is ours to judge.
template <class... A>
using no_operands =
    std::conditional_t<(is_pending<bare<A>> || ...),
                       mistake<tensor_that_is_still_on_its_way, call_get_which_waits_for_it>, not_operands>;
/// Nothing is wrong; T is the common element type.
template <class T>
struct fitting {};

template <class Check>
inline constexpr bool is_fitting = false;
template <class T>
inline constexpr bool is_fitting<fitting<T>> = true;

/// Why E does not convert to a tensor (Order 0) or variable of T elements, this rank and D.
template <class E, class T, int Rank, class D, int Order>
constexpr auto find_conversion_mistake() {
  if constexpr (!expression<E>) return no_operands<E>{};
  else if constexpr (!std::is_same_v<device_of<E>, D>)
    return mistake<conversion_between_devices<device_of<E>, D>, copy_explicitly_with_dot_to>{};
  else if constexpr (!std::is_same_v<element_of<E>, T>)
    return mistake<conversion_between_element_types<element_of<E>, T>, convert_explicitly_with_cast>{};
  else if constexpr (rank_of<E> != Rank)
    return mistake<conversion_between_ranks<rank_of<E>, Rank>, use_reshape_squeeze_or_unsqueeze>{};
  else if constexpr (is_tracked_v<E> && Order == 0)
    return mistake<expression_is_tracked_for_gradients, declare_a_variable_or_use_detach>{};
  else if constexpr (is_tracked_v<E> && bare<E>::order != Order)
    return mistake<conversion_between_orders<bare<E>::order, Order>, declare_all_variables_of_one_order>{};
  else return fitting<T>{};
}
template <class E, class T, int Rank, class D, int Order = 0>
using conversion_mistake = decltype(find_conversion_mistake<bare<E>, T, Rank, D, Order>());
template <class E, class T, int Rank, class D, int Order = 0>
inline constexpr bool converts = is_fitting<conversion_mistake<E, T, Rank, D, Order>>;

/// Why backward() does not take S as the seed of T elements, this rank and D.
template <class S, class T, int Rank, class D>
constexpr auto find_seed_mistake() {
  if constexpr (std::is_same_v<S, bool>) return mistake<flag_that_is_not_named, write_dot_retain_graph_in_braces>{};
  else return conversion_mistake<S, T, Rank, D>{};
}
template <class S, class T, int Rank, class D>
using seed_mistake = decltype(find_seed_mistake<S, T, Rank, D>());

/// Of a tensor of this rank, or an expression, where a Number is needed.
template <class Number, int Rank>
constexpr auto find_number_mistake() {
  using problem = tensor_of_rank_in_place_of<Rank, Number>;
  if constexpr (!std::is_arithmetic_v<Number>) return not_operands{};
  else if constexpr (Rank == 0) return mistake<problem, write_dot_item>{};
  else if constexpr (std::is_same_v<Number, bool>) return mistake<problem, write_all_or_any_of_it_and_then_dot_item>{};
  else return mistake<problem, reduce_it_with_sum_mean_or_max_and_then_write_dot_item>{};
}
template <class Number, int Rank>
using number_mistake = decltype(find_number_mistake<Number, Rank>());

/// Of reading one element of a tensor with N indices.
template <class D, int N, int Rank>
constexpr auto find_access_mistake() {
  if constexpr (!is_cpu_v<D>) return mistake<no_host_access_to_memory_of<D>, copy_to_the_host_with_dot_to_cpu>{};
  else if constexpr (N != Rank) return mistake<indices_for_rank<N, Rank>, write_one_index_per_axis>{};
  else return fitting<void>{};
}
template <class D, int N, int Rank>
using access_mistake = decltype(find_access_mistake<D, N, Rank>());

struct access;  // reaches the storage of a tensor from the rooms above

}  // namespace detail

}  // namespace sinter
