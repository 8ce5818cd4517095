// sinter/cuda/blas.hpp: cuBLAS on the stream of a GPU, in plain float or double arithmetic; half and bfloat16 with float sums.
#pragma once

#include <cublas_v2.h>

#include <mutex>

#include "sinter/cuda/context.hpp"

namespace sinter::cuda_impl {

inline void check(cublasStatus_t status, const std::string& what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const std::string text = what + ": " + cublasGetStatusString(status);
  if (status == CUBLAS_STATUS_ALLOC_FAILED) throw out_of_memory(text + "; free tensors or use smaller batches");
  throw device_error(text);
}

/// cuBLAS on a context's stream; one caller at a time.
class blas {
 public:
  explicit blas(context& c) : context_(c) {
    const use_gpu current(c.gpu());
    check(cublasCreate(&handle_), c.name() + ": starting cuBLAS");
    check(cublasSetStream(handle_, c.stream()), c.name() + ": giving cuBLAS its stream");
  }
  blas(const blas&) = delete;
  blas& operator=(const blas&) = delete;

  /// Column-major c (m,n) = a (m,k) b (k,n) + beta c.
  void gemm(bool a_turned, bool b_turned, index_t m, index_t n, index_t k, const float* a, index_t lda, const float* b, index_t ldb, float beta,
            float* c, index_t ldc) {
    const float one = 1;
    run(m, n, k, [&] { return cublasSgemm_64(handle_, op(a_turned), op(b_turned), m, n, k, &one, a, lda, b, ldb, &beta, c, ldc); });
  }
  void gemm(bool a_turned, bool b_turned, index_t m, index_t n, index_t k, const double* a, index_t lda, const double* b, index_t ldb, double beta,
            double* c, index_t ldc) {
    const double one = 1;
    run(m, n, k, [&] { return cublasDgemm_64(handle_, op(a_turned), op(b_turned), m, n, k, &one, a, lda, b, ldb, &beta, c, ldc); });
  }
  template <narrow_element T>
  void gemm(bool a_turned, bool b_turned, index_t m, index_t n, index_t k, const T* a, index_t lda, const T* b, index_t ldb, float beta, T* c,
            index_t ldc) {
    constexpr cudaDataType type = std::is_same_v<T, half> ? CUDA_R_16F : CUDA_R_16BF;
    const float one = 1;
    run(m, n, k, [&] {
      return cublasGemmEx_64(handle_, op(a_turned), op(b_turned), m, n, k, &one, a, type, lda, b, type, ldb, &beta, c, type, ldc,
                             CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    });
  }

 private:
  static cublasOperation_t op(bool turned) { return turned ? CUBLAS_OP_T : CUBLAS_OP_N; }

  template <class F>
  void run(index_t m, index_t n, index_t k, const F& f) {
    const std::lock_guard lock(busy_);
    const use_gpu current(context_.gpu());
    check(f(), context_.name() + ": matrix product (" + std::to_string(n) + "," + std::to_string(k) + ") x (" + std::to_string(k) + "," +
                   std::to_string(m) + ")");
    context_.count_launch();
  }

  context& context_;
  std::mutex busy_;
  cublasHandle_t handle_ = nullptr;
};

template <device D>
blas& blas_of() {
  static blas& b = *new blas(context_of<D>());
  return b;
}

}  // namespace sinter::cuda_impl
