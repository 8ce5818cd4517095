// sinter/ops/dot.hpp: dot, mv and vecdot, products with vectors: sums of products, in one pass each.
#pragma once

#include "sinter/ops/multiply.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter {

template <int, int>
struct dot_of_ranks;
template <int, int>
struct mv_of_ranks;
struct both_of_rank_1;
struct a_matrix_of_rank_2_and_a_vector_of_rank_1;

namespace detail {

/// Of a product of an A of rank R and a vector; Ranks<...> and Fix are the message where the ranks are others.
template <int R, template <int, int> class Ranks, class Fix, class A, class B>
constexpr auto find_vector_mistake() {
  if constexpr (!expression<A> || !expression<B>) return no_operands<A, B>{};
  else if constexpr (!fits<ops::multiply_op, A, B>) return mistake_of<ops::multiply_op, A, B>{};
  else if constexpr (rank_of<A> != R || rank_of<B> != 1) return mistake<Ranks<rank_of<A>, rank_of<B>>, Fix>{};
  else return fitting<element_of<A>>{};
}
template <class A, class B>
using dot_mistake = decltype(find_vector_mistake<1, dot_of_ranks, both_of_rank_1, bare<A>, bare<B>>());
template <class A, class B>
using mv_mistake =
    decltype(find_vector_mistake<2, mv_of_ranks, a_matrix_of_rank_2_and_a_vector_of_rank_1, bare<A>, bare<B>>());

template <class A, class B>
void check_inner(const char* op, const A& a, const B& b) {
  check_defined(op, a);
  check_defined(op, b);
  if (a.shape()[bare<A>::rank - 1] != b.shape()[0])
    refuse<shape_error>(
        {op, ": shapes ", a.shape(), " and ", b.shape(), " do not fit: their last extents must be equal"});
}

}  // namespace detail

/// The sum of a b, (N,) x (N,) => (), added up and of the type that sum() gives. Derivative: da = g b, db = g a.
/// Errors: shape_error when the extents differ.
///
///     tensor projection = dot(gain, direction);
template <expression A, expression B>
  requires(detail::is_fitting<detail::dot_mistake<A, B>>)
auto dot(A&& a, B&& b) {
  detail::check_inner("dot", a, b);
  return sum(std::forward<A>(a) * std::forward<B>(b));
}
template <class A, class B, class Problem = typename detail::dot_mistake<A, B>::problem,
          class Fix = typename detail::dot_mistake<A, B>::fix>
void dot(A&&, B&&) = delete;

/// Matrix times vector, (M,N) x (N,) => (M,), added up and of the type that sum() gives. Derivative: da = g b^T,
/// db = a^T g. Errors: shape_error when the extents do not fit.
///
///     tensor slopes = mv(x, direction) + bias;
template <expression A, expression B>
  requires(detail::is_fitting<detail::mv_mistake<A, B>>)
auto mv(A&& a, B&& b) {
  detail::check_inner("mv", a, b);
  return sum(std::forward<A>(a) * std::forward<B>(b), 1);
}
template <class A, class B, class Problem = typename detail::mv_mistake<A, B>::problem,
          class Fix = typename detail::mv_mistake<A, B>::fix>
void mv(A&&, B&&) = delete;

/// The sums of a b along an axis, where a and b broadcast: (n,m) x (n,m) => (n) along -1, added up and of the type that
/// sum() gives. Derivative: da = g b, db = g a. Errors: index_error for an axis that a b does not have.
///
///     tensor scores = vecdot(queries, keys);
template <expression A, expression B>
  requires(detail::fits<ops::multiply_op, A, B>)
auto vecdot(A&& a, B&& b, detail::whole axis = -1) {
  return sum(std::forward<A>(a) * std::forward<B>(b), index_t(axis));
}
template <expression A, class B, class Problem = typename detail::mistake_of<ops::multiply_op, A, B>::problem,
          class Fix = typename detail::mistake_of<ops::multiply_op, A, B>::fix>
void vecdot(A&&, B&&, index_t = -1) = delete;

}  // namespace sinter
