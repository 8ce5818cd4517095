// tests/cpu/eigen_test.cpp: tensors as Eigen matrices and back.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <Eigen/Core>

using namespace sinter;

TEST_CASE("as_eigen reads and writes the tensor's memory, strides included", "[eigen]") {
  const auto a = arange<float>(12).reshape({3, 4});
  CHECK(as_eigen(a)(2, 1) == 9);
  CHECK(as_eigen(a.transpose())(1, 2) == 9);
  CHECK(as_eigen(a.slice(1, 0, 4, 2))(2, 1) == 10);
  CHECK(as_eigen(a.flip(0))(0, 0) == 8);
  as_eigen(a.slice(1, 1, 3)).setConstant(-1);
  CHECK(a(2, 2) == -1);
  CHECK(a(2, 3) == 11);
  CHECK(as_eigen(a[1]).sum() == 4 - 1 - 1 + 7);
  const auto y = zeros<float>({3, 3});
  as_eigen(y) = as_eigen(a) * as_eigen(a).transpose();
  const tensor z = matmul(a, a.transpose());
  CHECK_FALSE(eval(any(y != z)).item());
}

TEST_CASE("from_eigen copies matrices of any storage order, blocks and vectors", "[eigen]") {
  Eigen::MatrixXd m(2, 3);
  m << 1, 2, 3, 4, 5, 6;
  const tensor t = from_eigen(m);
  static_assert(std::is_same_v<decltype(t), const tensor<double, 2>>);
  CHECK(t(1, 0) == 4);
  m(1, 0) = 0;
  CHECK(t(1, 0) == 4);
  CHECK(tensor(from_eigen(m.transpose() * 2))(2, 1) == 12);
  CHECK(tensor(from_eigen(m.block(0, 1, 2, 2)))(1, 1) == 6);
  const tensor v = from_eigen(Eigen::VectorXf(Eigen::VectorXf::LinSpaced(5, 0, 4)));
  static_assert(decltype(v)::rank == 1);
  CHECK(v(4) == 4);
  const tensor there = from_eigen<numa<0>>(m);
  static_assert(std::is_same_v<device_of<decltype(there)>, numa<0>>);
  CHECK(there(0, 2) == 3);
}
