// sinter/cuda/context.hpp: the GPUs behind cuda<0>, cuda<1>, ..., each with its stream and its memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "sinter/core/arena.hpp"
#include "sinter/core/beside.hpp"
#include "sinter/cuda/capture.hpp"
#include "sinter/cuda/index_fault.hpp"
#include "sinter/cuda/staging.hpp"

namespace sinter::cuda_impl {

/// GPUs that the driver shows; 0 without a driver, or with one that is too old: `status` tells.
inline int physical_gpus(cudaError_t& status) {
  int count = 0;
  status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}
inline int physical_gpus() {
  cudaError_t status;
  return physical_gpus(status);
}

/// The GPU that each cuda<I> stands for: the one of the same number, or what SINTER_CUDA_MAP lists for it ("0,0": two
/// devices on one GPU). Errors: device_error for a malformed list.
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
      sinter::detail::refuse<device_error>(
          {"SINTER_CUDA_MAP is '", list, "'; it must list GPU numbers separated by commas, such as 0,0"});
    if (count > 0 && gpu >= count)
      sinter::detail::refuse<device_error>({"SINTER_CUDA_MAP names GPU ", gpu, ", but there are ", count});
    if (count > 0) map.push_back(static_cast<int>(gpu));
    if (*end == '\0') return map;
    at = end + 1;
  }
}

/// Makes a GPU the current one for a scope.
class use_gpu {
 public:
  explicit use_gpu(int gpu) : use_gpu(gpu, std::nothrow) {
    if (status_ != cudaSuccess) check(status_, "selecting GPU " + std::to_string(gpu));
  }
  /// Where it cannot, `status` says so and nothing has changed.
  use_gpu(int gpu, std::nothrow_t) noexcept {
    int now = gpu;
    status_ = cudaGetDevice(&now);
    if (status_ != cudaSuccess || now == gpu) return;
    status_ = cudaSetDevice(gpu);
    if (status_ == cudaSuccess) before_ = now;
  }
  use_gpu(const use_gpu&) = delete;
  use_gpu& operator=(const use_gpu&) = delete;
  ~use_gpu() {
    if (before_ >= 0) ignore(cudaSetDevice(before_));
  }
  cudaError_t status() const { return status_; }

 private:
  int before_ = -1;
  cudaError_t status_;
};

/// Where the arena of a GPU gets its memory.
struct gpu_memory {
  static constexpr std::size_t header = 0;
  static constexpr std::size_t allowance = std::size_t{64} << 20;  // more than on a host, since give() waits
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
    const use_gpu current(gpu, std::nothrow);
    ignore(current.status());
    ignore(cudaFree(p));
  }
};

/// A handle or memory of the runtime or of a library, which `Give` takes back.
template <auto Give>
struct giver {
  template <class H>
  void operator()(H* handle) const noexcept {
    ignore(Give(handle));
  }
};
template <class H, auto Give>
using owned = std::unique_ptr<std::remove_pointer_t<H>, giver<Give>>;

