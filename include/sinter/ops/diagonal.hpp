// sinter/ops/diagonal.hpp: diagonal, diag, diagflat, diag_embed, trace, and tril and triu, the elements on, below and
// above a diagonal.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/concat.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/greater_equal.hpp"
#include "sinter/ops/less_equal.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {
namespace detail {

/// Rows (n,1) and columns (m) of a matrix, counted.
template <device D>
auto row_numbers(index_t n) {
  return arange<std::int64_t, D>(n).reshape({n, 1});
}
template <device D>
auto column_numbers(index_t m) {
  return arange<std::int64_t, D>(m);
}

/// Matrices, the last two axes of x, with zeros unless keeps(column, row + offset).
template <class X, class Keeps>
evaluated<X> triangle(const char* op, X&& x, index_t offset, const Keeps& keeps) {
  check_defined(op, x);
  const auto rows = row_numbers<device_of<X>>(x.shape()[rank_of<X> - 2]);
  const auto columns = column_numbers<device_of<X>>(x.shape()[rank_of<X> - 1]);
  return eval(where(keeps(columns, rows + offset), std::forward<X>(x), 0));
}

}  // namespace detail

/// The elements at which axis_b counts `offset` more than axis_a, as a last axis in place of the two, a view of x:
/// (n,m) at 0 => (min(n, m)). Derivative: g lies on the diagonal. Errors: index_error for axes that x does not have, or
/// for one axis twice.
///
///     tensor above = diagonal(x, 1);
template <class X>
  requires(detail::has_axes<X, 2>)
auto diagonal(X&& x, detail::whole offset = 0, detail::whole axis_a = 0, detail::whole axis_b = 1) {
  return detail::eval_to_read(std::forward<X>(x)).diagonal(offset, axis_a, axis_b);
}

/// The sum of a matrix' diagonal. Derivative: g on the diagonal.
///
///     tensor t = trace(x);
template <class X>
  requires(detail::has_axes<X, 2> && rank_of<X> == 2)
auto trace(X&& x) {
  return eval(sum(diagonal(std::forward<X>(x))));
}

/// The lines along the last axis as diagonals of matrices, which are the last two axes, with zeros elsewhere:
/// (…,n) => (…,n+|offset|,n+|offset|). Runs at once. Derivative: g on the diagonal.
///
///     tensor scales = diag_embed(x);
template <class X>
  requires(detail::has_axes<X> && rank_of<X> < max_rank)
auto diag_embed(X&& x, detail::whole offset = 0) {
  constexpr int R = rank_of<X>;
  using D = device_of<X>;
  detail::check_defined("diag_embed", x);
  const auto value = detail::eval_to_read(std::forward<X>(x));
  const index_t n = value.shape()[R - 1], o = offset, beside = o < 0 ? -o : o;
  const auto rows = detail::row_numbers<D>(n);
  const auto columns = detail::column_numbers<D>(n + beside);
  const auto lines = eval(where(columns == rows + (o > 0 ? o : 0), value.unsqueeze(R), 0));
  if (beside == 0) return lines;
  extents<R + 1> rest = lines.shape();
  rest[R - 1] = beside;
  const auto zeros_beside = zeros<element_of<X>, D>(rest);
  return o > 0 ? concat(R - 1, lines, zeros_beside) : concat(R - 1, zeros_beside, lines);
}

/// The same with the matrices on two axes of the result, their rows on the first, their columns on the second: (n,m) at
/// 0 and 1 => (m,m,n). A view of that. Errors: index_error for axes that the result does not have, value_error for one
/// axis twice.
///
///     tensor matrices = diag_embed(x, 0, 0, 1);
template <class X>
  requires(detail::has_axes<X> && rank_of<X> < max_rank)
auto diag_embed(X&& x, detail::whole offset, detail::whole axis_a, detail::whole axis_b) {
  constexpr int R = rank_of<X> + 1;
  const int a = detail::checked_axis("diag_embed", axis_a, R), b = detail::checked_axis("diag_embed", axis_b, R);
  if (a == b) detail::refuse<value_error>({"diag_embed: axis ", a, " is named twice"});
  index_t order[std::size_t{R}] = {};
  int next = 0;
  for (int d = 0; d < R; ++d) order[d] = d == a ? R - 2 : d == b ? R - 1 : next++;
  return diag_embed(std::forward<X>(x), offset).permute(order);
}

/// The elements of x, in row-major order, on a diagonal of a matrix.
///
///     tensor d = diagflat(x, 1);
template <class X>
  requires(detail::has_axes<X, 0>)
auto diagflat(X&& x, detail::whole offset = 0) {
  detail::check_defined("diagflat", x);
  return diag_embed(detail::eval_to_read(std::forward<X>(x)).flatten(), offset);
}

/// Of a vector the matrix with it on a diagonal, of a matrix that diagonal: (n) => (n+|offset|,n+|offset|), and
/// (n,m) => the view diagonal(x, offset).
///
///     tensor d = diag(diag(x.select(0, 0)));
template <class X>
  requires(detail::has_axes<X> && rank_of<X> <= 2)
auto diag(X&& x, detail::whole offset = 0) {
  if constexpr (rank_of<X> == 1) return diag_embed(std::forward<X>(x), offset);
  else return diagonal(std::forward<X>(x), offset);
}

/// Matrices, the last two axes of x, with zeros above a diagonal, that which lies `offset` columns to the right of the
/// main one. What x is computed from goes into the same pass. Runs at once. Derivative: g where x is kept.
///
///     tensor causal = tril(ones<float>({8, 8}));
template <class X>
  requires(detail::has_axes<X, 2>)
detail::evaluated<X> tril(X&& x, detail::whole offset = 0) {
  return detail::triangle("tril", std::forward<X>(x), offset,
                          [](const auto& column, const auto& row) { return column <= row; });
}
/// Matrices with zeros below a diagonal; see tril.
///
///     tensor upper = triu(x, 1);
template <class X>
  requires(detail::has_axes<X, 2>)
detail::evaluated<X> triu(X&& x, detail::whole offset = 0) {
  return detail::triangle("triu", std::forward<X>(x), offset,
                          [](const auto& column, const auto& row) { return column >= row; });
}

SINTER_AXES_REJECTIONS(diagonal, 2)
SINTER_AXES_REJECTIONS(trace, 2)
SINTER_AXES_REJECTIONS(tril, 2)
SINTER_AXES_REJECTIONS(triu, 2)
SINTER_AXES_REJECTIONS(diag_embed, 1)
SINTER_AXES_REJECTIONS(diagflat, 0)
SINTER_AXES_REJECTIONS(diag, 1)

}  // namespace sinter
