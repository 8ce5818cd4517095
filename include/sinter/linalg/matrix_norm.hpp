// sinter/linalg/matrix_norm.hpp: norms of matrices that are made of their singular values.
#pragma once

#include "sinter/linalg/singular_values.hpp"
#include "sinter/ops/max.hpp"
#include "sinter/ops/min.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter {

/// Which norm of its singular values is a matrix' norm.
enum class singular_norm {
  nuclear,  ///< their sum, PyTorch's order 'nuc'
  largest,  ///< its order 2
  smallest  ///< its order -2
};

/// A norm of the matrices of two axes that is made of their singular values, as torch.linalg.matrix_norm of the orders
/// 'nuc', 2 and -2: (…,m,n) => (…), or with keepdim extents of 1. Runs at once. Derivative: that of svdvals(). Errors
/// and devices as svd, and index_error for axes that are not there.
///
///     tensor n = matrix_norm(a, singular_norm::nuclear);
template <class A>
  requires(detail::is_matrix<A>)
auto matrix_norm(const A& a, singular_norm order, const index_t (&axes)[2] = {-2, -1}) {
  constexpr int R = rank_of<A>;
  detail::check_defined("matrix_norm", a);
  const auto named = detail::to_extents(axes);
  const int rows = detail::checked_axis("matrix_norm", named[0], R),
            columns = detail::checked_axis("matrix_norm", named[1], R);
  if (rows == columns) detail::refuse<index_error>({"matrix_norm: axis ", rows, " is named twice"});
  index_t last[std::size_t{R}];
  int to = 0;
  for (int d = 0; d < R; ++d)
    if (d != rows && d != columns) last[to++] = d;
  last[R - 2] = rows;
  last[R - 1] = columns;
  const auto s = svdvals(eval(a).permute(last));
  if (order == singular_norm::nuclear) return eval(sum(s, -1));
  return order == singular_norm::largest ? eval(max(s, -1)) : eval(min(s, -1));
}
template <class A>
  requires(detail::is_matrix<A>)
auto matrix_norm(const A& a, singular_norm order, const index_t (&axes)[2], keepdim_t) {
  const auto named = detail::to_extents(axes);
  extents<rank_of<A>> shape = a.shape();
  const auto y = matrix_norm(a, order, axes);
  for (const index_t axis : named) shape[detail::checked_axis("matrix_norm", axis, rank_of<A>)] = 1;
  return y.reshape(shape.values);
}

template <class A, class Problem = typename detail::matrix_mistake<A>::problem,
          class Fix = typename detail::matrix_mistake<A>::fix>
void matrix_norm(A&&, singular_norm) = delete;

}  // namespace sinter
