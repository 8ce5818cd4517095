// tests/docs/from_eigen_test.cpp: the snippets of docs/from-eigen.md, and its two columns side by side.
#include <Eigen/Core>
#include <Eigen/LU>

#include <sinter/linalg.hpp>
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class E, class M>
bool same(const E& x, const Eigen::DenseBase<M>& y) {
  const matrix m = y;
  const tensor t = x.reshape({m.rows(), m.cols()});
  return allclose(t, from_data(std::vector<float>(m.data(), m.data() + m.size()), {m.rows(), m.cols()}));
}

}  // namespace

TEST_CASE("from Eigen: matrices come in and go out") {
  // [docs:in]
  // #include <Eigen/Core>
  Eigen::MatrixXf m = Eigen::MatrixXf::Random(3, 4);
  tensor<float, 2> x = from_eigen(m);                // copies, into row-major order
  tensor y = relu(x) * 2;                            // one pass
  Eigen::MatrixXf back = as_eigen(y);                // an Eigen::Map, strides included: here it copies
  as_eigen(y).row(0) = Eigen::RowVectorXf::Ones(4);  // writes into y
  // [docs:end]
  CHECK(back(1, 2) == std::max(0.f, m(1, 2)) * 2);
  CHECK(y(0, 3) == 1);
}

TEST_CASE("from Eigen: the left column is the right one") {
  generator gen(1);
  const tensor x = randn(gen, {3, 4});
  const tensor y = randn(gen, {3, 4});
  const tensor square = randn(gen, {3, 3});
  const auto a = as_eigen(x);
  const auto b = as_eigen(y);
  const auto s = as_eigen(square);
  CHECK(same(x * y, a.cwiseProduct(b)));
  CHECK(same(eval(x * y), (a.array() * b.array()).matrix()));
  CHECK(same(eval(matmul(x, y.transpose())), a * b.transpose()));
  CHECK(same(eval(sum(x, 0)).reshape({1, 4}), a.colwise().sum()));
  CHECK(same(eval(mean(x, 1)).reshape({3, 1}), a.rowwise().mean()));
  CHECK(same(eval(x - mean(x, 1, keepdim)), a.colwise() - a.rowwise().mean()));
  CHECK(same(eval(where(x > 0, x, y)), (a.array() > 0).select(a, b)));
  CHECK(same(eval(clamp(x, -1, 1)), a.cwiseMax(-1.f).cwiseMin(1.f)));
  CHECK(same(x.slice(0, 1, 3).slice(1, 0, 2), a.block(1, 0, 2, 2)));
  CHECK(same(x.select(1, 2).reshape({3, 1}), a.col(2)));
  CHECK(same(inverse(square), s.inverse()));
  CHECK(same(diagonal(square).reshape({3, 1}), s.diagonal()));
  CHECK(same(tril(square), matrix(s.triangularView<Eigen::Lower>())));
  CHECK(same(x.transpose().reshape({2, 6}), matrix(a.transpose()).reshaped<Eigen::RowMajor>(2, 6)));
  CHECK(norm(x).item() == Approx(a.norm()));
  CHECK(all(x == x).item() == (a.array() == a.array()).all());
}
