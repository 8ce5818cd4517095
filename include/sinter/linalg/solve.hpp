// sinter/linalg/solve.hpp: inverse, solve, det and slogdet.
#pragma once

#include "sinter/linalg/plain.hpp"

namespace sinter {
namespace detail {

/// Leading axes of a and b made equal, where both are batches of matrices of one rank.
template <class A, class B>
auto matched_batches(const char* op, const A& a, const B& b) {
  constexpr int R = A::rank;
  const auto axes = broadcast_shapes(op, leading(a.shape()), leading(b.shape()));
  const auto shown = [&](const auto& x) {
    const auto shape = with_matrix(axes, x.shape()[R - 2], x.shape()[R - 1]);
    return x.shape() == shape ? x : x.broadcast_to(shape.values);
  };
  return std::pair(shown(a), shown(b));
}

/// f(matrices, right sides as matrices), as the right sides are: matrices, or vectors.
template <class A, class B, class F>
auto with_right_sides(const char* op, const A& a, const B& b, const F& f) {
  check_defined(op, a);
  check_defined(op, b);
  const auto matrices = eval(a);
  const auto sides = eval(b);
  if constexpr (rank_of<B> == rank_of<A>) {
    const auto [x, y] = matched_batches(op, matrices, sides);
    return f(x, y);
  } else {
    const auto [x, y] = matched_batches(op, matrices, sides.unsqueeze(rank_of<B>));
    return f(x, y).select(rank_of<A> - 1, 0);
  }
}

}  // namespace detail

/// The inverse of square matrices, (…,n,n), of float or double on host devices, as torch.linalg.inv. Runs at once.
/// Derivative: -y^T g y^T for the result y. Errors: shape_error for matrices that are not square, value_error for a
/// singular one. On a GPU it does not compile; copy to the host.
///
///     tensor y = inverse(a);
template <class A>
  requires(detail::is_matrix<A>)
auto inverse(const A& a) {
  detail::check_square("inverse", a);
  return with_gradient(
      [](const auto& x) {
        const auto y = detail::inverse_of("inverse", detail::batch_of(x), true).reshape(x.shape());
        return with_saved(y, y);
      },
      [](const auto& g, const auto& y) { return -matmul(eval(matmul(y.transpose(), g)), y.transpose()); },
      "inverse")(a);
}

/// x with a x = b: a (…,n,n) and b (…,n,k) or, one axis less, vectors (…,n), as torch.linalg.solve. Leading axes
/// broadcast. Runs at once. Derivative: db = a^-T g, da = -db x^T. Errors: shape_error where extents do not fit,
/// value_error for a singular matrix; devices and elements as inverse.
///
///     tensor x = solve(a, b);
template <class A, class B>
  requires(detail::is_fitting<detail::equations_mistake<A, B>>)
auto solve(const A& a, const B& b) {
  detail::check_square("solve", a);
  return detail::with_right_sides("solve", a, b, [](const auto& matrices, const auto& sides) {
    constexpr int R = rank_of<decltype(matrices)>;
    if (matrices.shape()[R - 1] != sides.shape()[R - 2])
      detail::refuse<shape_error>({"solve: matrices of shape ", matrices.shape(), " and right sides of shape ",
                                   sides.shape(), " do not fit: they must have as many rows"});
    return with_gradient(
        [](const auto& m, const auto& y) {
          const auto x =
              detail::solution_of("solve", detail::batch_of(m), detail::batch_of(y), true).reshape(y.shape());
          return with_saved(x, m, x);
        },
        [](const auto& g, const auto& m, const auto& x) {
          const auto of_sides =
              detail::solution_of("solve", detail::batch_of(m.transpose()), detail::batch_of(g), false)
                  .reshape(g.shape());
          return gradients(-matmul(of_sides, x.transpose()), of_sides);
        },
        "solve")(matrices, sides);
  });
}

namespace detail {

/// The matrices of cofactors, which exist for singular matrices too: with a = u diag(s) v they are det(u v) u diag(p)
/// v, where p is the product of the other singular values.
template <class T, device D>
tensor<T, 3, D> cofactors_of(const tensor<T, 3, D>& a) {
  const auto p = singular_parts_of("det", a);
  const index_t count = p.s.shape()[0], n = p.s.shape()[1];
  const auto turns = eval(determinants_of(p.u) * determinants_of(p.v));
  for (index_t i = 0; i < count; ++i) {
    auto s = line_at(p.s, i);
    const auto given = s.eval();
    for (index_t k = 0; k < n; ++k) {
      T product = turns.data()[i] < 0 ? T(-1) : T(1);
      for (index_t other = 0; other < n; ++other)
        if (other != k) product *= given(other);
      s(k) = product;
    }
  }
  return eval(matmul(p.u * p.s.unsqueeze(1), p.v));
}
/// One number for each matrix of x, in its leading axes.
template <class T, device D, int R>
auto for_each_matrix(const tensor<T, 1, D>& numbers, const extents<R>& x) {
  if constexpr (R == 2) return numbers.select(0, 0);
  else return numbers.reshape(leading(x).values);
}
/// The same with two axes of 1 behind.
template <class G>
auto as_matrices_of_one(const G& g) {
  return g.unsqueeze(rank_of<G>).unsqueeze(rank_of<G> + 1);
}

}  // namespace detail

/// The determinants of square matrices, (…,n,n) => (…), as torch.linalg.det; 1 of a matrix without elements. Runs at
/// once. Derivative: g times the cofactors, from the singular values, so that a singular matrix has one too. Errors and
/// devices as inverse, but for singular matrices.
///
///     tensor d = det(a);
template <class A>
  requires(detail::is_matrix<A>)
auto det(const A& a) {
  detail::check_square("det", a);
  return with_gradient(
      [](const auto& x) {
        return with_saved(detail::for_each_matrix(detail::determinants_of(detail::batch_of(x)), x.shape()), x);
      },
      [](const auto& g, const auto& x) {
        return detail::as_matrices_of_one(g) * detail::cofactors_of(detail::batch_of(x)).reshape(x.shape());
      },
      "det")(a);
}

/// Signs of determinants, and logarithms of their magnitudes.
///
///     const auto [sign, logabsdet] = slogdet(a);
template <class Sign, class Log>
struct sign_and_log {
  Sign sign;
  Log logabsdet;
};

/// The signs of determinants, -1, 0 or 1, and the logarithms of their magnitudes, which do not overflow as those may:
/// (…,n,n) => (…) each, as torch.linalg.slogdet. Runs at once. Derivative: of the logarithm, g a^-T; infinite or NaN
/// for a singular matrix. The sign has none. Errors and devices as det.
///
///     const auto [sign, logabsdet] = slogdet(a);
template <class A>
  requires(detail::is_matrix<A>)
auto slogdet(const A& a) {
  using T = element_of<A>;
  using D = device_of<A>;
  detail::check_square("slogdet", a);
  tensor<T, 1, D> sign;
  auto magnitude = with_gradient(
      [&sign](const auto& x) {
        const auto batch = detail::batch_of(x);
        sign = tensor<T, 1, D>::uninitialized({{batch.shape()[0]}});
        const auto logarithm = tensor<T, 1, D>::uninitialized(sign.shape());
        detail::log_determinants(batch, sign, logarithm);
        return with_saved(detail::for_each_matrix(logarithm, x.shape()), x);
      },
      [](const auto& g, const auto& x) {
        const auto y = detail::inverse_of("slogdet", detail::batch_of(x), false).reshape(x.shape());
        return detail::as_matrices_of_one(g) * y.transpose();
      },
      "slogdet")(a);
  return sign_and_log<decltype(detail::for_each_matrix(sign, a.shape())), decltype(magnitude)>{
      detail::for_each_matrix(sign, a.shape()), magnitude};
}

SINTER_MATRIX_REJECTIONS(inverse)
SINTER_MATRIX_REJECTIONS(det)
SINTER_MATRIX_REJECTIONS(slogdet)
template <class A, class B, class Problem = typename detail::equations_mistake<A, B>::problem,
          class Fix = typename detail::equations_mistake<A, B>::fix>
void solve(A&&, B&&) = delete;

}  // namespace sinter
