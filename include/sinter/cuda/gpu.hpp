// sinter/cuda/gpu.hpp: what the backend asks of a GPU, done by CUDA.
#pragma once

#include "sinter/cuda/blas.hpp"
#include "sinter/cuda/launch.hpp"

namespace sinter::cuda_impl {

template <device D>
struct gpu {
  static context& here() { return context_of<D>(); }
  static auto& memory() { return here().memory(); }

  template <class Body>
  static void launch(const char* what, const Body& body, const launch_shape& shape) {
    cuda_impl::launch(here(), what, body, shape);
  }

  static void copy_to_host(void* to, const void* from, std::size_t bytes) { copy(to, from, bytes, cudaMemcpyDeviceToHost, " bytes to the host"); }
  static void copy_from_host(void* to, const void* from, std::size_t bytes) { copy(to, from, bytes, cudaMemcpyHostToDevice, " bytes from the host"); }

  /// Runs after the work on From that makes the source, and before its memory is used for anything else.
  template <device From>
  static void copy_from_device(void* to, const void* from, std::size_t bytes) {
    context &to_here = here(), &there = context_of<From>();
    to_here.wait_for(there);
    {
      const use_gpu current(to_here.gpu());
      const std::string what = "copying " + std::to_string(bytes) + " bytes from " + there.name() + " to " + to_here.name();
      if (to_here.gpu() == there.gpu()) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, to_here.stream()), what);
      else check(cudaMemcpyPeerAsync(to, to_here.gpu(), from, there.gpu(), bytes, to_here.stream()), what);
    }
    there.wait_for(to_here);
  }

  template <class T>
  static void gemm(bool a_turned, bool b_turned, index_t m, index_t n, index_t k, const T* a, index_t lda, const T* b, index_t ldb,
                   compute_type<T> beta, T* c, index_t ldc) {
    blas_of<D>().gemm(a_turned, b_turned, m, n, k, a, lda, b, ldb, beta, c, ldc);
  }

 private:
  static void copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, const char* direction) {
    const use_gpu current(here().gpu());
    const std::string what = here().name() + ": copying " + std::to_string(bytes) + direction;
    check(cudaMemcpyAsync(to, from, bytes, kind, here().stream()), what);
    check(cudaStreamSynchronize(here().stream()), what);
  }
};

}  // namespace sinter::cuda_impl

namespace sinter {

/// Waits until all work on D is done, and throws what went wrong in it.
template <device D>
  requires is_cuda_v<D>
void synchronize() {
  cuda_impl::context_of<D>().synchronize();
}

/// Kernels started on D so far, those of cuBLAS counted once per product.
template <device D>
  requires is_cuda_v<D>
std::size_t launches() {
  return cuda_impl::context_of<D>().launches();
}

}  // namespace sinter
