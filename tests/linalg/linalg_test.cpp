// tests/linalg/linalg_test.cpp: inverses, equations, determinants and decompositions of matrices.
#include "../grad/differences.hpp"

#include <limits>

#include <sinter/linalg.hpp>

#include "../catch.hpp"

using namespace sinter;

namespace {

template <class A, class B>
void check_close(const A& got, const B& expected, double tolerance = 1e-11) {
  const auto a = eval(cast<double>(got)), b = eval(cast<double>(expected));
  REQUIRE(a.shape() == b.shape());
  if (a.numel() > 0) CHECK(eval(max(abs(a - b))).item() < tolerance);
}
tensor<double, 2> identity(index_t n) { return eye<double>(n); }

/// Random matrices, which are regular.
template <std::size_t R>
auto matrices(const index_t (&shape)[R], unsigned seed = 1) {
  std::mt19937 gen(seed);
  return differences::random(gen, shape);
}
/// The symmetric part of x.
const auto symmetric = [](const auto& x) { return eval((x + x.transpose()) * 0.5); };

const double infinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("inverse and solve undo products") {
  const auto a = matrices({2, 3, 4, 4}), b = matrices({2, 3, 4, 2}, 2);
  const auto vectors = matrices({2, 3, 4}, 3);
  check_close(matmul(a, inverse(a)), eval(identity(4) + zeros<double>({2, 3, 4, 4})));
  check_close(matmul(a, solve(a, b)), b);
  check_close(matmul(a, solve(a, vectors).unsqueeze(3)), vectors.unsqueeze(3));
  check_close(solve(a[0][0], vectors[0][0]), matmul(inverse(a[0][0]), vectors[0][0]));
  check_close(solve(a, b.slice(0, 0, 1)), matmul(inverse(a), b.slice(0, 0, 1)));  // batches broadcast
  check_close(inverse(a.transpose()), inverse(a).transpose());
  check_close(inverse(a * 2), inverse(a) / 2);
  CHECK(inverse(tensor<float, 2>{{4}})(0, 0) == 0.25F);
  CHECK(inverse(zeros<double>({2, 0, 0})).shape() == extents<3>{{2, 0, 0}});
  CHECK(solve(zeros<double>({2, 0, 0}), zeros<double>({2, 0, 3})).shape() == extents<3>{{2, 0, 3}});
  CHECK(inverse(zeros<double>({0, 3, 3})).shape() == extents<3>{{0, 3, 3}});
  differences::check([](const auto& x) { return inverse(x); }, 8, a[0]);
  differences::check([](const auto& x, const auto& y) { return solve(x, y); }, 8, a[0], b[0]);
  differences::check([](const auto& x, const auto& y) { return solve(x, y); }, 8, a[0][0], vectors[0][0]);
}

TEST_CASE("linear algebra refuses matrices that it cannot take") {
  const tensor<double, 2> singular = {{1, 2}, {2, 4}}, wide = {{1, 2, 3}, {4, 5, 6}}, wild = {{1, infinity}, {0, 1}};
  const tensor<double, 3> batch = {{{1, 0}, {0, 1}}, {{0, 0}, {0, 1}}};
  CHECK_THROWS_WITH(inverse(singular), "inverse: the matrix is singular");
  CHECK_THROWS_WITH(inverse(batch), "inverse: matrix 1 of the batch is singular");
  CHECK_THROWS_WITH(solve(singular, singular), "solve: the matrix is singular");
  CHECK_THROWS_WITH(inverse(wide), "inverse: shape (2, 3); its last two extents must be equal");
  CHECK_THROWS_WITH(
      solve(singular, tensor<double, 1>{1, 2, 3}),
      "solve: matrices of shape (2, 2) and right sides of shape (3, 1) do not fit: they must have as many "
      "rows");
  CHECK_THROWS_WITH(
      lstsq(wide, tensor<double, 1>{1, 2, 3}),
      "lstsq: matrices of shape (2, 3) and right sides of shape (3, 1) do not fit: they must have as many "
      "rows");
  CHECK_THROWS_AS(det(wide), shape_error);
  CHECK_THROWS_AS(eigh(wide), shape_error);
  CHECK_THROWS_WITH(cholesky(-identity(2)), "cholesky: the matrix is not positive definite");
  CHECK_THROWS_WITH(svdvals(wild), "svdvals: the matrix has elements that are infinite or NaN");
  CHECK_THROWS_AS(svd(wild), value_error);
  CHECK_THROWS_AS(eigh(wild.transpose()), value_error);
  CHECK(eigvalsh(wild)(0) == 1);  // the upper triangle is not read
}

TEST_CASE("det and slogdet") {
  const tensor<double, 2> a = {{0, 2}, {3, 1}};
  CHECK(det(a).item() == Approx(-6));
  const auto [sign, logarithm] = slogdet(a);
  CHECK((sign.item() == -1 && logarithm.item() == Approx(std::log(6.0))));
  const auto many = matrices({3, 2, 5, 5});
  const auto [signs, logarithms] = slogdet(many);
  check_close(signs * exp(logarithms), det(many));
  check_close(det(many.transpose()), det(many));
  CHECK(slogdet(identity(300) * 1e-3).logabsdet.item() == Approx(300 * std::log(1e-3)));  // 1e-900 is no double
  CHECK(slogdet(zeros<double>({2, 2})).sign.item() == 0);
  CHECK(slogdet(zeros<double>({2, 2})).logabsdet.item() == -infinity);
  CHECK(det(zeros<double>({2, 0, 0}))(1) == 1);
  CHECK(slogdet(zeros<double>({0, 0})).logabsdet.item() == 0);
  differences::check([](const auto& x) { return det(x); }, 12, many[0]);
  differences::check([](const auto& x) { return slogdet(x).logabsdet; }, 12, many[0]);
  // A singular matrix has a derivative, too: the cofactors.
  const variable<double, 2> v = tensor<double, 2>{{1, 2}, {2, 4}};
  det(v).backward();
  check_close(v.grad(), tensor<double, 2>{{4, -2}, {-2, 1}});
}

TEST_CASE("cholesky") {
  const auto x = matrices({2, 4, 4});
  const auto positive = [](const auto& m) { return eval(matmul(m, m.transpose()) + identity(4)); };
  const auto a = positive(x);
  const tensor l = cholesky(a);
  check_close(matmul(l, l.transpose()), a);
  check_close(triu(l, 1), zeros<double>({2, 4, 4}));
  CHECK(cholesky(zeros<double>({2, 0, 0})).shape() == extents<3>{{2, 0, 0}});
  differences::check([&](const auto& m) { return cholesky(positive(m)); }, 16, x);
}

TEST_CASE("qr of tall and of wide matrices") {
  for (const auto& a : {matrices({2, 5, 3}), matrices({2, 3, 3}), matrices({2, 3, 5}), matrices({1, 1, 4})}) {
    const auto [q, r] = qr(a);
    const index_t k = std::min(a.shape()[1], a.shape()[2]);
    check_close(matmul(q, r), a);
    check_close(matmul(q.transpose(), q), eval(identity(k) + zeros<double>({a.shape()[0], k, k})));
    check_close(tril(r, -1), zeros<double>(r.shape()));
    differences::check([](const auto& x) { return qr(x).q; }, 12, a);
    differences::check([](const auto& x) { return qr(x).r; }, 12, a);
    differences::check(
        [](const auto& x) {
          const auto [p, s] = qr(x);
          return eval(sin(matmul(p * 2, s * s)));
        },
        12, a);
  }
  CHECK(qr(zeros<double>({3, 0})).q.shape() == extents<2>{{3, 0}});
}

TEST_CASE("svd of tall and of wide matrices") {
  for (const auto& a : {matrices({2, 5, 3}), matrices({2, 3, 3}), matrices({2, 3, 5}), matrices({2, 1, 4})}) {
    const auto [u, s, vh] = svd(a);
    const index_t k = s.shape()[1];
    check_close(matmul(eval(u * s.unsqueeze(1)), vh), a);
    check_close(matmul(u.transpose(), u), eval(identity(k) + zeros<double>({2, k, k})));
    check_close(matmul(vh, vh.transpose()), eval(identity(k) + zeros<double>({2, k, k})));
    for (index_t i = 1; i < k; ++i) CHECK(s(1, i) <= s(1, i - 1));
    check_close(svdvals(a), s);
    differences::check([](const auto& x) { return svdvals(x); }, 12, a);
    differences::check([](const auto& x) { return svd(x).s; }, 12, a);
    // Without the signs of vectors.
    differences::check(
        [](const auto& x) {
          const auto p = svd(x);
          return eval(p.u * p.u + eval(sum(p.s, 1)).unsqueeze(1).unsqueeze(1));
        },
        12, a);
    differences::check(
        [](const auto& x) {
          const auto p = svd(x);
          return eval(p.vh * p.vh);
        },
        12, a);
    differences::check(
        [](const auto& x) {
          const auto p = svd(x);
          return matmul(eval(p.u * eval(sin(p.s)).unsqueeze(1)), p.vh);
        },
        12, a);
  }
  // Equal singular values do no harm where only they are used.
  const variable<double, 2> one = identity(2);
  sum(svd(one).s).backward();
  check_close(one.grad(), identity(2));
  CHECK(svd(zeros<double>({2, 0})).vh.shape() == extents<2>{{0, 0}});
}

TEST_CASE("eigh of symmetric matrices") {
  const auto x = matrices({2, 4, 4});
  const auto a = symmetric(x);
  const auto [w, v] = eigh(a);
  check_close(matmul(a, v), eval(v * w.unsqueeze(1)));
  check_close(matmul(v.transpose(), v), eval(identity(4) + zeros<double>({2, 4, 4})));
  for (index_t i = 1; i < 4; ++i) CHECK(w(1, i) >= w(1, i - 1));
  check_close(eigvalsh(a), w);
  check_close(eigvalsh(tril(a)), w);
  differences::check([](const auto& m) { return eigvalsh(symmetric(m)); }, 12, x);
  differences::check([](const auto& m) { return eigh(symmetric(m)).eigenvalues; }, 12, x);
  differences::check(
      [](const auto& m) {
        const auto p = eigh(symmetric(m));
        return eval(p.eigenvectors * p.eigenvectors);
      },
      12, x);
  differences::check(
      [](const auto& m) {
        const auto p = eigh(symmetric(m));
        return matmul(eval(p.eigenvectors * eval(sin(p.eigenvalues)).unsqueeze(1)), p.eigenvectors.transpose());
      },
      12, x);
}

TEST_CASE("pinv and lstsq of matrices of any shape") {
  for (const auto& a : {matrices({2, 5, 3}), matrices({2, 3, 3}), matrices({2, 3, 5})}) {
    const auto y = pinv(a);
    check_close(matmul(eval(matmul(a, y)), a), a);
    check_close(matmul(eval(matmul(y, a)), y), y);
    check_close(matmul(a, y), eval(matmul(a, y)).transpose());
    const auto b = matrices({2, a.shape()[1], 2}, 5);
    check_close(lstsq(a, b), matmul(y, b));
    check_close(lstsq(a[0], b[0].select(1, 0)), matmul(y[0], b[0].select(1, 0)));
    differences::check([](const auto& x) { return pinv(x); }, 12, a);
    differences::check([](const auto& p, const auto& q) { return lstsq(p, q); }, 12, a, b);
  }
  const tensor<double, 2> singular = {{1, 2}, {2, 4}};
  check_close(pinv(singular), singular / 25);
  check_close(lstsq(singular, tensor<double, 1>{1, 2}), tensor<double, 1>{0.2, 0.4});
  check_close(pinv(tensor<double, 2>{{2, 0}, {0, 0.1}}, 0.2), tensor<double, 2>{{0.5, 0}, {0, 0}});
  CHECK(pinv(zeros<double>({2, 0})).shape() == extents<2>{{0, 2}});
}

TEST_CASE("norms of singular values") {
  const tensor<double, 2> a = {{3, 0}, {0, -4}};
  CHECK(matrix_norm(a, singular_norm::nuclear).item() == Approx(7));
  CHECK(matrix_norm(a, singular_norm::largest).item() == Approx(4));
  CHECK(matrix_norm(a, singular_norm::smallest).item() == Approx(3));
  const auto x = matrices({2, 3, 4});
  const tensor n = matrix_norm(x, singular_norm::nuclear, {-1, 0}, keepdim);
  CHECK(n.shape() == extents<3>{{1, 3, 1}});
  CHECK(n(0, 1, 0) == Approx(sum(svdvals(x.select(1, 1))).item()));
  differences::check([](const auto& m) { return matrix_norm(m, singular_norm::largest, {0, 2}); }, 12, x);
  CHECK_THROWS_WITH(matrix_norm(x, singular_norm::largest, {1, -2}), "matrix_norm: axis 1 is named twice");
}

// A piece of docs/linear-algebra.md.
TEST_CASE("decompositions come apart") {
  std::mt19937 gen(1);
  const auto x = differences::random(gen, {6, 3});
  const auto y = differences::random(gen, {6});
  // [docs:parts]
  const auto [u, s, vh] = svd(x);  // (6,3) => (6,3), (3) and (3,3)
  const auto [values, vectors] = eigh(matmul(x.transpose(), x));
  const tensor fit = lstsq(x, y);  // (3): the x fit that is nearest to y
  // [docs:end]
  check_close(values.flip(0), square(s), 1e-10);
  check_close(matmul(x.transpose(), eval(y - matmul(x, fit))), zeros<double>({3}));
  CHECK((u.shape() == x.shape() && vh.shape() == vectors.shape()));
}

TEST_CASE("a Gaussian process in a few lines") {
  const tensor<double, 1> at = linspace<double>(0, 3, 7), y = eval(sin(at));
  // [docs:gaussian]
  const variable<double, 0> width = sum(full<double>({1}, 1.3));
  const auto kernel = [&](const auto& p, const auto& q) {
    return exp(-square(p.unsqueeze(1) - q.unsqueeze(0)) / (2 * square(width)));
  };
  const variable l = cholesky(kernel(at, at) + 1e-4 * eye<double>(7));
  const variable weights = solve(l, y);
  variable loss = 0.5 * sum(square(weights)) + sum(log(diagonal(l)));  // - ln of the likelihood of y
  loss.backward();
  // [docs:end]
  CHECK(std::isfinite(width.grad().item()));
}
