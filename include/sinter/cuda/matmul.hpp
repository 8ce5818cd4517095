// sinter/cuda/matmul.hpp: matrix products on GPUs, with the tail of a statement where a BLAS takes it.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/matmul.hpp"

namespace sinter::detail {

template <int R, device D>
  requires is_cuda_v<D>
struct kernels<ops::matmul_op<R>, D> : product_kernels<R, D> {
  using epilogue = typename backend<D>::epilogue;

  template <class T>
  static void multiply(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate,
                       const epilogue* e) {
    if (e != nullptr && ((c.rows * c.columns > 0 && multiply_with_tail<T>(a, b, c, accumulate, *e)) || e->must_keep))
      return;
    cuda_impl::multiply<T, D>(a, b, c, accumulate);
    if (e != nullptr) e->run();
  }

 private:
  template <class T>
  static bool multiply_with_tail(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate,
                                 const epilogue& e) {
    using cuda_impl::product_tail;
    product_tail tail = e.tail(c.columns);
    if (tail.empty()) return false;
    if (e.kept != nullptr && tail.act != product_tail::activation::none) {
      const storage_ptr kept = device_runtime<D>::allocate(tail.kept_bytes(c.rows, c.columns, sizeof(T)));
      tail.kept = kept->data;
      if (cuda_impl::multiply_by_blas<T, D>(a, b, c, accumulate, tail)) {
        *e.kept = kept;
        return true;
      }
      tail.kept = nullptr;
    }
    return !e.must_keep && cuda_impl::multiply_by_blas<T, D>(a, b, c, accumulate, tail);
  }
};

}  // namespace sinter::detail
