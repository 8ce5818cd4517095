// sinter/linalg/plain.hpp: linear algebra of plain tensors, by Eigen.
#pragma once

#include <cmath>
#include <limits>

#include "sinter/linalg/matrices.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

namespace sinter::detail {

template <class T>
using row_major_matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using matrix_map = Eigen::Map<row_major_matrix<T>>;
/// Matrix i of a batch.
template <class T, device D>
matrix_map<T> matrix_at(const tensor<T, 3, D>& x, index_t i) {
  const index_t rows = x.shape()[1], columns = x.shape()[2];
  return {x.data() + i * rows * columns, rows, columns};
}
/// Line i of a batch.
template <class T, device D>
Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>> line_at(const tensor<T, 2, D>& x, index_t i) {
  return {x.data() + i * x.shape()[1], x.shape()[1]};
}

template <class T, device D>
tensor<T, 3, D> inverse_of(const char* op, const tensor<T, 3, D>& a, bool refuse_singular) {
  const auto y = tensor<T, 3, D>::uninitialized(a.shape());
  if (a.numel() == 0) return y;
  each_matrix<D>(op, a.shape()[0], "is singular", [&](index_t i) {
    const Eigen::PartialPivLU<row_major_matrix<T>> lu(matrix_at(a, i));
    if (refuse_singular && (lu.matrixLU().diagonal().array() == T(0)).any()) return false;
    matrix_at(y, i) = lu.inverse();
    return true;
  });
  return y;
}

/// x with a x = b.
template <class T, device D>
tensor<T, 3, D> solution_of(const char* op, const tensor<T, 3, D>& a, const tensor<T, 3, D>& b, bool refuse_singular) {
  const auto y = tensor<T, 3, D>::uninitialized(b.shape());
  if (b.numel() == 0) return y;
  each_matrix<D>(op, a.shape()[0], "is singular", [&](index_t i) {
    const Eigen::PartialPivLU<row_major_matrix<T>> lu(matrix_at(a, i));
    if (refuse_singular && (lu.matrixLU().diagonal().array() == T(0)).any()) return false;
    matrix_at(y, i) = lu.solve(matrix_at(b, i));
    return true;
  });
  return y;
}

/// Signs of determinants, -1, 0 or 1, and logarithms of their magnitudes.
template <class T, device D>
void log_determinants(const tensor<T, 3, D>& a, const tensor<T, 1, D>& sign, const tensor<T, 1, D>& log_magnitude) {
  each_matrix<D>("slogdet", a.shape()[0], "", [&](index_t i) {
    T s = 1, sum = 0;
    if (a.shape()[1] > 0) {
      const Eigen::PartialPivLU<row_major_matrix<T>> lu(matrix_at(a, i));
      s = static_cast<T>(lu.permutationP().determinant());
      for (index_t k = 0; k < a.shape()[1]; ++k) {
        const T d = lu.matrixLU()(k, k);
        s *= d > 0 ? T(1) : d < 0 ? T(-1) : d;
        sum += std::log(std::abs(d));
      }
    }
    sign.data()[i] = s;
    log_magnitude.data()[i] = sum;
    return true;
  });
}
template <class T, device D>
tensor<T, 1, D> determinants_of(const tensor<T, 3, D>& a) {
  const auto y = tensor<T, 1, D>::uninitialized({{a.shape()[0]}});
  each_matrix<D>("det", a.shape()[0], "", [&](index_t i) {
    y.data()[i] = a.shape()[1] == 0 ? T(1) : Eigen::PartialPivLU<row_major_matrix<T>>(matrix_at(a, i)).determinant();
    return true;
  });
  return y;
}

/// a = u diag(s) v, s not rising.
template <class T, device D>
struct singular_parts {
  tensor<T, 3, D> u;
  tensor<T, 2, D> s;
  tensor<T, 3, D> v;
};
template <class T, device D>
singular_parts<T, D> singular_parts_of(const char* op, const tensor<T, 3, D>& a, bool with_vectors = true) {
  const index_t count = a.shape()[0], m = a.shape()[1], n = a.shape()[2], k = m < n ? m : n;
  singular_parts<T, D> p;
  p.s = tensor<T, 2, D>::uninitialized({{count, k}});
  if (with_vectors) {
    p.u = tensor<T, 3, D>::uninitialized({{count, m, k}});
    p.v = tensor<T, 3, D>::uninitialized({{count, k, n}});
  }
  if (k == 0) return p;
  const unsigned what = with_vectors ? Eigen::ComputeThinU | Eigen::ComputeThinV : 0U;
  each_matrix<D>(op, count, "has elements that are infinite or NaN", [&](index_t i) {
    if (!matrix_at(a, i).allFinite()) return false;
    const Eigen::BDCSVD<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>> svd(matrix_at(a, i), what);
    line_at(p.s, i) = svd.singularValues();
    if (with_vectors) {
      matrix_at(p.u, i) = svd.matrixU();
      matrix_at(p.v, i) = svd.matrixV().transpose();
    }
    return true;
  });
  return p;
}

/// V diag(1 / s) U^T, without singular values of at most `smallest` times the largest.
template <class T, device D>
tensor<T, 3, D> pseudo_inverse_of(const char* op, const tensor<T, 3, D>& a, double smallest) {
  const auto p = singular_parts_of(op, a);
  for (index_t i = 0; i < p.s.shape()[0]; ++i) {
    auto s = line_at(p.s, i);
    const T least = s.size() > 0 ? static_cast<T>(smallest) * s(0) : T(0);
    for (index_t k = 0; k < s.size(); ++k) s(k) = s(k) > least ? 1 / s(k) : T(0);
  }
  return eval(matmul(p.v.transpose() * p.s.unsqueeze(1), p.u.transpose()));
}
template <class T>
double smallest_singular(index_t rows, index_t columns) {
  return static_cast<double>(rows > columns ? rows : columns) * static_cast<double>(std::numeric_limits<T>::epsilon());
}

}  // namespace sinter::detail
