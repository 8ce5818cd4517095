// sinter/linalg/least_squares.hpp: lstsq.
#pragma once

#include "sinter/linalg/singular_values.hpp"
#include "sinter/linalg/solve.hpp"

namespace sinter {

/// x for which the length of a x - b is least, and of those the shortest: a (…,m,n) and b (…,m,k), or vectors (…,m), =>
/// (…,n,k) or (…,n); the solution of torch.linalg.lstsq. By an orthogonal decomposition with pivots, so that a may lack
/// ranks. Leading axes broadcast. Runs at once. Derivative: that of pinv(a) b. Errors: shape_error where extents do not
/// fit; devices and elements as inverse.
///
///     tensor x = lstsq(a, b);
template <class A, class B>
  requires(detail::is_fitting<detail::equations_mistake<A, B>>)
auto lstsq(const A& a, const B& b) {
  return detail::with_right_sides("lstsq", a, b, [](const auto& matrices, const auto& sides) {
    constexpr int R = rank_of<decltype(matrices)>;
    if (matrices.shape()[R - 2] != sides.shape()[R - 2])
      detail::refuse<shape_error>({"lstsq: matrices of shape ", matrices.shape(), " and right sides of shape ",
                                   sides.shape(), " do not fit: they must have as many rows"});
    return with_gradient(
        [](const auto& p, const auto& q) {
          using T = element_of<decltype(p)>;
          using D = device_of<decltype(p)>;
          const auto from = detail::batch_of(p), right = detail::batch_of(q);
          const auto x = zeros<T, D>(extents<3>{{from.shape()[0], from.shape()[2], right.shape()[2]}});
          if (from.numel() > 0 && right.numel() > 0)
            detail::each_matrix<D>("lstsq", from.shape()[0], "", [&](index_t i) {
              const Eigen::CompleteOrthogonalDecomposition<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>> parts(
                  detail::matrix_at(from, i));
              detail::matrix_at(x, i) = parts.solve(detail::matrix_at(right, i));
              return true;
            });
          return with_saved(x.reshape(detail::with_matrices(q.shape(), p.shape()[R - 1], q.shape()[R - 1])), p, q);
        },
        [](const auto& g, const auto& p, const auto& q) {
          const auto from = detail::batch_of(p), of_x = detail::batch_of(g);
          const auto y = detail::pseudo_inverse_of(
              "lstsq", from, detail::smallest_singular<element_of<decltype(from)>>(from.shape()[1], from.shape()[2]));
          const auto of_inverse = eval(matmul(of_x, detail::batch_of(q).transpose()));
          return gradients(detail::pseudo_inverse_gradient(of_inverse, from, y).reshape(p.shape()),
                           eval(matmul(y.transpose(), of_x)).reshape(q.shape()));
        },
        "lstsq")(matrices, sides);
  });
}
template <class A, class B, class Problem = typename detail::equations_mistake<A, B>::problem,
          class Fix = typename detail::equations_mistake<A, B>::fix>
void lstsq(A&&, B&&) = delete;

}  // namespace sinter
