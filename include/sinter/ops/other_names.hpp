// sinter/ops/other_names.hpp: names and forms of PyTorch and NumPy that go by another one here: what a message says.
#pragma once

#include <string>

#include "sinter/expr/declare.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/conv.hpp"
#include "sinter/ops/gelu.hpp"
#include "sinter/ops/max_pool.hpp"
#include "sinter/ops/names.hpp"
#include "sinter/ops/views.hpp"

namespace sinter {

class generator;  // random/generator.hpp

// Names in messages.
struct write_log_sigmoid;
struct complex_numbers_are_not_there;
struct end_the_scope_of_the_no_grad_guard;
struct it_is_not_there_use_eigen_on_the_memory_of_the_matrix;
struct it_is_not_there_write_a_loop_over_the_elements;
struct sparse_tensors_are_not_there;
struct write_dropout;
struct write_leaky_relu;
struct write_matrix_norm;
struct write_nn_prepare_with_weight_precision_int8;
struct write_num_threads;
struct write_randint_with_the_shape_of_it;
struct write_reshape_transpose_and_reshape;
struct write_seed_and_offset_of_the_generator;
struct write_slice_unfold_or_diagonal;
struct write_the_element_type_in_angle_brackets;
struct write_the_formula_over_arange;
struct write_vstack;
struct write_full_with_the_number;
struct write_stack_of_powers;
struct write_quantile_with_a_part_of_1;
struct write_the_operator_between_the_operands;
struct write_mse_loss;
struct it_is_not_there_draw_from_a_distribution_of_the_standard_library;
struct write_softmax_of_x_plus_gumbel_noise_from_rand;
struct write_no_grad_guard;
struct write_grad_of_each_element;
struct write_grad_of_each_element_of_a_gradient_of_variables_of_order_2;
struct write_the_formula_with_an_axis_more;
struct ask_cudaGetDeviceCount_of_the_cuda_runtime;
struct write_slice;
struct write_write_npy_of_the_path_and_the_tensor;
struct write_read_npy_of_the_path;
struct write_read_csv_of_the_path;
struct write_read_csv_or_read_table_of_the_path;
struct it_is_not_there_write_the_elements_to_an_ofstream_or_use_write_npy;
struct write_nn_save_of_a_model_or_write_npy_of_a_path_and_a_tensor;
struct write_nn_load_of_a_model_or_read_npy_of_a_path;
struct write_nonzero;
struct arguments_in_the_order_of_pytorch;
struct write_dot_detach;
struct compare_dot_grad_with_differences_of_the_loss_in_double;
struct write_a_struct_with_forward_and_backward_as_custom_gradients_md_tells;
struct write_print_options_where_the_tensor_is_printed;
struct leave_dropout_out_where_nothing_is_trained;
struct write_uniform_with_the_generator_the_shape_and_both_ends;
struct generator_in_front;
struct generator_behind;
struct write_the_generator_first;
struct write_write_safetensors_of_the_path_and_the_tensors;
struct write_the_axis_second_and_the_indices_third;
struct write_floor_divide_or_trunc_of_the_quotient;
struct write_the_generator_last;
struct write_reshape_with_the_axes_that_stay_and_minus_1;
struct write_interpolate_with_dot_size_in_braces;
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
struct write_gelu_tanh_for_the_approximation;

SINTER_FUNCTION_NAMED_OTHERWISE(logsigmoid, write_log_sigmoid)
SINTER_FUNCTION_NAMED_OTHERWISE(heaviside, write_where_of_a_comparison_and_two_numbers)
SINTER_FUNCTION_NAMED_OTHERWISE(inv, write_inverse_of_sinter_linalg_hpp)
SINTER_FUNCTION_NAMED_OTHERWISE(pinverse, write_pinv_of_sinter_linalg_hpp)
SINTER_FUNCTION_NAMED_OTHERWISE(logdet, write_slogdet_of_sinter_linalg_hpp)
SINTER_FUNCTION_NAMED_OTHERWISE(matrix_power, write_matmul_as_often_as_needed)
SINTER_FUNCTION_NAMED_OTHERWISE(concatenate, write_cat_with_the_parts_in_braces_and_the_axis)
SINTER_FUNCTION_NAMED_OTHERWISE(atleast_1d, write_reshape_or_unsqueeze)
SINTER_FUNCTION_NAMED_OTHERWISE(atleast_2d, write_reshape_or_unsqueeze)
SINTER_FUNCTION_NAMED_OTHERWISE(atleast_3d, write_reshape_or_unsqueeze)
SINTER_FUNCTION_NAMED_OTHERWISE(tril_indices, write_nonzero_of_tril_or_triu_of_ones)
SINTER_FUNCTION_NAMED_OTHERWISE(triu_indices, write_nonzero_of_tril_or_triu_of_ones)
SINTER_FUNCTION_NAMED_OTHERWISE(trapz, write_a_sum_of_products_of_slices)
SINTER_FUNCTION_NAMED_OTHERWISE(trapezoid, write_a_sum_of_products_of_slices)
SINTER_FUNCTION_NAMED_OTHERWISE(ptp, write_amax_minus_amin)
SINTER_FUNCTION_NAMED_OTHERWISE(from_numpy, write_from_data_or_wrap_with_the_shape)
SINTER_FUNCTION_NAMED_OTHERWISE(from_blob, write_from_data_or_wrap_with_the_shape)
SINTER_FUNCTION_NAMED_OTHERWISE(manual_seed, write_generator_gen_with_the_seed_and_pass_it_on)
SINTER_FUNCTION_NAMED_OTHERWISE(bce_loss, write_binary_cross_entropy)
SINTER_FUNCTION_NAMED_OTHERWISE(swapaxes, write_transpose)
SINTER_FUNCTION_NAMED_OTHERWISE(digamma, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(erfinv, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(i0, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(igamma, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(igammac, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(polygamma, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(mvlgamma, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(nextafter, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(erfcx, it_is_not_there_use_the_function_of_the_standard_library_on_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(matrix_exp, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(matrix_rank, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(eig, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(lu, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(lu_factor, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(lu_solve, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(triangular_solve, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(cholesky_solve, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(cholesky_inverse, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(svd_lowrank, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(pca_lowrank, it_is_not_there_use_eigen_on_the_memory_of_the_matrix)
SINTER_FUNCTION_NAMED_OTHERWISE(hann_window, write_the_formula_over_arange)
SINTER_FUNCTION_NAMED_OTHERWISE(hamming_window, write_the_formula_over_arange)
SINTER_FUNCTION_NAMED_OTHERWISE(blackman_window, write_the_formula_over_arange)
SINTER_FUNCTION_NAMED_OTHERWISE(bartlett_window, write_the_formula_over_arange)
SINTER_FUNCTION_NAMED_OTHERWISE(kaiser_window, write_the_formula_over_arange)
SINTER_FUNCTION_NAMED_OTHERWISE(stft, complex_numbers_are_not_there)
SINTER_FUNCTION_NAMED_OTHERWISE(istft, complex_numbers_are_not_there)
SINTER_FUNCTION_NAMED_OTHERWISE(polar, complex_numbers_are_not_there)
SINTER_FUNCTION_NAMED_OTHERWISE(view_as_real, complex_numbers_are_not_there)
SINTER_FUNCTION_NAMED_OTHERWISE(view_as_complex, complex_numbers_are_not_there)
SINTER_FUNCTION_NAMED_OTHERWISE(as_tensor, write_from_data_or_wrap_with_the_shape)
SINTER_FUNCTION_NAMED_OTHERWISE(asarray, write_from_data_or_wrap_with_the_shape)
SINTER_FUNCTION_NAMED_OTHERWISE(frombuffer, write_from_data_or_wrap_with_the_shape)
SINTER_FUNCTION_NAMED_OTHERWISE(randint_like, write_randint_with_the_shape_of_it)
SINTER_FUNCTION_NAMED_OTHERWISE(unique_consecutive, it_is_not_there_write_a_loop_over_the_elements)
SINTER_FUNCTION_NAMED_OTHERWISE(combinations, it_is_not_there_write_a_loop_over_the_elements)
SINTER_FUNCTION_NAMED_OTHERWISE(cartesian, it_is_not_there_write_a_loop_over_the_elements)
SINTER_FUNCTION_NAMED_OTHERWISE(histogram, it_is_not_there_write_a_loop_over_the_elements)
SINTER_FUNCTION_NAMED_OTHERWISE(histogramdd, it_is_not_there_write_a_loop_over_the_elements)
SINTER_FUNCTION_NAMED_OTHERWISE(renorm, it_is_not_there_write_a_loop_over_the_elements)
SINTER_FUNCTION_NAMED_OTHERWISE(cumulative_trapezoid, it_is_not_there_write_a_loop_over_the_elements)
SINTER_FUNCTION_NAMED_OTHERWISE(unravel_index, it_is_not_there_write_a_loop_over_the_elements)
SINTER_FUNCTION_NAMED_OTHERWISE(segment_reduce, it_is_not_there_write_a_loop_over_the_elements)
SINTER_FUNCTION_NAMED_OTHERWISE(alpha_dropout, write_dropout)
SINTER_FUNCTION_NAMED_OTHERWISE(feature_dropout, write_dropout)
SINTER_FUNCTION_NAMED_OTHERWISE(feature_alpha_dropout, write_dropout)
SINTER_FUNCTION_NAMED_OTHERWISE(rrelu, write_leaky_relu)
SINTER_FUNCTION_NAMED_OTHERWISE(channel_shuffle, write_reshape_transpose_and_reshape)
SINTER_FUNCTION_NAMED_OTHERWISE(upsample, write_interpolate_with_dot_size_in_braces)
SINTER_FUNCTION_NAMED_OTHERWISE(upsample_nearest, write_interpolate_with_dot_size_in_braces)
SINTER_FUNCTION_NAMED_OTHERWISE(upsample_bilinear, write_interpolate_with_dot_size_in_braces)
SINTER_FUNCTION_NAMED_OTHERWISE(as_strided, write_slice_unfold_or_diagonal)
SINTER_FUNCTION_NAMED_OTHERWISE(get_num_threads, write_num_threads)
SINTER_FUNCTION_NAMED_OTHERWISE(get_rng_state, write_seed_and_offset_of_the_generator)
SINTER_FUNCTION_NAMED_OTHERWISE(set_rng_state, write_seed_and_offset_of_the_generator)
SINTER_FUNCTION_NAMED_OTHERWISE(initial_seed, write_seed_and_offset_of_the_generator)
SINTER_FUNCTION_NAMED_OTHERWISE(set_default_dtype, write_the_element_type_in_angle_brackets)
SINTER_FUNCTION_NAMED_OTHERWISE(get_default_dtype, write_the_element_type_in_angle_brackets)
SINTER_FUNCTION_NAMED_OTHERWISE(enable_grad, end_the_scope_of_the_no_grad_guard)
SINTER_FUNCTION_NAMED_OTHERWISE(is_grad_enabled, end_the_scope_of_the_no_grad_guard)
SINTER_FUNCTION_NAMED_OTHERWISE(sparse_coo_tensor, sparse_tensors_are_not_there)
SINTER_FUNCTION_NAMED_OTHERWISE(sparse_csr_tensor, sparse_tensors_are_not_there)
SINTER_FUNCTION_NAMED_OTHERWISE(quantize_per_tensor, write_nn_prepare_with_weight_precision_int8)
SINTER_FUNCTION_NAMED_OTHERWISE(quantize_per_channel, write_nn_prepare_with_weight_precision_int8)
SINTER_FUNCTION_NAMED_OTHERWISE(dequantize, write_nn_prepare_with_weight_precision_int8)
SINTER_FUNCTION_NAMED_OTHERWISE(nuclear_norm, write_matrix_norm)
SINTER_FUNCTION_NAMED_OTHERWISE(frobenius_norm, write_matrix_norm)
SINTER_FUNCTION_NAMED_OTHERWISE(row_stack, write_vstack)
SINTER_FUNCTION_NAMED_OTHERWISE(scalar_tensor, write_full_with_the_number)
SINTER_FUNCTION_NAMED_OTHERWISE(vander, write_stack_of_powers)
SINTER_FUNCTION_NAMED_OTHERWISE(percentile, write_quantile_with_a_part_of_1)
SINTER_FUNCTION_NAMED_OTHERWISE(nanpercentile, write_quantile_with_a_part_of_1)
SINTER_FUNCTION_NAMED_OTHERWISE(bitwise_and, write_the_operator_between_the_operands)
SINTER_FUNCTION_NAMED_OTHERWISE(bitwise_or, write_the_operator_between_the_operands)
SINTER_FUNCTION_NAMED_OTHERWISE(bitwise_xor, write_the_operator_between_the_operands)
SINTER_FUNCTION_NAMED_OTHERWISE(bitwise_not, write_the_operator_between_the_operands)
SINTER_FUNCTION_NAMED_OTHERWISE(bitwise_left_shift, write_the_operator_between_the_operands)
SINTER_FUNCTION_NAMED_OTHERWISE(bitwise_right_shift, write_the_operator_between_the_operands)
SINTER_FUNCTION_NAMED_OTHERWISE(print, print_it_to_an_ostream)
SINTER_FUNCTION_NAMED_OTHERWISE(mean_squared_error, write_mse_loss)
SINTER_FUNCTION_NAMED_OTHERWISE(scalar, write_full_with_the_number)
SINTER_FUNCTION_NAMED_OTHERWISE(stop_gradient, write_dot_detach)
SINTER_FUNCTION_NAMED_OTHERWISE(gradcheck, compare_dot_grad_with_differences_of_the_loss_in_double)
SINTER_FUNCTION_NAMED_OTHERWISE(custom_gradient, write_a_struct_with_forward_and_backward_as_custom_gradients_md_tells)
SINTER_FUNCTION_NAMED_OTHERWISE(set_printoptions, write_print_options_where_the_tensor_is_printed)
SINTER_FUNCTION_NAMED_OTHERWISE(set_print_options, write_print_options_where_the_tensor_is_printed)
SINTER_CLASS_NAMED_OTHERWISE(Slice, write_slice)
SINTER_FUNCTION_NAMED_OTHERWISE(poisson, it_is_not_there_draw_from_a_distribution_of_the_standard_library)
SINTER_FUNCTION_NAMED_OTHERWISE(gumbel_softmax, write_softmax_of_x_plus_gumbel_noise_from_rand)
SINTER_FUNCTION_NAMED_OTHERWISE(set_grad_enabled, write_no_grad_guard)
SINTER_FUNCTION_NAMED_OTHERWISE(jacobian, write_grad_of_each_element)
SINTER_FUNCTION_NAMED_OTHERWISE(hessian, write_grad_of_each_element_of_a_gradient_of_variables_of_order_2)
SINTER_FUNCTION_NAMED_OTHERWISE(vmap, write_the_formula_with_an_axis_more)
SINTER_FUNCTION_NAMED_OTHERWISE(cuda_is_available, ask_cudaGetDeviceCount_of_the_cuda_runtime)
SINTER_FUNCTION_NAMED_OTHERWISE(center_crop, write_slice)
SINTER_FUNCTION_NAMED_OTHERWISE(save_npy, write_write_npy_of_the_path_and_the_tensor)
SINTER_FUNCTION_NAMED_OTHERWISE(load_csv, write_read_csv_of_the_path)
// The same, also with an element type and a rank in angle brackets.
#define SINTER_READING_NAMED_OTHERWISE(name, fix)                                                     \
  SINTER_FUNCTION_NAMED_OTHERWISE(name, fix)                                                          \
  template <class T, auto R, auto... More, class Problem = name_of_pytorch_or_numpy, class Fix = fix> \
  void name(...) = delete;
SINTER_READING_NAMED_OTHERWISE(loadtxt, write_read_csv_or_read_table_of_the_path)
SINTER_FUNCTION_NAMED_OTHERWISE(savetxt, it_is_not_there_write_the_elements_to_an_ofstream_or_use_write_npy)
SINTER_READING_NAMED_OTHERWISE(load_npy, write_read_npy_of_the_path)
SINTER_FUNCTION_NAMED_OTHERWISE(save, write_nn_save_of_a_model_or_write_npy_of_a_path_and_a_tensor)
SINTER_READING_NAMED_OTHERWISE(load, write_nn_load_of_a_model_or_read_npy_of_a_path)
#undef SINTER_READING_NAMED_OTHERWISE
namespace autograd {
template <class Y, class X, class Problem = name_of_pytorch_or_numpy,
          class Fix = write_grad_of_variables_of_order_2_or_backward_and_dot_grad>
void grad(const Y&, const X&) = delete;
template <class Y, class X, class Problem = name_of_pytorch_or_numpy,
          class Fix = write_grad_of_variables_of_order_2_or_backward_and_dot_grad>
void grad(const Y&, std::initializer_list<X>) = delete;
}  // namespace autograd
template <class Y, class X, class Problem = name_of_pytorch_or_numpy,
          class Fix = write_grad_of_variables_of_order_2_or_backward_and_dot_grad>
void grad(const Y&, std::initializer_list<X>) = delete;
template <expression X, class Problem = generator_behind, class Fix = write_the_generator_first>
void randn_like(const X&, generator&) = delete;
template <expression X, class Problem = generator_behind, class Fix = write_the_generator_first>
void rand_like(const X&, generator&) = delete;
template <class Problem = name_of_pytorch_or_numpy, class Fix = write_write_safetensors_of_the_path_and_the_tensors>
void save(std::initializer_list<std::pair<const char*, detail::any_option>>, const char*) = delete;
/// PyTorch's name of a no_grad guard.
using inference_mode = no_grad;
template <expression A, class Problem = name_of_pytorch_or_numpy,
          class Fix = it_is_not_there_use_the_function_of_the_standard_library_on_each_element>
void lgamma(const A&) = delete;

// Forms of functions that are there.
namespace detail {
struct approximate_in_braces {
  any_option approximate;
};
struct training_in_braces {
  any_option training, inplace;
};
struct interval_in_braces {
  any_option low, high, dtype, device, requires_grad;
};
}  // namespace detail
template <expression M, class Problem = name_of_pytorch_or_numpy, class Fix = write_nonzero>
void where(const M&) = delete;
template <expression X, expression I, class A, class Problem = arguments_in_the_order_of_pytorch,
          class Fix = write_the_axis_second_and_the_indices_third>
void take_along_dim(const X&, const I&, const A&) = delete;
template <expression A, expression B, class Mode, class Problem = name_of_pytorch_or_numpy,
          class Fix = write_floor_divide_or_trunc_of_the_quotient>
void div(const A&, const B&, const Mode&) = delete;
template <expression X, class Problem = generator_in_front, class Fix = write_the_generator_last>
void dropout(generator&, const X&, double) = delete;
struct flatten_options {
  index_t start_dim = 0, end_dim = -1;
};
template <expression X, class Problem = axes_that_are_known_when_the_program_runs,
          class Fix = write_reshape_with_the_axes_that_stay_and_minus_1>
void flatten(const X&, const flatten_options&) = delete;
template <expression X, std::size_t N, class Problem = name_of_pytorch_or_numpy,
          class Fix = write_interpolate_with_dot_size_in_braces>
void resize(const X&, const index_t (&)[N]) = delete;
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
template <expression A, expression B, class Problem = factor_of_an_operand, class Fix = multiply_the_operand_by_it>
void add(const A&, const B&, const detail::factor_in_braces&) = delete;
template <expression A, expression B, class Problem = factor_of_an_operand, class Fix = multiply_the_operand_by_it>
void sub(const A&, const B&, const detail::factor_in_braces&) = delete;
template <expression X, class Problem = option_that_is_text, class Fix = write_gelu_tanh_for_the_approximation>
void gelu(const X&, const char*) = delete;
template <expression X, class Problem = option_that_is_text, class Fix = write_gelu_tanh_for_the_approximation>
void gelu(const X&, const detail::approximate_in_braces&) = delete;
template <expression X, class Problem = option_of_another_name, class Fix = leave_dropout_out_where_nothing_is_trained>
void dropout(const X&, double, generator&, const detail::training_in_braces&) = delete;
template <expression X, std::same_as<bool> B, class Problem = option_of_another_name,
          class Fix = leave_dropout_out_where_nothing_is_trained>
void dropout(const X&, double, generator&, B) = delete;
template <std::size_t N, class Problem = option_of_another_name,
          class Fix = write_uniform_with_the_generator_the_shape_and_both_ends>
void rand(generator&, const index_t (&)[N], const detail::interval_in_braces&) = delete;
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
