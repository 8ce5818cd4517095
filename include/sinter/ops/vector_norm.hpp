// sinter/ops/vector_norm.hpp: vector_norm and matrix_norm, norms of an order that is a number, and normalize.
#pragma once

#include <cmath>

#include "sinter/ops/abs.hpp"
#include "sinter/ops/clamp_min.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/greater.hpp"
#include "sinter/ops/less.hpp"
#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/max.hpp"
#include "sinter/ops/min.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/norm.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/pow.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {

/// The order of a matrix norm that is the root of the sum of all squares.
///
///     tensor y = matrix_norm(x, frobenius);
struct frobenius_t {};
inline constexpr frobenius_t frobenius{};

namespace detail {

SINTER_SHARED void check_order(const char* op, double p);
/// That there are values to reduce, which the order p asks for.
SINTER_SHARED void check_values(const char* op, double p, shape_piece x, const axis_set& axes);
#if SINTER_DEFINES
SINTER_SHARED void check_order(const char* op, double p) {
  if (std::isnan(p)) refuse<value_error>({op, ": the order is NaN; it must be a number, or an infinity"});
}
SINTER_SHARED void check_values(const char* op, double p, shape_piece x, const axis_set& axes) {
  bool has_lines = true, has_values = true;
  for (int d = 0; d < x.rank; ++d) (axes.has[d] ? has_values : has_lines) &= x.extents[d] > 0;
  if (has_lines && !has_values)
    refuse<shape_error>({op, ": no values along the reduced axes of shape ", x, "; the order ", p, " needs them"});
}
#endif

/// The largest size of each line, or the smallest, where that is neither 0 nor infinite; else 1. Sizes are divided by
/// it so that their powers stay in range.
template <int R, class E>
auto norm_scale(const E& x, double p, const axis_set& axes) {
  const auto size = abs(untrack(x));
  using Scale = evaluated<decltype(make_reduction<ops::max_op, R>(size, axes))>;
  const Scale scale = p > 0 ? eval(make_reduction<ops::max_op, R>(size, axes))  //
                            : eval(make_reduction<ops::min_op, R>(size, axes));
  return eval(where(scale > 0 && scale < std::numeric_limits<element_of<E>>::infinity(), scale, 1));
}

/// (sum |x|^p)^(1/p). What would be 0 inf in a derivative is kept out of the powers.
template <int R, class E>
auto norm_by_powers(const E& x, double p, const axis_set& axes) {
  using T = element_of<E>;
  const T of_zero = p > 0 ? T(0) : std::numeric_limits<T>::infinity();
  const auto scale = norm_scale<R>(x, p, axes);
  const auto shown = scale.reshape(ops::reduce_op<ops::sum_op, rank_of<E>, R>(axes).kept_shape(x.shape()));
  const auto size = abs(x) / shown;
  const auto terms = where(x == 0, of_zero, pow(where(x == 0, 1, size), p));
  const auto total = eval(make_reduction<ops::sum_op, R>(terms, axes));
  return eval(scale * where(total == 0, of_zero, pow(where(total == 0, 1, total), 1 / p)));
}

/// The norm of order p over axes, to rank R, which is that of x where the axes stay.
template <int R, class E>
auto norm_of_order(const char* op, const E& e, double p, const axis_set& axes) {
  using T = element_of<E>;
  if constexpr (points_in<E> > 0) {
    return norm_of_order<R>(op, eval_to_read(e), p, axes);
  } else if constexpr (narrow_element<T>) {
    return eval(cast<T>(norm_of_order<R>(op, cast<float>(e), p, axes)));
  } else {
    using Y = evaluated<decltype(make_reduction<ops::norm_op, R>(e, axes))>;
    check_order(op, p);
    if (p < 0 || std::isinf(p)) check_values(op, p, {e.shape().data(), rank_of<E>}, axes);
    if (p == 2) return Y(make_reduction<ops::norm_op, R>(e, axes));
    if (p == 1) return Y(make_reduction<ops::sum_op, R>(abs(e), axes));
    if (p == 0) return Y(make_reduction<ops::sum_op, R>(where(e != 0, 1, 0 * e), axes));
    if (count_reduced(e, axes) == 0) return Y(make_reduction<ops::sum_op, R>(abs(e), axes));
    if (!std::isinf(p)) return Y(norm_by_powers<R>(e, p, axes));
    if constexpr (E::order >= 2) refuse<value_error>({op, ": the order ", p, " has no second derivative"});
    else if (p > 0) return Y(make_reduction<ops::max_op, R>(abs(e), axes));
    else return Y(make_reduction<ops::min_op, R>(abs(e), axes));
  }
}

template <bool Keep, int N, class E>
auto norm_along(const char* op, const E& e, double p, const index_t (&axes)[std::size_t{N}]) {
  check_defined(op, e);
  const axis_set set = axes_to_reduce<E>(op, axes);
  return norm_of_order<Keep ? rank_of<E> : reduced_rank<E, N>>(op, e, p, set);
}

template <class P>
concept order_of_matrix = std::is_arithmetic_v<P> || std::is_same_v<P, frobenius_t>;

/// `a` is the axis of rows' numbers, `b` that of columns'.
template <bool Keep, class E, class P>
auto matrix_norm_along(const E& e, P p, const index_t (&given)[2]) {
  constexpr int N = rank_of<E>, R = Keep ? N : N - 2;
  check_defined("matrix_norm", e);
  const axis_set both = axes_to_reduce<E>("matrix_norm", given);
  if constexpr (std::is_same_v<P, frobenius_t>) {
    return eval(make_reduction<ops::norm_op, R>(e, both));
  } else {
    using Y = evaluated<decltype(make_reduction<ops::norm_op, R>(e, both))>;
    const double order = static_cast<double>(p), size = std::abs(order);
    if (size != 1 && !std::isinf(size))
      refuse<value_error>({"matrix_norm: order ", order,
                           "; it may be 1, -1, an infinity, its negative, and frobenius; <sinter/linalg.hpp> has those "
                           "of singular values"});
    check_values("matrix_norm", order, {e.shape().data(), N}, both);
    const auto sums = eval(sum(abs(e), given[size == 1 ? 0 : 1], keepdim));
    if (order > 0) return Y(make_reduction<ops::max_op, R>(sums, both));
    return Y(make_reduction<ops::min_op, R>(sums, both));
  }
}

}  // namespace detail

