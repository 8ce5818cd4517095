// sinter/cpu/gemm.hpp: the matrix product of the host devices, with an epilogue applied to tiles still in cache.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sinter/core/types.hpp"
#include "sinter/core/weight_forms.hpp"
#include "sinter/cpu/detail/gemm_args.hpp"
#include "sinter/cpu/detail/gemm_dots.hpp"
#include "sinter/cpu/detail/gemm_in_place.hpp"
#include "sinter/cpu/detail/gemm_narrow.hpp"
#include "sinter/cpu/detail/gemm_packed.hpp"
#include "sinter/cpu/threads.hpp"

namespace sinter::cpu_impl {

namespace detail {

// Integers wrap: their products are taken modulo 2^32 or 2^64.
template <class T>
void product_of_any_type(const gemm_args<T>& args, thread_pool& pool) {
  using word = std::conditional_t<floating_element<T>, compute_type<T>,
                                  std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>>;
  run_tasks(args, pool, args.m, [&args](index_t i) {
    T* const row = args.c + i * args.ldc;
    for (index_t j = 0; j < args.n; ++j) {
      word sum = args.accumulate ? static_cast<word>(row[j]) : word(0);
      for (index_t p = 0; p < args.k; ++p)
        sum += static_cast<word>(args.a[i * args.a_row + p * args.a_col]) *
               static_cast<word>(args.b[p * args.b_row + j * args.b_col]);
      row[j] = static_cast<T>(sum);
    }
    args.after(i, i + 1, 0, args.n);
  });
}

}  // namespace detail

/// Computes the product on the threads of `pool`. Every bit of the result is the same for any number of threads: how k
/// is cut into blocks follows from the shape and strides alone, an element of C is one chain of multiply-adds over
/// rising k within a block, whatever tile it lies in, and the blocks are added in order. With very few rows or columns
/// it is a chain for each lane. The weights of a prepared model are packed once; the sums are then those of a
/// convolution.
template <class T>
void gemm(const gemm_args<T>& args, thread_pool& pool) {
  if (args.m <= 0 || args.n <= 0) return;
  if constexpr (narrow_element<T>) {
    if (args.k > 0) return detail::narrow_product<T>{args, pool}.compute();
  } else if constexpr (floating_element<T>) {
    if (const auto* const kept = sinter::detail::forms_of(args.b);
        kept != nullptr && kept->kernels().product(&args, &pool, std::is_same_v<T, double>))
      return;
    using dots = detail::dot_product<T>;
    if (dots::suits(args.n, args.k, args.a_col)) return dots{args, pool, false}.compute();
    if (dots::suits(args.m, args.k, args.b_row)) return dots{args, pool, true}.compute();
    using in_place = detail::in_place_product<T>;
    if (in_place::suits(args.n, args.k, args.a_col, in_place::few_columns))
      return in_place(args, pool, false).compute();
    if (in_place::suits(args.m, args.k, args.b_row, in_place::few_rows(args.k)))
      return in_place(args, pool, true).compute();
    if (args.k > 0) return detail::packed_product<T>{args, pool}.compute();
  }
  detail::product_of_any_type(args, pool);
}

}  // namespace sinter::cpu_impl
