// sinter/linalg/factors.hpp: cholesky and qr, and results of several parts.
#pragma once

#include "sinter/linalg/plain.hpp"
#include "sinter/ops/diagonal.hpp"

namespace sinter {
namespace detail {

/// Several tensors as the lines of one, so that a function has one result: a line for each matrix of the batch.
template <class T, device D, class... Part>
tensor<T, 2, D> lines_of_parts(index_t count, const Part&... part) {
  const auto line = [&](const auto& x) { return x.reshape({count, count > 0 ? x.numel() / count : 0}); };
  return concat(1, line(part)...);
}
/// The part of lines from `begin` on that has this shape.
template <class Lines, int R>
auto part_of_lines(const Lines& lines, index_t begin, const extents<R>& shape, index_t size) {
  return lines.slice(1, begin, begin + size).reshape(shape.values);
}

/// q r = a with as many columns of q as a has, for at least as many rows.
template <class T, device D>
std::pair<tensor<T, 3, D>, tensor<T, 3, D>> orthogonal_factors_of(const tensor<T, 3, D>& a) {
  const index_t count = a.shape()[0], m = a.shape()[1], n = a.shape()[2];
  const auto q = tensor<T, 3, D>::uninitialized({{count, m, n}}), r = tensor<T, 3, D>::uninitialized({{count, n, n}});
  if (n == 0) return {q, r};
  each_matrix<D>("qr", count, "", [&](index_t i) {
    using matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
    const Eigen::HouseholderQR<matrix> qr(matrix_at(a, i));
    matrix_at(q, i) = qr.householderQ() * matrix::Identity(m, n);
    matrix_at(r, i) = qr.matrixQR().topRows(n).template triangularView<Eigen::Upper>();
    return true;
  });
  return {q, r};
}

}  // namespace detail

/// The lower triangular L with L L^T = a, of symmetric positive definite matrices (…,n,n), as torch.linalg.cholesky.
/// The lower triangle of a is read. Runs at once. Derivative: L^-T p L^-1 made symmetric, where p is the lower triangle
/// of L^T g with half of its diagonal. Errors: value_error for a matrix that is not positive definite; else as inverse.
///
///     tensor l = cholesky(a);
template <class A>
  requires(detail::is_matrix<A>)
auto cholesky(const A& a) {
  detail::check_square("cholesky", a);
  return with_gradient(
      [](const auto& x) {
        using T = element_of<decltype(x)>;
        const auto from = detail::batch_of(x);
        const auto to = zeros<T, device_of<decltype(x)>>(from.shape());
        detail::each_matrix<device_of<decltype(x)>>(
            "cholesky", from.shape()[0], "is not positive definite", [&](index_t i) {
              if (from.shape()[1] == 0) return true;
              const Eigen::LLT<detail::row_major_matrix<T>> llt(detail::matrix_at(from, i));
              if (static_cast<int>(llt.info()) != 0) return false;
              detail::matrix_at(to, i) = llt.matrixL();
              return true;
            });
        const auto l = to.reshape(x.shape());
        return with_saved(l, l);
      },
      [](const auto& g, const auto& y) {
        const auto l = detail::batch_of(y);
        const auto turned = detail::batch_of(y.transpose());
        const auto product = eval(matmul(turned, detail::batch_of(g)));
        const auto half = eval((tril(product) + tril(product, -1)) * 0.5F);
        const auto left = detail::solution_of("cholesky", turned, half, false);
        const auto both = detail::solution_of("cholesky", turned, detail::batch_of(left.transpose()), false);
        return eval((both + both.transpose()) * 0.5F).reshape(y.shape());
      },
      "cholesky")(a);
}

/// The factors of qr().
///
///     const auto [q, r] = qr(a);
template <class Matrices>
struct orthogonal_factors {
  Matrices q, r;
};

/// q r = a, where the columns of q are orthonormal and r is upper triangular, as torch.linalg.qr in its reduced mode:
/// (…,m,n) => (…,m,k) and (…,k,n), where k is the smaller of m and n. Signs are those of Householder's reflections.
/// Runs at once. Derivative: (gq + q s) r^-T, where s is the upper triangle of gr r^T - q^T gq made symmetric; of a
/// matrix with more columns than rows, for the first of them, of which the others are q^T a. Errors and devices as
/// inverse.
///
///     const auto [q, r] = qr(a);
template <class A>
  requires(detail::is_matrix<A>)
auto qr(const A& a) {
  constexpr int R = rank_of<A>;
  using D = device_of<A>;
  detail::check_defined("qr", a);
  const auto x = eval(a);
  using matrices = detail::bare<decltype(x)>;
  const index_t m = x.shape()[R - 2], n = x.shape()[R - 1], k = m < n ? m : n;
  const auto lines = with_gradient(
      [](const auto& tall) {
        using T = element_of<decltype(tall)>;
        const auto [q, r] = detail::orthogonal_factors_of(detail::batch_of(tall));
        return with_saved(detail::lines_of_parts<T, D>(q.shape()[0], q, r), q, r, tall.shape());
      },
      [](const auto& g, const auto& q, const auto& r, const auto& shape) {
        const auto gq = detail::part_of_lines(g, 0, q.shape(), q.shape()[1] * q.shape()[2]);
        const auto gr = detail::part_of_lines(g, q.shape()[1] * q.shape()[2], r.shape(), r.shape()[1] * r.shape()[2]);
        const auto inner = eval(matmul(gr, r.transpose()) - matmul(q.transpose(), gq));
        const auto symmetric = eval(triu(inner) + triu(inner, 1).transpose());
        const auto right = eval(gq + matmul(q, symmetric));
        const auto y = detail::solution_of("qr", r, detail::batch_of(right.transpose()), false);
        return eval(y.transpose()).reshape(shape);
      },
      "qr")(x.slice(R - 1, 0, k));
  const auto of_q = detail::with_matrices(x.shape(), m, k), of_r = detail::with_matrices(x.shape(), k, k);
  matrices q = detail::part_of_lines(lines, 0, of_q, m * k), r = detail::part_of_lines(lines, m * k, of_r, k * k);
  if (n > k) r = concat(R - 1, r, matmul(q.transpose(), x.slice(R - 1, k, n)));
  return orthogonal_factors<matrices>{q, r};
}

SINTER_MATRIX_REJECTIONS(cholesky)
SINTER_MATRIX_REJECTIONS(qr)

}  // namespace sinter
