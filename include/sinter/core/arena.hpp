// sinter/core/arena.hpp: the caching allocator behind every host device, with its statistics.
#pragma once

#include <bit>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "sinter/core/device.hpp"
#include "sinter/core/error.hpp"

namespace sinter {

/// What a device's arena holds. Bytes are rounded up to the arena's block sizes.
struct memory_stats {
  std::size_t bytes_in_use = 0;        ///< held by living tensors
  std::size_t peak_bytes = 0;          ///< largest bytes_in_use since the last reset_peak_memory
  std::size_t bytes_cached = 0;        ///< freed by tensors, kept for the next allocation
  std::size_t allocations = 0;         ///< requests served so far
  std::size_t system_allocations = 0;  ///< requests that had to ask the operating system
};

namespace detail {

/// Blocks come in eight sizes per power of two and return to a free list of their size: a fresh large block costs more
/// in page faults than the arithmetic that fills it.
class host_arena {
 public:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t huge_page = std::size_t{2} << 20;

  explicit host_arena(std::string name) : name_(std::move(name)) {}
  host_arena(const host_arena&) = delete;
  host_arena& operator=(const host_arena&) = delete;

  static std::size_t block_size(std::size_t bytes) {
    if (bytes <= 512) return (bytes + 63) / 64 * 64 + (bytes == 0 ? 64 : 0);
    const std::size_t step = std::bit_floor(bytes - 1) / 8;
    return (bytes + step - 1) / step * step;
  }

  void* allocate(std::size_t bytes) {
    const std::size_t size = block_size(bytes);
    const std::lock_guard lock(mutex_);
    ++stats_.allocations;
    std::vector<void*>& list = free_list(size);
    void* p = nullptr;
    if (!list.empty()) {
      p = list.back();
      list.pop_back();
      stats_.bytes_cached -= size;
    } else {
      p = from_system(size);
    }
    stats_.bytes_in_use += size;
    if (stats_.bytes_in_use > stats_.peak_bytes) stats_.peak_bytes = stats_.bytes_in_use;
    return p;
  }

  void release(void* p, std::size_t bytes) noexcept {
    const std::size_t size = block_size(bytes);
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= size;
    try {
      free_list(size).push_back(p);
      stats_.bytes_cached += size;
    } catch (...) {
      std::free(p);
    }
  }

  void empty_cache() noexcept {
    const std::lock_guard lock(mutex_);
    drop_cache();
  }

  memory_stats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak_bytes = stats_.bytes_in_use;
  }

  void set_limit(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
  }

 private:
  std::vector<void*>& free_list(std::size_t size) {
    const int log = static_cast<int>(std::bit_width(size)) - 1;
    const std::size_t index =
        size <= 512 ? size / 64 : 16 + static_cast<std::size_t>(log) * 8 + ((size >> (log - 3)) & 7);
    if (index >= free_.size()) free_.resize(index + 1);
    return free_[index];
  }

  void* from_system(std::size_t size) {
    void* p = nullptr;
    for (int attempt = 0; attempt < 2 && p == nullptr; ++attempt) {
      if (attempt == 1) drop_cache();
      if (limit_ != 0 && (stats_.bytes_in_use + stats_.bytes_cached + size > limit_)) continue;
      p = std::aligned_alloc(size >= huge_page ? huge_page : alignment, round_to(size, size >= huge_page ? huge_page : alignment));
    }
    if (p == nullptr)
      throw out_of_memory(name_ + ": out of memory allocating " + std::to_string(size) + " bytes; " +
                          std::to_string(stats_.bytes_in_use) + " bytes are in use by tensors" +
                          (limit_ != 0 ? ", the limit is " + std::to_string(limit_) : std::string()) +
                          ". Free tensors or use smaller batches");
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size >= huge_page) ::madvise(p, size, MADV_HUGEPAGE);
#endif
    ++stats_.system_allocations;
    return p;
  }

  static std::size_t round_to(std::size_t size, std::size_t unit) { return (size + unit - 1) / unit * unit; }

  void drop_cache() noexcept {
    for (std::vector<void*>& list : free_) {
      for (void* p : list) std::free(p);
      list.clear();
    }
    stats_.bytes_cached = 0;
  }

  std::string name_;
  mutable std::mutex mutex_;
  std::vector<std::vector<void*>> free_;
  memory_stats stats_;
  std::size_t limit_ = 0;
};

/// The arena of a host device. Never destroyed, so that tensors of static storage duration may outlive main.
template <device D>
  requires is_cpu_v<D>
host_arena& arena_of() {
  static host_arena& arena = *new host_arena(device_name<D>());
  return arena;
}

}  // namespace detail

/// Statistics of D's arena.
template <device D = cpu>
  requires is_cpu_v<D>
memory_stats memory() {
  return detail::arena_of<D>().stats();
}

/// Starts a new measurement of the peak: peak_bytes becomes bytes_in_use.
template <device D = cpu>
  requires is_cpu_v<D>
void reset_peak_memory() {
  detail::arena_of<D>().reset_peak();
}

/// Gives cached blocks back to the operating system.
template <device D = cpu>
  requires is_cpu_v<D>
void empty_cache() {
  detail::arena_of<D>().empty_cache();
}

/// Makes allocations on D fail with out_of_memory once tensors and cache hold more than `bytes`; 0 lifts the limit.
template <device D = cpu>
  requires is_cpu_v<D>
void set_memory_limit(std::size_t bytes) {
  detail::arena_of<D>().set_limit(bytes);
}

}  // namespace sinter
