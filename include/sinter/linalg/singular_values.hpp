// sinter/linalg/singular_values.hpp: svd, svdvals and pinv.
#pragma once

#include "sinter/linalg/factors.hpp"

namespace sinter {
namespace detail {

/// x - x^T
template <class X>
auto skew_part(const X& x) {
  return eval(x - x.transpose());
}
/// x / e off the diagonal, 0 where x is.
template <class X, class E>
auto divided_off_diagonal(const X& x, const E& e) {
  return eval(where(x == 0, 0, x / e));
}

}  // namespace detail

/// The parts of svd().
///
///     const auto [u, s, vh] = svd(a);
template <class Matrices, class Lines>
struct singular_value_parts {
  Matrices u;
  Lines s;
  Matrices vh;
};

/// u diag(s) vh = a with singular values s that do not rise, as torch.linalg.svd with full_matrices=False: (…,m,n) =>
/// (…,m,k), (…,k) and (…,k,n), where k is the smaller of m and n. Runs at once. Derivative: that of u and vh has
/// differences of squared singular values below fractions, so it is infinite or NaN where two are equal and it matters;
/// svdvals() has no such fractions. u and vh are known up to a sign for each value, of which results should not depend.
/// Errors: value_error for infinite and NaN elements; devices and elements as inverse.
///
///     const auto [u, s, vh] = svd(a);
template <class A>
  requires(detail::is_matrix<A>)
auto svd(const A& a) {
  constexpr int R = rank_of<A>;
  using D = device_of<A>;
  detail::check_defined("svd", a);
  const auto x = eval(a);
  const index_t m = x.shape()[R - 2], n = x.shape()[R - 1], k = m < n ? m : n;
  const auto lines = with_gradient(
      [](const auto& y) {
        using T = element_of<decltype(y)>;
        const auto p = detail::singular_parts_of("svd", detail::batch_of(y));
        return with_saved(detail::lines_of_parts<T, D>(p.s.shape()[0], p.u, p.s, p.v), p.u, p.s, p.v, y.shape());
      },
      [](const auto& g, const auto& u, const auto& s, const auto& v, const auto& shape) {
        const index_t of_u = u.shape()[1] * u.shape()[2], of_s = s.shape()[1], rows = u.shape()[1],
                      columns = v.shape()[2];
        const auto gu = detail::part_of_lines(g, 0, u.shape(), of_u);
        const auto gs = detail::part_of_lines(g, of_u, s.shape(), of_s);
        const auto gv = detail::part_of_lines(g, of_u + of_s, v.shape(), of_s * columns);
        const auto down = s.unsqueeze(2), across = s.unsqueeze(1);
        const auto differences = eval((across - down) * (across + down));
        const auto of_left =
            detail::divided_off_diagonal(detail::skew_part(eval(matmul(u.transpose(), gu))), differences);
        const auto of_right =
            detail::divided_off_diagonal(detail::skew_part(eval(matmul(v, gv.transpose()))), differences);
        const auto inner = eval(of_left * across + down * of_right + diag_embed(gs));
        auto y = eval(matmul(eval(matmul(u, inner)), v));
        if (rows > of_s) y = eval(y + matmul(eval((gu - matmul(u, eval(matmul(u.transpose(), gu)))) / across), v));
        if (columns > of_s) y = eval(y + matmul(u, eval((gv - matmul(eval(matmul(gv, v.transpose())), v)) / down)));
        return y.reshape(shape);
      },
      "svd")(x);
  const auto of_u = detail::with_matrices(x.shape(), m, k), of_v = detail::with_matrices(x.shape(), k, n);
  const auto u = detail::part_of_lines(lines, 0, of_u, m * k);
  const auto s = detail::part_of_lines(lines, m * k, detail::with_lines(x.shape(), k), k);
  const auto v = detail::part_of_lines(lines, m * k + k, of_v, k * n);
  return singular_value_parts<detail::bare<decltype(u)>, detail::bare<decltype(s)>>{u, s, v};
}

/// The singular values of matrices, which do not rise: (…,m,n) => (…,k), where k is the smaller of m and n, as
/// torch.linalg.svdvals. Runs at once. Derivative: u diag(g) vh. Errors and devices as svd.
///
///     tensor s = svdvals(a);
template <class A>
  requires(detail::is_matrix<A>)
auto svdvals(const A& a) {
  detail::check_defined("svdvals", a);
  return with_gradient(
      [](const auto& x) {
        const auto s = detail::singular_parts_of("svdvals", detail::batch_of(x), false).s;
        return with_saved(s.reshape(detail::with_lines(x.shape(), s.shape()[1])), x);
      },
      [](const auto& g, const auto& x) {
        const auto p = detail::singular_parts_of("svdvals", detail::batch_of(x));
        return eval(matmul(p.u * g.reshape(p.s.shape()).unsqueeze(1), p.v)).reshape(x.shape());
      },
      "svdvals")(a);
}

namespace detail {

/// The derivative of pseudo-inverses y of a. G. Golub and V. Pereyra, "The differentiation of pseudo-inverses and
/// nonlinear least squares problems whose variables separate", SIAM J. Numer. Anal. 10 (1973).
template <class T, device D>
tensor<T, 3, D> pseudo_inverse_gradient(const tensor<T, 3, D>& g, const tensor<T, 3, D>& a, const tensor<T, 3, D>& y) {
  const auto product = [](const auto& p, const auto& q) { return eval(matmul(p, q)); };
  const auto turned = eval(y.transpose());
  const auto direct = product(product(turned, g), turned);
  // What leaves the columns of a, and what leaves its rows.
  const auto outside = eval(product(product(turned, y), g.transpose()) -
                            product(product(product(turned, y), product(g.transpose(), y)), a));
  const auto inside = eval(product(g.transpose(), product(y, turned)) -
                           product(a, product(product(y, g.transpose()), product(y, turned))));
  return eval(outside + inside - direct);
}

}  // namespace detail

/// The Moore-Penrose inverses of matrices, (…,m,n) => (…,n,m), as torch.linalg.pinv: singular values of at most rtol
/// times the largest count as 0. rtol is the larger extent times the precision of the elements, if none is given. Runs
/// at once. Derivative: without singular vectors, so that equal singular values do no harm. Errors and devices as svd.
///
///     tensor y = pinv(a);
template <class A>
  requires(detail::is_matrix<A>)
auto pinv(const A& a, double rtol = -1) {
  detail::check_defined("pinv", a);
  return with_gradient(
      [rtol](const auto& x) {
        constexpr int R = rank_of<decltype(x)>;
        const index_t m = x.shape()[R - 2], n = x.shape()[R - 1];
        const double smallest = rtol < 0 ? detail::smallest_singular<element_of<decltype(x)>>(m, n) : rtol;
        const auto y = detail::pseudo_inverse_of("pinv", detail::batch_of(x), smallest)
                           .reshape(detail::with_matrices(x.shape(), n, m));
        return with_saved(y, x, y);
      },
      [](const auto& g, const auto& x, const auto& y) {
        return detail::pseudo_inverse_gradient(detail::batch_of(g), detail::batch_of(x), detail::batch_of(y))
            .reshape(x.shape());
      },
      "pinv")(a);
}

SINTER_MATRIX_REJECTIONS(svd)
SINTER_MATRIX_REJECTIONS(svdvals)
SINTER_MATRIX_REJECTIONS(pinv)

}  // namespace sinter
