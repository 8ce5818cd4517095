// sinter/ops/other_names.hpp: names and forms of PyTorch and NumPy that go by another one here: what a message says.
#pragma once

#include "sinter/expr/declare.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/conv.hpp"
#include "sinter/ops/gelu.hpp"
#include "sinter/ops/max_pool.hpp"
#include "sinter/ops/names.hpp"
#include "sinter/ops/views.hpp"

namespace sinter {

// Names in messages.
struct write_log_sigmoid;
struct write_where_of_a_comparison_and_two_numbers;
struct write_inverse_of_sinter_linalg_hpp;
struct write_pinv_of_sinter_linalg_hpp;
struct write_slogdet_of_sinter_linalg_hpp;
struct write_matmul_as_often_as_needed;
struct write_cat_with_the_parts_in_braces_and_the_axis;
struct write_reshape_or_unsqueeze;
struct write_nonzero_of_tril_or_triu_of_ones;
struct write_a_sum_of_products_of_slices;
struct write_amax_minus_amin;
struct write_from_data_or_wrap_with_the_shape;
struct write_generator_gen_with_the_seed_and_pass_it_on;
struct write_binary_cross_entropy;
struct write_transpose;
struct it_is_not_there_use_the_function_of_the_standard_library_on_each_element;
struct axis_that_is_left_out;
struct name_the_axis_as_the_rank_is_part_of_the_type;
struct write_gelu_tanh_for_the_approximation;

// The weakest of overloads, so that a program's own function of such a name is preferred.
#define SINTER_NAMED_OTHERWISE(name, fix)                                          \
  template <class... A, class Problem = name_of_pytorch_or_numpy, class Fix = fix> \
  void name(const A&...) = delete;
SINTER_NAMED_OTHERWISE(logsigmoid, write_log_sigmoid)
SINTER_NAMED_OTHERWISE(heaviside, write_where_of_a_comparison_and_two_numbers)
SINTER_NAMED_OTHERWISE(inv, write_inverse_of_sinter_linalg_hpp)
SINTER_NAMED_OTHERWISE(pinverse, write_pinv_of_sinter_linalg_hpp)
SINTER_NAMED_OTHERWISE(logdet, write_slogdet_of_sinter_linalg_hpp)
SINTER_NAMED_OTHERWISE(matrix_power, write_matmul_as_often_as_needed)
SINTER_NAMED_OTHERWISE(concatenate, write_cat_with_the_parts_in_braces_and_the_axis)
SINTER_NAMED_OTHERWISE(atleast_1d, write_reshape_or_unsqueeze)
SINTER_NAMED_OTHERWISE(atleast_2d, write_reshape_or_unsqueeze)
SINTER_NAMED_OTHERWISE(atleast_3d, write_reshape_or_unsqueeze)
SINTER_NAMED_OTHERWISE(tril_indices, write_nonzero_of_tril_or_triu_of_ones)
SINTER_NAMED_OTHERWISE(triu_indices, write_nonzero_of_tril_or_triu_of_ones)
SINTER_NAMED_OTHERWISE(trapz, write_a_sum_of_products_of_slices)
SINTER_NAMED_OTHERWISE(trapezoid, write_a_sum_of_products_of_slices)
SINTER_NAMED_OTHERWISE(ptp, write_amax_minus_amin)
SINTER_NAMED_OTHERWISE(from_numpy, write_from_data_or_wrap_with_the_shape)
SINTER_NAMED_OTHERWISE(from_blob, write_from_data_or_wrap_with_the_shape)
SINTER_NAMED_OTHERWISE(manual_seed, write_generator_gen_with_the_seed_and_pass_it_on)
SINTER_NAMED_OTHERWISE(bce_loss, write_binary_cross_entropy)
SINTER_NAMED_OTHERWISE(swapaxes, write_transpose)
SINTER_NAMED_OTHERWISE(digamma, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
#undef SINTER_NAMED_OTHERWISE
template <expression A, class Problem = name_of_pytorch_or_numpy,
          class Fix = it_is_not_there_use_the_function_of_the_standard_library_on_each_element>
void lgamma(const A&) = delete;

// Forms of functions that are there.
template <expression X, std::integral... I, class Problem = axes_that_are_known_when_the_program_runs,
          class Fix = write_reshape_with_the_shape>
  requires(sizeof...(I) > 0)
void flatten(const X&, I...) = delete;
template <expression X, class Problem = axis_that_is_left_out,
          class Fix = name_the_axis_as_the_rank_is_part_of_the_type>
void squeeze(const X&) = delete;
template <expression A, expression B, class N, class Problem = factor_of_an_operand,
          class Fix = multiply_the_operand_by_it>
void add(const A&, const B&, const N&) = delete;
template <expression A, expression B, class N, class Problem = factor_of_an_operand,
          class Fix = multiply_the_operand_by_it>
void sub(const A&, const B&, const N&) = delete;
template <expression X, class Problem = option_that_is_text, class Fix = write_gelu_tanh_for_the_approximation>
void gelu(const X&, const char*) = delete;
#define SINTER_OPTIONS_IN_A_ROW(name)                                                                               \
  template <expression X, class A, class B, std::integral I, class... More,                                         \
            class Problem = options_that_are_not_in_braces, class Fix = write_dot_stride_and_dot_padding_in_braces> \
  void name(const X&, const A&, const B&, I, More...) = delete;
SINTER_OPTIONS_IN_A_ROW(conv1d)
SINTER_OPTIONS_IN_A_ROW(conv2d)
SINTER_OPTIONS_IN_A_ROW(conv3d)
#undef SINTER_OPTIONS_IN_A_ROW
#define SINTER_OPTIONS_IN_A_ROW(name)                                                                               \
  template <expression X, std::integral K, std::integral I, class... More,                                          \
            class Problem = options_that_are_not_in_braces, class Fix = write_dot_stride_and_dot_padding_in_braces> \
  void name(const X&, K, I, More...) = delete;
SINTER_OPTIONS_IN_A_ROW(max_pool1d)
SINTER_OPTIONS_IN_A_ROW(max_pool2d)
SINTER_OPTIONS_IN_A_ROW(max_pool3d)
SINTER_OPTIONS_IN_A_ROW(avg_pool1d)
SINTER_OPTIONS_IN_A_ROW(avg_pool2d)
SINTER_OPTIONS_IN_A_ROW(avg_pool3d)
#undef SINTER_OPTIONS_IN_A_ROW

}  // namespace sinter
