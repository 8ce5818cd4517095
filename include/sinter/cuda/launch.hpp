// sinter/cuda/launch.hpp: running a body on a GPU.
#pragma once

#include "sinter/cuda/context.hpp"
#include "sinter/cuda/space.hpp"

namespace sinter::cuda_impl {

/// The grid of a running kernel; see space.hpp. The host's half of the compilation calls none of its functions.
struct device_grid {
#if defined(__CUDA_ARCH__)
#define SINTER_ON_GPU(x) x
#else
#define SINTER_ON_GPU(x) \
  {                      \
  }
#endif
  __host__ __device__ index_t block() const { return SINTER_ON_GPU(blockIdx.x); }
  __host__ __device__ index_t blocks() const { return SINTER_ON_GPU(gridDim.x); }
  __host__ __device__ int thread() const { return SINTER_ON_GPU(static_cast<int>(threadIdx.x)); }
  __host__ __device__ int threads() const { return block_threads; }
  __host__ __device__ void sync() const { SINTER_ON_GPU(__syncthreads()); }
  __host__ __device__ bool any([[maybe_unused]] bool is) const { return SINTER_ON_GPU(__syncthreads_or(is) != 0); }
  template <class T>
  __host__ __device__ void add([[maybe_unused]] T* to, [[maybe_unused]] T n) const
      SINTER_ON_GPU({ atomicAdd(to, n); }) __host__ __device__ unsigned take([[maybe_unused]] unsigned* counter) const {
    return SINTER_ON_GPU(atomicAdd(counter, 1u));
  }
#undef SINTER_ON_GPU
  /// As in "CUDA C++ Programming Guide", Memory Fence Functions.
  __host__ __device__ bool arrives_last([[maybe_unused]] unsigned* counter, [[maybe_unused]] unsigned blocks) const {
#if defined(__CUDA_ARCH__)
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      last = atomicAdd(counter, 1u) + 1 == blocks;
      if (last) *counter = 0;
      __threadfence();
    }
    __syncthreads();
    return last;
#else
    return false;
#endif
  }
  template <class T>
  __host__ __device__ T fresh(const T* p) const {
#if defined(__CUDA_ARCH__)
    return __ldcg(p);
#else
    return *p;
#endif
  }
  /// Past the registers and the first-level cache, where the GPU can (from sm_80 on).
  template <class T>
  __host__ __device__ void copy_ahead([[maybe_unused]] T* to, [[maybe_unused]] const T* from) const {
    static_assert(sizeof(T) % 16 == 0);
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    const auto shared = static_cast<unsigned>(__cvta_generic_to_shared(to));
    const auto global = __cvta_generic_to_global(from);
#pragma unroll
    for (unsigned at = 0; at < sizeof(T); at += 16)
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared + at), "l"(global + at) : "memory");
#elif defined(__CUDA_ARCH__)
    *to = *from;
#endif
  }
  __host__ __device__ void finish_copies() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  }
  template <class T>
  __host__ __device__ T* shared() const {
#if defined(__CUDA_ARCH__)
    extern __shared__ __align__(16) unsigned char shared_memory[];
    return reinterpret_cast<T*>(shared_memory);
#else
    return nullptr;
#endif
  }
};

/// How many blocks shall find room on a multiprocessor, where a body does not say. Left to itself, ptxas aims at more
/// than two on sm_80, and spills registers for it.
template <class Body>
inline constexpr int blocks_at_once = [] {
  if constexpr (requires { Body::blocks_at_once; }) return Body::blocks_at_once;
  else return 2;
}();

template <class Body>
__global__ void __launch_bounds__(block_threads, blocks_at_once<Body>) run_body(const __grid_constant__ Body body) {
  body(device_grid{});
}

/// Starts a kernel whose arguments lie at `arguments`.
inline void start(context& c, const work& w, const void* kernel, const launch_shape& shape, void** arguments) {
  if (shape.blocks == 0) return;
  const auto held = c.capture().enter(w.what);
  const use_gpu current(c.gpu());
  if (shape.shared_bytes > usual_shared_bytes) {  // always to the same value: other threads may be starting it too
    const cudaError_t status =
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most_shared_bytes));
    if (status != cudaSuccess)
      check(status, c.name() + ": " + std::to_string(most_shared_bytes) + " bytes of shared memory for " + w.text());
  }
  const dim3 grid(static_cast<unsigned>(shape.blocks)), block(block_threads);
  const cudaError_t status = cudaLaunchKernel(kernel, grid, block, arguments, shape.shared_bytes, c.stream());
  if (status != cudaSuccess)
    check(status, c.name() + ": launching " + w.text() + " with " + std::to_string(shape.blocks) + " blocks of " +
                      std::to_string(block_threads) + " threads and " + std::to_string(shape.shared_bytes) +
                      " bytes of shared memory");
  c.count_launches();
}

template <class Body>
void launch(context& c, const work& w, const Body& body, const launch_shape& shape) {
  static_assert(std::is_trivially_copyable_v<Body>);
  void* arguments[] = {const_cast<Body*>(&body)};
  start(c, w, reinterpret_cast<const void*>(&run_body<Body>), shape, arguments);
}

}  // namespace sinter::cuda_impl
