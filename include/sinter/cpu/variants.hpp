// sinter/cpu/variants.hpp: kernels of plain tensors that sinter::compiled holds for several sets of vector
// instructions.
#pragma once

#include "sinter/cpu/convolution.hpp"
#include "sinter/cpu/gemm.hpp"

namespace sinter::cpu_impl::variants {

#define SINTER_VARIANTS_OF(T)                                                                                          \
  void product(const gemm_args<T>&, thread_pool&);                                                                     \
  void convolution(const conv_shape&, const T* x, const T* w, const conv_weight_strides&, T* y, bool add,              \
                   const conv_finish<T>&, thread_pool&);                                                               \
  void data_gradient(const conv_shape&, const T* dy, const T* w, const conv_weight_strides&, T* dx, bool add,          \
                     const conv_finish<T>&, thread_pool&);                                                             \
  void weight_gradient(const conv_shape&, const T* x, const T* dy, T* dw, const conv_weight_strides&, T* db, bool add, \
                       thread_pool&);
SINTER_VARIANTS_OF(float)
SINTER_VARIANTS_OF(double)
#undef SINTER_VARIANTS_OF

}  // namespace sinter::cpu_impl::variants

// The definitions of what other files only declare; see cpu/instances.hpp.
#if SINTER_KERNEL_VARIANTS
namespace sinter::cpu_impl {

#define SINTER_VARIANTS_OF(T)                                                                                    \
  template <>                                                                                                    \
  void gemm<T>(const gemm_args<T>& args, thread_pool& pool) {                                                    \
    variants::product(args, pool);                                                                               \
  }                                                                                                              \
  template <>                                                                                                    \
  void conv_forward<T>(const conv_shape& s, const T* x, const T* w, const conv_weight_strides& w_strides, T* y,  \
                       bool add, const conv_finish<T>& finish, thread_pool& pool) {                              \
    variants::convolution(s, x, w, w_strides, y, add, finish, pool);                                             \
  }                                                                                                              \
  template <>                                                                                                    \
  void conv_backward_data<T>(const conv_shape& s, const T* dy, const T* w, const conv_weight_strides& w_strides, \
                             T* dx, bool add, const conv_finish<T>& finish, thread_pool& pool) {                 \
    variants::data_gradient(s, dy, w, w_strides, dx, add, finish, pool);                                         \
  }                                                                                                              \
  template <>                                                                                                    \
  void conv_backward_weights<T>(const conv_shape& s, const T* x, const T* dy, T* dw,                             \
                                const conv_weight_strides& w_strides, T* db, bool add, thread_pool& pool) {      \
    variants::weight_gradient(s, x, dy, dw, w_strides, db, add, pool);                                           \
  }
SINTER_VARIANTS_OF(float)
SINTER_VARIANTS_OF(double)
#undef SINTER_VARIANTS_OF

}  // namespace sinter::cpu_impl
#endif
