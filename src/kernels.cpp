// src/kernels.cpp: products and convolutions of plain tensors, compiled for several sets of vector instructions; see
// cmake/sinterVariants.cmake.
#include <sinter/cpu/variants.hpp>

#include <sinter/sinter.hpp>

namespace sinter::cpu_impl::variants {

#define SINTER_VARIANTS_OF(T)                                                                                         \
  void product(const gemm_args<T>& args, thread_pool& pool) { gemm<T>(args, pool); }                                  \
  void convolution(const conv_shape& s, const T* x, const T* w, const conv_weight_strides& w_strides, T* y, bool add, \
                   const conv_finish<T>& finish, thread_pool& pool) {                                                 \
    conv_forward<T>(s, x, w, w_strides, y, add, finish, pool);                                                        \
  }                                                                                                                   \
  void data_gradient(const conv_shape& s, const T* dy, const T* w, const conv_weight_strides& w_strides, T* dx,       \
                     bool add, const conv_finish<T>& finish, thread_pool& pool) {                                     \
    conv_backward_data<T>(s, dy, w, w_strides, dx, add, finish, pool);                                                \
  }                                                                                                                   \
  void weight_gradient(const conv_shape& s, const T* x, const T* dy, T* dw, const conv_weight_strides& w_strides,     \
                       T* db, bool add, thread_pool& pool) {                                                          \
    conv_backward_weights<T>(s, x, dy, dw, w_strides, db, add, pool);                                                 \
  }
SINTER_VARIANTS_OF(float)
SINTER_VARIANTS_OF(double)
#undef SINTER_VARIANTS_OF

}  // namespace sinter::cpu_impl::variants
