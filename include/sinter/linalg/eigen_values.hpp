// sinter/linalg/eigen_values.hpp: eigh and eigvalsh, of symmetric matrices.
#pragma once

#include "sinter/linalg/singular_values.hpp"

namespace sinter {
namespace detail {

/// a v = v diag(w), w rising.
template <class T, device D>
std::pair<tensor<T, 2, D>, tensor<T, 3, D>> symmetric_parts_of(const char* op, const tensor<T, 3, D>& a) {
  const index_t count = a.shape()[0], n = a.shape()[1];
  const auto w = tensor<T, 2, D>::uninitialized({{count, n}});
  const auto v = tensor<T, 3, D>::uninitialized(a.shape());
  if (n == 0) return {w, v};
  each_matrix<D>(op, count, "has elements that are infinite or NaN", [&](index_t i) {
    const auto lower = matrix_at(a, i).template triangularView<Eigen::Lower>().toDenseMatrix().eval();
    if (!lower.allFinite()) return false;
    const Eigen::SelfAdjointEigenSolver<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>> solver(lower);
    line_at(w, i) = solver.eigenvalues();
    matrix_at(v, i) = solver.eigenvectors();
    return static_cast<int>(solver.info()) == 0;
  });
  return {w, v};
}

}  // namespace detail

/// The parts of eigh().
///
///     const auto [values, vectors] = eigh(a);
template <class Lines, class Matrices>
struct symmetric_eigen_parts {
  Lines eigenvalues;
  Matrices eigenvectors;
};

/// The eigenvalues of symmetric matrices, which do not fall, and their eigenvectors, the columns of orthogonal
/// matrices, as torch.linalg.eigh: (…,n,n) => (…,n) and (…,n,n). The lower triangle of a is read. Runs at once.
/// Derivative: v (diag(gw) + v^T gv / e) v^T, where e are the differences of eigenvalues: infinite or NaN where two are
/// equal and it matters; eigvalsh() has no such fractions. Errors: shape_error for matrices that are not square,
/// value_error for infinite and NaN elements; devices and elements as inverse.
///
///     const auto [values, vectors] = eigh(a);
template <class A>
  requires(detail::is_matrix<A>)
auto eigh(const A& a) {
  constexpr int R = rank_of<A>;
  using D = device_of<A>;
  detail::check_square("eigh", a);
  const auto x = eval(a);
  const auto lines = with_gradient(
      [](const auto& y) {
        using T = element_of<decltype(y)>;
        const auto [w, v] = detail::symmetric_parts_of("eigh", detail::batch_of(y));
        return with_saved(detail::lines_of_parts<T, D>(w.shape()[0], w, v), w, v, y.shape());
      },
      [](const auto& g, const auto& w, const auto& v, const auto& shape) {
        const index_t n = w.shape()[1];
        const auto gw = detail::part_of_lines(g, 0, w.shape(), n);
        const auto gv = detail::part_of_lines(g, n, v.shape(), n * n);
        const auto among = eval(matmul(v.transpose(), gv));
        const auto off = eval(among - diag_embed(diagonal(among, 0, 1, 2)));
        const auto inner =
            eval(detail::divided_off_diagonal(off, eval(w.unsqueeze(1) - w.unsqueeze(2))) + diag_embed(gw));
        return eval(matmul(eval(matmul(v, inner)), v.transpose())).reshape(shape);
      },
      "eigh")(x);
  const index_t n = x.shape()[R - 1];
  const auto w = detail::part_of_lines(lines, 0, detail::with_lines(x.shape(), n), n);
  const auto v = detail::part_of_lines(lines, n, x.shape(), n * n);
  return symmetric_eigen_parts<detail::bare<decltype(w)>, detail::bare<decltype(v)>>{w, v};
}

/// The eigenvalues of symmetric matrices, which do not fall: (…,n,n) => (…,n), as torch.linalg.eigvalsh. Runs at once.
/// Derivative: v diag(g) v^T. Errors and devices as eigh.
///
///     tensor values = eigvalsh(a);
template <class A>
  requires(detail::is_matrix<A>)
auto eigvalsh(const A& a) {
  detail::check_square("eigvalsh", a);
  return with_gradient(
      [](const auto& x) {
        const auto [w, v] = detail::symmetric_parts_of("eigvalsh", detail::batch_of(x));
        return with_saved(w.reshape(detail::with_lines(x.shape(), w.shape()[1])), v, x.shape());
      },
      [](const auto& g, const auto& v, const auto& shape) {
        const auto lines = g.reshape({v.shape()[0], v.shape()[1]});
        return eval(matmul(v * lines.unsqueeze(1), v.transpose())).reshape(shape);
      },
      "eigvalsh")(a);
}

SINTER_MATRIX_REJECTIONS(eigh)
SINTER_MATRIX_REJECTIONS(eigvalsh)

}  // namespace sinter
