// sinter/linalg/matrices.hpp: what operands linear algebra takes, and matrices one by one.
#pragma once

#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/grad/with_gradient.hpp"
#include "sinter/ops/matmul_axes.hpp"

namespace sinter {

template <class...>
struct linear_algebra_on_device;
struct copy_the_operands_to_the_host_with_dot_to_cpu;
struct use_float_or_double_elements_or_cast;
template <int...>
struct matrices_of_ranks;
struct use_matrices_of_rank_2_or_batches_of_them;
struct use_right_sides_of_the_rank_of_the_matrices_or_one_below;

namespace detail {

/// Of matrices, the last two axes of operands, which stand on the host.
template <class... A>
constexpr auto find_matrix_mistake() {
  if constexpr (!(expression<A> && ...)) return no_operands<A...>{};
  else if constexpr (!is_fitting<operand_check<A...>>) return operand_check<A...>{};
  else if constexpr (!(is_cpu_v<device_of<A>> && ...))
    return mistake<linear_algebra_on_device<device_of<A>...>, copy_the_operands_to_the_host_with_dot_to_cpu>{};
  else if constexpr (!((std::is_same_v<element_of<A>, float> || std::is_same_v<element_of<A>, double>) && ...))
    return mistake<element_type_without_this_op<element_of<A>...>, use_float_or_double_elements_or_cast>{};
  else if constexpr ((reads_name<A> || ...))
    return mistake<product_of_a_value_that_let_names, evaluate_it_before_let>{};
  else return fitting<literals_type<A...>>{};
}
template <class A>
constexpr auto find_one_matrix_mistake() {
  if constexpr (!is_fitting<decltype(find_matrix_mistake<A>())>) return find_matrix_mistake<A>();
  else if constexpr (rank_of<A> < 2)
    return mistake<matrices_of_ranks<rank_of<A>>, use_matrices_of_rank_2_or_batches_of_them>{};
  else return fitting<element_of<A>>{};
}
template <class A>
using matrix_mistake = decltype(find_one_matrix_mistake<bare<A>>());
template <class A>
concept is_matrix = is_fitting<matrix_mistake<A>>;

/// Of matrices a and right sides b: as many axes, or one less where they are vectors.
template <class A, class B>
constexpr auto find_equations_mistake() {
  if constexpr (!is_fitting<decltype(find_matrix_mistake<A, B>())>) return find_matrix_mistake<A, B>();
  else if constexpr (rank_of<A> < 2 || (rank_of<B> != rank_of<A> && rank_of<B> != rank_of<A> - 1))
    return mistake<matrices_of_ranks<rank_of<A>, rank_of<B>>,
                   use_right_sides_of_the_rank_of_the_matrices_or_one_below>{};
  else return fitting<element_of<A>>{};
}
template <class A, class B>
using equations_mistake = decltype(find_equations_mistake<bare<A>, bare<B>>());

// Declares the rejections of a function of one matrix, whatever its other parameters.
#define SINTER_MATRIX_REJECTIONS(name)                                                                     \
  template <class A, class... Rest, class Problem = typename ::sinter::detail::matrix_mistake<A>::problem, \
            class Fix = typename ::sinter::detail::matrix_mistake<A>::fix>                                 \
  void name(A&&, const Rest&...) = delete;

/// Matrices as a batch, row-major.
template <class T, int R, device D>
tensor<T, 3, D> batch_of(const tensor<T, R, D>& x) {
  index_t count = 1;
  for (int d = 0; d + 2 < R; ++d) count *= x.shape()[d];
  return x.contiguous().reshape({count, x.shape()[R - 2], x.shape()[R - 1]});
}
/// The shape of x with other matrices.
template <int R>
extents<R> with_matrices(extents<R> x, index_t rows, index_t columns) {
  x[R - 2] = rows;
  x[R - 1] = columns;
  return x;
}

/// The shape of x with a line of n elements in place of each matrix.
template <int R>
extents<R - 1> with_lines(const extents<R>& x, index_t n) {
  extents<R - 1> shape;
  for (int d = 0; d + 2 < R; ++d) shape[d] = x[d];
  shape[R - 2] = n;
  return shape;
}

SINTER_SHARED void check_square(const char* op, shape_piece a);
/// Errors: value_error for the first matrix that failed.
SINTER_SHARED void check_all_done(const char* op, const std::vector<char>& failed, const char* why);
#if SINTER_DEFINES
SINTER_SHARED void check_square(const char* op, shape_piece a) {
  if (a.extents[a.rank - 1] != a.extents[a.rank - 2])
    refuse<shape_error>({op, ": shape ", a, "; its last two extents must be equal"});
}
SINTER_SHARED void check_all_done(const char* op, const std::vector<char>& failed, const char* why) {
  for (std::size_t i = 0; i < failed.size(); ++i) {
    if (failed[i] == 0) continue;
    if (failed.size() == 1) refuse<value_error>({op, ": the matrix ", why});
    refuse<value_error>({op, ": matrix ", static_cast<index_t>(i), " of the batch ", why});
  }
}
#endif  // SINTER_DEFINES
template <class A>
void check_square(const char* op, const A& a) {
  check_defined(op, a);
  check_square(op, shape_piece{a.shape().data(), rank_of<A>});
}

/// f(i) for each matrix of a batch, in parallel; it says whether all went well.
template <device D, class F>
void each_matrix(const char* op, index_t count, const char* why, const F& f) {
  std::vector<char> failed(static_cast<std::size_t>(count));
  backend<D>::pool().parallel_for(count, [&](index_t i) { failed[static_cast<std::size_t>(i)] = f(i) ? 0 : 1; });
  check_all_done(op, failed, why);
}

}  // namespace detail
}  // namespace sinter
