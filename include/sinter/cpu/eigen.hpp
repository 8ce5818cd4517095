// sinter/cpu/eigen.hpp: Eigen matrices from tensors, and tensors from Eigen matrices, on the same memory.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/math/packet_eigen.hpp"

namespace sinter {

template <class T>
using eigen_matrix_map = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0,
                                    Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
template <class T>
using eigen_vector_map = Eigen::Map<Eigen::Matrix<T, Eigen::Dynamic, 1>, 0, Eigen::InnerStride<Eigen::Dynamic>>;

/// An Eigen matrix (rank 2) or vector (rank 1) that reads and writes the tensor's memory, strides included. The tensor
/// must outlive it. A file that calls it includes <Eigen/Core>.
///
///     as_eigen(y) = as_eigen(a) * as_eigen(b);
template <class T, auto Shape, device D>
  requires(is_cpu_v<D> && Shape == 2)
eigen_matrix_map<T> as_eigen(const tensor<T, Shape, D>& t) {
  return {t.data(), t.shape()[0], t.shape()[1],
          Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(t.strides()[0], t.strides()[1])};
}
template <class T, auto Shape, device D>
  requires(is_cpu_v<D> && Shape == 1)
eigen_vector_map<T> as_eigen(const tensor<T, Shape, D>& t) {
  return {t.data(), t.shape()[0], Eigen::InnerStride<Eigen::Dynamic>(t.strides()[0])};
}

/// A new tensor with the values of an Eigen expression (include <Eigen/Core>): rank 1 for column vectors of fixed
/// width, otherwise rank 2.
///
///     tensor x = from_eigen(Eigen::MatrixXf::Random(3, 4));
template <device D = cpu, class Derived>
auto from_eigen(const Eigen::DenseBase<Derived>& m) {
  using T = typename Derived::Scalar;
  if constexpr (Derived::ColsAtCompileTime == 1) {
    const auto t = tensor<T, 1, cpu>::uninitialized({{m.rows()}});
    as_eigen(t) = m.derived();
    return t.template to<D>();
  } else {
    const auto t = tensor<T, 2, cpu>::uninitialized({{m.rows(), m.cols()}});
    as_eigen(t) = m.derived();
    return t.template to<D>();
  }
}

}  // namespace sinter
