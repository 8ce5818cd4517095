// sinter/cpu/matmul.hpp: matrix products on the host.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/gemm.hpp"
#include "sinter/ops/matmul.hpp"

namespace sinter::cpu_impl {

using sinter::detail::matrix_ref;

/// c (+)= a b; c is dense along its rows.
template <class T>
void multiply(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate, const epilogue* e,
              thread_pool& pool) {
  gemm_args<T> args{};
  args.m = c.rows;
  args.n = c.columns;
  args.k = a.columns;
  args.a = static_cast<const T*>(a.data);
  args.a_row = a.row_stride;
  args.a_col = a.column_stride;
  args.b = static_cast<const T*>(b.data);
  args.b_row = b.row_stride;
  args.b_col = b.column_stride;
  args.c = static_cast<T*>(c.data);
  args.ldc = c.row_stride;
  args.accumulate = accumulate;
  args.after = tiles_of(e);
  const double m = static_cast<double>(c.rows), n = static_cast<double>(c.columns), k = static_cast<double>(a.columns);
  sinter::detail::count_work(m * n * k, (m * k + k * n + m * n) * static_cast<double>(sizeof(T)));
  gemm(args, pool);
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <int R, device D>
  requires is_cpu_v<D>
struct kernels<ops::matmul_op<R>, D> : product_kernels<R, D> {
  template <class T>
  static void multiply(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate,
                       const typename backend<D>::epilogue* after) {
    for (index_t i = 0; i < c.batches; ++i)
      cpu_impl::multiply<T>(a.of_batch<T>(i), b.of_batch<T>(i), c.of_batch<T>(i), accumulate, after,
                            backend<D>::pool());
  }
};

}  // namespace sinter::detail
