// sinter/cpu/variants.hpp: the kernels that sinter::compiled holds for several sets of vector instructions.
#pragma once

#include "sinter/cpu/convolution.hpp"
#include "sinter/cpu/cross_entropy.hpp"
#include "sinter/cpu/gemm.hpp"
#include "sinter/cpu/kept_products.hpp"
#include "sinter/cpu/moments.hpp"
#include "sinter/cpu/pooling.hpp"
#include "sinter/cpu/reduce.hpp"

// Kernels of the element type T: KERNEL(T, name, parameters, arguments).
#define SINTER_VARIANT_KERNELS(KERNEL, T)                                                                             \
  SINTER_VARIANT_PRODUCT(KERNEL, T)                                                                                   \
  KERNEL(T, conv_forward,                                                                                             \
         (const conv_shape& s, const conv_image<T>& x, const T* w, const conv_weight_strides& w_strides, T* y,        \
          bool add, const conv_finish<T>& finish, thread_pool& pool),                                                 \
         (s, x, w, w_strides, y, add, finish, pool))                                                                  \
  KERNEL(T, conv_backward_data,                                                                                       \
         (const conv_shape& s, const T* dy, const T* w, const conv_weight_strides& w_strides, T* dx, bool add,        \
          const conv_finish<T>& finish, thread_pool& pool),                                                           \
         (s, dy, w, w_strides, dx, add, finish, pool))                                                                \
  KERNEL(T, conv_backward_weights,                                                                                    \
         (const conv_shape& s, const conv_image<T>& x, const T* dy, T* dw, const conv_weight_strides& w_strides,      \
          T* db, bool add, thread_pool& pool),                                                                        \
         (s, x, dy, dw, w_strides, db, add, pool))                                                                    \
  KERNEL(T, max_pool,                                                                                                 \
         (const ops::pool_extents& e, const T* x, T* y, const place_memory& places, const tile_epilogue& after,       \
          thread_pool& pool),                                                                                         \
         (e, x, y, places, after, pool))                                                                              \
  KERNEL(T, max_pool_gradient,                                                                                        \
         (const ops::pool_extents& e, const T* g, const place_memory& places, T* dx, bool add, thread_pool& pool),    \
         (e, g, places, dx, add, pool))                                                                               \
  KERNEL(T, avg_pool,                                                                                                 \
         (const ops::pool_extents& e, const ops::pool_divisor& divisor, const T* x, T* y, const tile_epilogue& after, \
          thread_pool& pool),                                                                                         \
         (e, divisor, x, y, after, pool))                                                                             \
  KERNEL(                                                                                                             \
      T, avg_pool_gradient,                                                                                           \
      (const ops::pool_extents& e, const ops::pool_divisor& divisor, const T* g, T* dx, bool add, thread_pool& pool), \
      (e, divisor, g, dx, add, pool))                                                                                 \
  KERNEL(T, moments_of_columns, (const T* x, index_t rows, index_t columns, T* mean, T* variance, thread_pool& pool), \
         (x, rows, columns, mean, variance, pool))                                                                    \
  KERNEL(T, run_cross_entropy,                                                                                        \
         (const loop& l, bool is_leaf, const std::int64_t* labels, T* loss, T* lse, index_t rows, index_t n,          \
          thread_pool& pool),                                                                                         \
         (l, is_leaf, labels, loss, lse, rows, n, pool))                                                              \
  KERNEL(T, reverse_cross_entropy,                                                                                    \
         (const loop& l, bool is_leaf, const std::int64_t* labels, const T* lse, const T* g, T* dx, index_t rows,     \
          index_t n, bool add, thread_pool& pool),                                                                    \
         (l, is_leaf, labels, lse, g, dx, rows, n, add, pool))                                                        \
  SINTER_VARIANT_REDUCTION(KERNEL, T, sum_reducer, T)                                                                 \
  SINTER_VARIANT_REDUCTION(KERNEL, T, mean_reducer, T)                                                                \
  SINTER_VARIANT_REDUCTION(KERNEL, T, norm_reducer, T)                                                                \
  SINTER_VARIANT_REDUCTION(KERNEL, T, prod_reducer, T)                                                                \
  SINTER_VARIANT_REDUCTION(KERNEL, T, logsumexp_reducer, T)                                                           \
  SINTER_VARIANT_REDUCTION(KERNEL, T, max_reducer, T)                                                                 \
  SINTER_VARIANT_REDUCTION(KERNEL, T, min_reducer, T)                                                                 \
  SINTER_VARIANT_REDUCTION(KERNEL, T, argmax_reducer, std::int64_t)                                                   \
  SINTER_VARIANT_REDUCTION(KERNEL, T, argmin_reducer, std::int64_t)

#define SINTER_VARIANT_REDUCTION(KERNEL, T, reducer, result)                                                        \
  KERNEL(T, reduce,                                                                                                 \
         (sinter::detail::reducer<T> r, bool is_leaf, loop& l, const bool* reduced, result* out, thread_pool& pool, \
          const epilogue* after),                                                                                   \
         (r, is_leaf, l, reduced, out, pool, after))
#define SINTER_VARIANT_KEPT(KERNEL, T) \
  KERNEL(T, multiply_kept, (const gemm_args<T>& args, thread_pool& pool, bool& done), (args, pool, done))
#define SINTER_VARIANT_ROUNDED(KERNEL, T) \
  KERNEL(T, convolve_rounded, (const detail::group_call<T>& call, thread_pool& pool), (call, pool))
#define SINTER_VARIANT_PRODUCT(KERNEL, T) KERNEL(T, gemm, (const gemm_args<T>& args, thread_pool& pool), (args, pool))

// All of them.
#define SINTER_VARIANTS(KERNEL)          \
  SINTER_VARIANT_KERNELS(KERNEL, float)  \
  SINTER_VARIANT_KERNELS(KERNEL, double) \
  SINTER_VARIANT_KEPT(KERNEL, float)     \
  SINTER_VARIANT_KEPT(KERNEL, double)    \
  SINTER_VARIANT_ROUNDED(KERNEL, float)  \
  SINTER_VARIANT_PRODUCT(KERNEL, half)   \
  SINTER_VARIANT_PRODUCT(KERNEL, bfloat16)

namespace sinter::cpu_impl {

// The functions of src/kernels.cpp, which choose.
namespace variants {
#define SINTER_DECLARED(T, name, parameters, arguments) void name parameters;
SINTER_VARIANTS(SINTER_DECLARED)
#undef SINTER_DECLARED
}  // namespace variants

#if SINTER_KERNEL_VARIANTS
#define SINTER_FORWARDED(T, name, parameters, arguments) \
  template <>                                            \
  void name<T> parameters {                              \
    variants::name arguments;                            \
  }
SINTER_VARIANTS(SINTER_FORWARDED)
#undef SINTER_FORWARDED
#elif SINTER_COMPILED
#define SINTER_HELD(T, name, parameters, arguments) SINTER_INSTANCE void name<T> parameters;
SINTER_VARIANTS(SINTER_HELD)
#undef SINTER_HELD
#endif

}  // namespace sinter::cpu_impl
