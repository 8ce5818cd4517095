// sinter/cuda/context.hpp: the GPUs behind cuda<0>, cuda<1>, ..., each with its stream and its memory.
#pragma once

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "sinter/core/arena.hpp"
#include "sinter/cuda/error.hpp"

namespace sinter::cuda_impl {

/// GPUs that the driver shows; 0 without a driver.
inline int physical_gpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}

/// The GPU that each cuda<I> stands for: the one of the same number, or what SINTER_CUDA_MAP lists for it ("0,0": two
/// devices on one GPU). Errors: device_error for a list that is none.
inline std::vector<int> device_map() {
  const int count = physical_gpus();
  std::vector<int> map;
  const char* const list = std::getenv("SINTER_CUDA_MAP");
  if (list == nullptr || *list == '\0') {
    for (int i = 0; i < count; ++i) map.push_back(i);
    return map;
  }
  for (const char* at = list;;) {
    char* end = nullptr;
    const long gpu = std::strtol(at, &end, 10);
    if (end == at || gpu < 0 || (*end != '\0' && *end != ','))
      throw device_error(std::string("SINTER_CUDA_MAP is '") + list + "'; it must list GPU numbers separated by commas, such as 0,0");
    if (count > 0 && gpu >= count)
      throw device_error("SINTER_CUDA_MAP names GPU " + std::to_string(gpu) + ", but there are " + std::to_string(count));
    if (count > 0) map.push_back(static_cast<int>(gpu));
    if (*end == '\0') return map;
    at = end + 1;
  }
}

/// Makes a GPU the current one for a scope.
class use_gpu {
 public:
  explicit use_gpu(int gpu) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != gpu) check(cudaSetDevice(gpu), "selecting GPU " + std::to_string(gpu));
    else before_ = -1;
  }
  use_gpu(const use_gpu&) = delete;
  use_gpu& operator=(const use_gpu&) = delete;
  ~use_gpu() {
    if (before_ >= 0) static_cast<void>(cudaSetDevice(before_));
  }

 private:
  int before_ = -1;
};

/// Where the arena of a GPU gets its memory.
struct gpu_memory {
  int gpu;

  void* take(std::size_t bytes) const {
    const use_gpu current(gpu);
    void* p = nullptr;
    const cudaError_t status = cudaMalloc(&p, bytes);
    if (status == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());
      return nullptr;
    }
    check(status, "allocating " + std::to_string(bytes) + " bytes on GPU " + std::to_string(gpu));
    return p;
  }
  // cudaFree waits for the work on the GPU, so nothing reads what it frees.
  void give(void* p) const noexcept {
    int before = 0;
    static_cast<void>(cudaGetDevice(&before));
    static_cast<void>(cudaSetDevice(gpu));
    static_cast<void>(cudaFree(p));
    static_cast<void>(cudaSetDevice(before));
  }
};

/// A cuda<I>: its GPU, one stream on which all its work runs in order, and its memory. Because of that order a block may be
/// handed out again as soon as it is freed: whoever gets it works after those who had it.
class context {
 public:
  explicit context(int ordinal, int gpu)
      : ordinal_(ordinal), gpu_(gpu), memory_("cuda:" + std::to_string(ordinal), gpu_memory{gpu}) {
    const use_gpu current(gpu);
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), name() + ": creating a stream");
    check(cudaEventCreateWithFlags(&here_, cudaEventDisableTiming), name() + ": creating an event");
  }
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  std::string name() const { return "cuda:" + std::to_string(ordinal_); }
  int gpu() const { return gpu_; }
  cudaStream_t stream() const { return stream_; }
  sinter::detail::caching_arena<gpu_memory>& memory() { return memory_; }

  void synchronize() const {
    const use_gpu current(gpu_);
    check(cudaStreamSynchronize(stream_), name() + ": waiting for the GPU");
  }

  /// What is put on this stream from now on waits for what is on the other's.
  void wait_for(context& other) {
    if (&other == this) return;
    {
      const use_gpu current(other.gpu_);
      check(cudaEventRecord(other.here_, other.stream_), other.name() + ": recording an event");
    }
    const use_gpu current(gpu_);
    check(cudaStreamWaitEvent(stream_, other.here_, 0), name() + ": waiting for " + other.name());
  }

  /// Kernels launched so far.
  std::size_t launches() const { return launches_.load(std::memory_order_relaxed); }
  void count_launch() { launches_.fetch_add(1, std::memory_order_relaxed); }

 private:
  int ordinal_;
  int gpu_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t here_ = nullptr;
  sinter::detail::caching_arena<gpu_memory> memory_;
  std::atomic<std::size_t> launches_{0};
};

/// The context of cuda<ordinal>, made at first use and never destroyed, so that tensors may outlive main. Errors:
/// device_error where there is no such GPU.
inline context& context_of(int ordinal) {
  static std::mutex& growing = *new std::mutex;
  static std::vector<context*>& all = *new std::vector<context*>;
  const std::lock_guard lock(growing);
  const auto i = static_cast<std::size_t>(ordinal);
  if (i < all.size() && all[i] != nullptr) return *all[i];
  const std::vector<int> map = device_map();
  if (i >= map.size())
    throw device_error("cuda:" + std::to_string(ordinal) + " is not available: " +
                       (map.empty() ? std::string("there is no GPU, no driver, or one too old for this program")
                                    : "there are " + std::to_string(map.size()) + " GPUs, numbered from 0"));
  if (all.size() <= i) all.resize(i + 1, nullptr);
  all[i] = new context(ordinal, map[i]);
  return *all[i];
}
template <device D>
context& context_of() {
  static context& c = context_of(device_ordinal_v<D>);
  return c;
}

inline bool probe(int ordinal) {
  try {
    return static_cast<std::size_t>(ordinal) < device_map().size();
  } catch (const device_error&) {
    return false;
  }
}
/// Tells the files of this program that were compiled without the backend.
inline const bool probe_is_set = (sinter::detail::cuda_probe = &probe, true);

}  // namespace sinter::cuda_impl