/// (sum |x|^p)^(1/p) of all elements, of x of any rank and floating point. The order p may be any number: with 0 it is
/// how many elements are not 0, with an infinity the largest size, with its negative the smallest. Right wherever it is
/// in the range of the type, also where powers are not. NaN where an element is NaN, but with the order 0, for which
/// that is no zero. Runs at once. Derivative: g sign(x) (|x| / y)^(p-1), 0 where x or y is 0 and for the order 0; with
/// an infinite order g, shared equally among the elements of that size. Errors: shape_error of no elements where the
/// order is negative or infinite.
///
///     tensor length = vector_norm(x, 3);
template <class E>
  requires(detail::reduces<ops::norm_op, E>)
auto vector_norm(const E& x, double p = 2) {
  detail::check_defined("vector_norm", x);
  return detail::norm_of_order<0>("vector_norm", x, p, detail::all_axes<rank_of<E>>());
}
/// The same along an axis, or a list of axes; with keepdim they stay with extent 1. A scalar has one axis, which goes.
/// Errors: index_error for an axis that x does not have.
///
///     tensor lengths = vector_norm(x, std::numeric_limits<double>::infinity(), 1, keepdim);
template <class E, class Axis, class... Keep>
  requires(detail::reduces<ops::norm_op, E, Axis, Keep...>)
auto vector_norm(const E& x, double p, Axis axis, Keep...) {
  return detail::norm_along<(sizeof...(Keep) > 0), 1>("vector_norm", x, p, {static_cast<index_t>(axis)});
}
template <std::size_t N, class E, class... Keep>
  requires(detail::reduces<ops::norm_op, E, int, Keep...>)
auto vector_norm(const E& x, double p, const index_t (&axes)[N], Keep...) {
  return detail::norm_along<(sizeof...(Keep) > 0), int{N}>("vector_norm", x, p, axes);
}

/// A norm of matrices, the last two axes of x or those that are named, rows first: of order `frobenius` the root of the
/// sum of squares, of 1 the largest sum of sizes in a column, of an infinity the largest in a row, and of their
/// negatives the smallest: (…,n,m) => (…). With keepdim both axes stay with extent 1. Floating point; runs at once.
/// Derivative: that of these sums; where several are largest, they share g equally. Errors: value_error for another
/// order, index_error for an axis that x does not have or that is named twice, shape_error for matrices without
/// elements.
///
///     tensor y = matrix_norm(x, 1);
template <class E, detail::order_of_matrix P = frobenius_t, class... Keep>
  requires(detail::has_reals<E, 2> && detail::may_keep<Keep...>)
auto matrix_norm(const E& x, P p = {}, const index_t (&axes)[2] = {-2, -1}, Keep...) {
  return detail::matrix_norm_along<(sizeof...(Keep) > 0)>(x, p, axes);
}

/// x over its norm of order p along an axis, or over `eps` where that is larger: lines of length 1. Floating point;
/// runs at once. Derivative: that of the quotient. Errors: those of vector_norm.
///
///     tensor directions = normalize(x);
template <class E>
  requires(detail::has_reals<E, 1>)
auto normalize(const E& x, double p = 2, detail::whole axis = 1, double eps = 1e-12) {
  const auto value = detail::eval_to_read(x);
  return eval(value / clamp_min(detail::norm_along<true, 1>("normalize", value, p, {axis}), eps));
}
/// The same with names: `normalize(x, {.dim = -1})`.
struct normalize_options {
  double p = 2;
  index_t dim = 1;
  double eps = 1e-12;
};
template <class E>
  requires(detail::has_reals<E, 1>)
auto normalize(const E& x, const normalize_options& o) {
  return normalize(x, o.p, o.dim, o.eps);
}

template <class E, class... Rest, class Problem = typename detail::reduction_mistake<ops::norm_op, E, Rest...>::problem,
          class Fix = typename detail::reduction_mistake<ops::norm_op, E, Rest...>::fix>
void vector_norm(E&&, double, const Rest&...) = delete;
template <class E, class Problem = typename detail::reduction_mistake<ops::norm_op, E>::problem,
          class Fix = typename detail::reduction_mistake<ops::norm_op, E>::fix>
void vector_norm(E&&) = delete;
SINTER_FIRST_OPERAND_REJECTIONS(matrix_norm, reals_mistake, 2)
SINTER_FIRST_OPERAND_REJECTIONS(normalize, reals_mistake, 1)

}  // namespace sinter