/// A cuda<I>: its GPU, one stream on which its work runs in order, and its memory. Because of that order a block may be
/// handed out again as soon as it is freed: the work of its next owner runs after that of the one before. Copies that
/// run beside the program have a stream of their own; see copy_beside, which keeps their blocks in that order too.
class context {
 public:
  explicit context(int ordinal, int gpu)
      : ordinal_(ordinal), gpu_(gpu), capture_(name()), memory_(name(), gpu_memory{gpu}) {
    const use_gpu current(gpu);
    stream_ = new_stream("creating a stream");
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), name() + ": creating an event");
    here_.reset(event);
    void* words = nullptr;
    check(cudaHostAlloc(&words, sizeof(index_fault), cudaHostAllocMapped),
          name() + ": allocating memory that the host and the GPU share");
    fault_.reset(new (words) index_fault);
    check(cudaHostGetDevicePointer(&words, fault_.get(), 0),
          name() + ": mapping memory that the host and the GPU share");
    fault_address_ = static_cast<index_fault*>(words);
    constexpr std::size_t bytes = sizeof(unsigned) * static_cast<std::size_t>(max_arrivals);
    check(cudaMalloc(&words, bytes), name() + ": allocating counters");
    arrivals_.reset(static_cast<unsigned*>(words));
    check(cudaMemset(words, 0, bytes), name() + ": clearing counters");
    check(cudaDeviceSynchronize(), name() + ": clearing counters");
  }
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  std::string name() const { return "cuda:" + std::to_string(ordinal_); }
  int gpu() const { return gpu_; }
  cudaStream_t stream() const { return stream_.get(); }
  sinter::detail::caching_arena<gpu_memory>& memory() { return memory_; }
  capture_state& capture() { return capture_; }
  const capture_state& capture() const { return capture_; }
  /// The way of the host's data to this GPU, and back.
  staging& uploads() { return uploads_; }
  staging& downloads() { return downloads_; }
  /// The same for copies on copy_stream(), which so never wait for a chunk that is used on stream().
  staging& uploads_beside() { return uploads_beside_; }
  staging& downloads_beside() { return downloads_beside_; }
  /// As the host sees it, and as kernels do.
  index_fault* fault() { return fault_.get(); }
  index_fault* fault_address() { return fault_address_; }
  unsigned* arrivals() { return arrivals_.get(); }

  void synchronize() const {
    const auto held = capture_.wait("synchronize");
    const use_gpu current(gpu_);
    check(cudaStreamSynchronize(stream()), name() + ": waiting for the GPU");
  }

  /// The stream for copies that run beside those on stream(), made at first use. No capture ever records it.
  cudaStream_t copy_stream() {
    const std::lock_guard lock(making_);
    if (!copy_stream_) copy_stream_ = new_stream("creating a stream for copies");
    return copy_stream_.get();
  }

  /// What is put on this stream from now on waits for what is on the other's.
  void wait_for(context& other) {
    if (&other != this) wait(stream(), other);
  }
  /// What is put on copy_stream() from now on waits for what is on the stream of `other`, which may be this device.
  void let_copies_wait_for(context& other) {
    if (&other != this) return wait(copy_stream(), other);
    const std::lock_guard lock(waiting_);
    let_copies_wait();
  }
  /// The same for what has used the block at `to` on stream(). Nothing is to be done for one that this thread was just
  /// given, and that was freed before copy_stream() last waited: a copy of many tensors does not wait anew for each.
  void let_copies_write(const void* to) {
    const auto given = std::exchange(sinter::detail::given_beside(), {});
    const std::lock_guard lock(waiting_);
    if (given.at != to || given.freed > waited_for_) let_copies_wait();
  }

  /// Lets copies from the other GPU go straight to this one, where the machine can; otherwise they go through the host.
  void open_path_from(context& other) {
    if (other.gpu_ == gpu_) return;
    const std::lock_guard lock(opening_);
    if (std::find(open_.begin(), open_.end(), other.gpu_) != open_.end()) return;
    int possible = 0;
    check(cudaDeviceCanAccessPeer(&possible, gpu_, other.gpu_), name() + ": asking for a path to " + other.name());
    if (possible != 0) {
      const use_gpu current(gpu_);
      const cudaError_t status = cudaDeviceEnablePeerAccess(other.gpu_, 0);
      if (status == cudaErrorPeerAccessAlreadyEnabled || status == cudaErrorTooManyPeers) ignore(status);
      else check(status, name() + ": opening a path to " + other.name());
    }
    open_.push_back(other.gpu_);
  }

  /// Kernels launched so far.
  std::size_t launches() const { return launches_.load(std::memory_order_relaxed); }
  void count_launches(std::size_t n = 1) { launches_.fetch_add(n, std::memory_order_relaxed); }

 private:
  using owned_stream = owned<cudaStream_t, cudaStreamDestroy>;

  owned_stream new_stream(const char* task) const {
    const use_gpu current(gpu_);
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), name() + ": " + task);
    return owned_stream(stream);
  }
  void wait(cudaStream_t stream, context& other) {
    {
      const use_gpu current(other.gpu_);
      check(cudaEventRecord(other.here_.get(), other.stream()), other.name() + ": recording an event");
    }
    const use_gpu current(gpu_);
    check(cudaStreamWaitEvent(stream, other.here_.get(), 0), name() + ": waiting for " + other.name());
  }

  void let_copies_wait() {
    const std::uint64_t frees = memory_.frees();
    wait(copy_stream(), *this);
    waited_for_ = frees;
  }

  int ordinal_;
  int gpu_;
  owned_stream stream_;
  owned<cudaEvent_t, cudaEventDestroy> here_;
  capture_state capture_;
  sinter::detail::caching_arena<gpu_memory> memory_;
  staging uploads_, downloads_, uploads_beside_, downloads_beside_;
  std::mutex making_;
  owned_stream copy_stream_;
  std::mutex waiting_;
  std::uint64_t waited_for_ = 0;  // the count of memory_.frees() up to which copy_stream_ waits for users of blocks
  owned<index_fault, cudaFreeHost> fault_;
  index_fault* fault_address_ = nullptr;
  owned<unsigned, cudaFree> arrivals_;
  std::mutex opening_;
  std::vector<int> open_;  // GPUs with a path to this one, or known to have none
  std::atomic<std::size_t> launches_{0};
};

/// Why cuda<ordinal> cannot be used; nothing if it can. Errors: as device_map().
inline std::string missing(int ordinal, const std::vector<int>& map) {
  if (static_cast<std::size_t>(ordinal) < map.size()) return {};
  cudaError_t status;
  const int gpus = physical_gpus(status);
  if (status != cudaSuccess) return describe(status);
  if (gpus == 0) return "there is no GPU";
  if (static_cast<std::size_t>(gpus) != map.size())
    return "SINTER_CUDA_MAP lists " + std::to_string(map.size()) + ", numbered from 0";
  return "there are " + std::to_string(gpus) + " GPUs, numbered from 0";
}

/// The context of cuda<ordinal>, made at first use and never destroyed, so that tensors may outlive main. Errors:
/// device_error where there is no such GPU.
inline context& context_of(int ordinal) {
  static std::mutex& growing = *new std::mutex;
  static std::vector<context*>& all = *new std::vector<context*>;
  const std::lock_guard lock(growing);
  const auto i = static_cast<std::size_t>(ordinal);
  if (i < all.size() && all[i] != nullptr) return *all[i];
  const std::vector<int> map = device_map();
  if (const std::string trouble = missing(ordinal, map); !trouble.empty())
    sinter::detail::refuse<device_error>({"cuda:", ordinal, " is not available: ", trouble});
  if (all.size() <= i) all.resize(i + 1, nullptr);
  all[i] = new context(ordinal, map[i]);
  return *all[i];
}
template <device D>
context& context_of() {
  static context& c = context_of(device_ordinal_v<D>);
  return c;
}

/// For the files of this program that were compiled without the backend.
inline std::string trouble(int ordinal) {
  try {
    return missing(ordinal, device_map());
  } catch (const device_error& e) {
    return e.what();
  }
}
inline const bool trouble_is_told = (sinter::detail::cuda_trouble = &trouble, true);

}  // namespace sinter::cuda_impl
