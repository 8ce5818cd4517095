// sinter/cpu/detail/gemm_kept.hpp: the product with weights that a prepared model keeps packed.
#pragma once

#include "sinter/cpu/detail/conv_product.hpp"
#include "sinter/cpu/detail/gemm_args.hpp"

namespace sinter::cpu_impl::detail {

/// C = [C +] A B, where a form of B is kept and the rows of A are contiguous: packing B is paid once. A product that
/// reads B once, as that with a vector, gains nothing.
template <class T>
struct kept_product {
  static bool suits(const gemm_args<T>& args) {
    return args.a_col == 1 && args.k > 0 && (args.b_row != 1 || args.m > 4) && sinter::detail::keeps_forms_of(args.b);
  }

  const gemm_args<T>& args;
  thread_pool& pool;

  void compute() {
    const weight_source<T> weights{args.b, {1, 1, 1}, {0, 0, 0}, args.k, args.b_row, args.n, args.b_col};
    const sinter::detail::form_of<packed_weights<T>> packed(weights.key(), weights, pool);
    const conv_axis one{1, 1, 1, 1, 1, 0}, rows{args.m, args.m, 1, 1, 1, 0}, axes[] = {one, one, rows};
    patches<T> left(conv_image<T>(args.a), 1, args.a_row, args.k, axes);
    const result_rows<T> to{args.c, 0, {0, 0, args.ldc}, args.ldc, 0};
    patch_product<T>(left, *packed, to, 0, args.accumulate, conv_finish<T>{nullptr, args.after}).compute(pool);
  }
};

}  // namespace sinter::cpu_impl::detail
