// sinter/cpu/detail/gemm_kept.hpp: the product with weights that a prepared model keeps packed.
#pragma once

#include "sinter/cpu/detail/conv_product.hpp"
#include "sinter/cpu/detail/gemm_args.hpp"
#include "sinter/cpu/detail/int8_dots.hpp"

namespace sinter::cpu_impl::detail {

/// C = [C +] A B, where a form of B is kept and the rows of A are contiguous: packing B is paid once. A product that
/// reads B once, as that with a vector, gains nothing unless B is rounded.
template <class T>
struct kept_product {
  const gemm_args<T>& args;
  thread_pool& pool;

  /// Computes the product; false where it is not of this kind.
  bool compute() {
    if (args.a_col != 1 || args.k <= 0) return false;
    const sinter::detail::weight_forms* const kept = sinter::detail::forms_of(args.b);
    if (kept == nullptr) return false;
    const weight_source<T> weights{args.b, {1, 1, 1}, {0, 0, 0}, args.k, args.b_row, args.n, args.b_col};
    const conv_finish<T> finish{nullptr, args.after};
    if constexpr (rounds_weights<T>) {
      if (are_rounded(kept)) {
        if (int8_dot_product<T>::suits(args.k, kept)) {
          const sinter::detail::form_of<int8_dot_weights<T>> numbers(weights.key(), weights, pool);
          int8_dot_product<T>{args.a, args.m, args.a_row, *numbers, args.c, args.ldc, args.accumulate, finish}.compute(
              pool);
          return true;
        }
        const sinter::detail::form_of<int8_weights<T>> rounded(weights.key(), weights, pool);
        if (args.m <= int8_few_rows<T>::most_rows)
          int8_few_rows<T>{args.a, args.m, args.a_row, *rounded, args.c, args.ldc, args.accumulate, finish}.compute(
              pool);
        else multiply(weight_strips<T>(*rounded), finish);
        return true;
      }
    }
    if (args.b_row == 1 && args.m <= 4) return false;
    const sinter::detail::form_of<packed_weights<T>> packed(weights.key(), weights, pool);
    multiply(*packed, finish);
    return true;
  }

 private:
  void multiply(const weight_strips<T>& b, const conv_finish<T>& finish) {
    const conv_axis one{1, 1, 1, 1, 1, 0}, rows{args.m, args.m, 1, 1, 1, 0}, axes[] = {one, one, rows};
    patches<T> left(conv_image<T>(args.a), 1, args.a_row, args.k, axes);
    const result_rows<T> to{args.c, 0, {0, 0, args.ldc}, args.ldc, 0};
    patch_product<T>(left, b, to, 0, args.accumulate, finish).compute(pool);
  }
};

}  // namespace sinter::cpu_impl::detail
