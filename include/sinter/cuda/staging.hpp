// sinter/cuda/staging.hpp: copies between a GPU and the memory of the program, through pinned memory, in chunks.
//
// The GPU reads and writes pages of the host at full speed, and beside the program, only where they cannot be swapped
// out. A few chunks of such memory are used in turn: while one is on its way, the next is filled, or emptied, by the
// processor.
#pragma once

#include <cstring>
#include <mutex>

#include "sinter/cuda/error.hpp"

namespace sinter::cuda_impl {

/// The chunks for one direction, with an event each that tells when the GPU is done with it. One copy at a time.
class staging {
 public:
  static constexpr std::size_t chunk = std::size_t{1} << 20;
  static constexpr std::size_t chunks = 8;

  staging() = default;
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  /// Returns when `from` may be changed again; the copy arrives in the order of the stream. The GPU is the current one.
  void to_gpu(cudaStream_t stream, void* to, const void* from, std::size_t bytes, const std::string& what) {
    const std::lock_guard lock(busy_);
    prepare(what);
    for (std::size_t at = 0; at < bytes; at += chunk) {
      const slot& s = slots_[next_++ % chunks];
      const std::size_t n = bytes - at < chunk ? bytes - at : chunk;
      check(cudaEventSynchronize(s.free), what);
      std::memcpy(s.memory, static_cast<const char*>(from) + at, n);
      check(cudaMemcpyAsync(static_cast<char*>(to) + at, s.memory, n, cudaMemcpyHostToDevice, stream), what);
      check(cudaEventRecord(s.free, stream), what);
    }
  }

  /// Returns when all is there, which is after all earlier work on the stream.
  void to_host(cudaStream_t stream, void* to, const void* from, std::size_t bytes, const std::string& what) {
    const std::lock_guard lock(busy_);
    prepare(what);
    std::size_t asked = 0;
    for (std::size_t at = 0; at < bytes; at += chunk) {
      for (; asked < bytes && asked < at + chunks * chunk; asked += chunk) {
        const slot& s = slots_[asked / chunk % chunks];
        check(cudaMemcpyAsync(s.memory, static_cast<const char*>(from) + asked,
                              bytes - asked < chunk ? bytes - asked : chunk, cudaMemcpyDeviceToHost, stream),
              what);
        check(cudaEventRecord(s.free, stream), what);
      }
      const slot& s = slots_[at / chunk % chunks];
      check(cudaEventSynchronize(s.free), what);
      std::memcpy(static_cast<char*>(to) + at, s.memory, bytes - at < chunk ? bytes - at : chunk);
    }
  }

 private:
  struct slot {
    void* memory = nullptr;
    cudaEvent_t free = nullptr;
  };

  void prepare(const std::string& what) {
    for (slot& s : slots_) {
      if (s.memory == nullptr)
        check(cudaHostAlloc(&s.memory, chunk, cudaHostAllocPortable), what + ": allocating pinned host memory");
      if (s.free == nullptr)
        check(cudaEventCreateWithFlags(&s.free, cudaEventDisableTiming), what + ": creating an event");
    }
  }

  std::mutex busy_;
  slot slots_[chunks];
  std::size_t next_ = 0;
};

}  // namespace sinter::cuda_impl
