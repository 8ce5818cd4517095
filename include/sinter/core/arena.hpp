// sinter/core/arena.hpp: the caching allocator behind every host device, with its statistics.
#pragma once

#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "sinter/core/address_map.hpp"
#include "sinter/core/beside.hpp"
#include "sinter/core/device.hpp"
#include "sinter/core/error.hpp"
#include "sinter/core/fork.hpp"

namespace sinter {

/// What a device's arena holds. Bytes are rounded up to the arena's block sizes.
struct memory_stats {
  std::size_t bytes_in_use = 0;        ///< held by living tensors
  std::size_t peak_bytes = 0;          ///< largest bytes_in_use since the last reset_peak_memory
  std::size_t bytes_cached = 0;        ///< freed by tensors, kept for the next allocation
  std::size_t bytes_reserved = 0;      ///< freed by tensors, kept for a captured step
  std::size_t allocations = 0;         ///< requests served so far
  std::size_t system_allocations = 0;  ///< requests that had to ask the operating system
};

namespace detail {

/// Where the arenas of the host devices get their memory. Large blocks begin at different places of a page, in turn:
/// caches and write buffers find a line by the low bits of its address, and operands of one statement that all began a
/// page would compete for the same few of them.
class host_memory {
 public:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t header = 64;  ///< of a tensor's block, in front of its elements
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t places = 16;                     ///< in a page, where blocks begin
  static constexpr std::size_t placed = std::size_t{64} << 10;  ///< smallest block to which that applies

  void* take(std::size_t size) noexcept {
    const std::size_t offset = alignment + (size >= placed ? turn_++ % places * (page / places) : 0);
    const std::size_t unit = size >= huge_page ? huge_page : size >= placed ? page : alignment;
    auto* const base = static_cast<char*>(std::aligned_alloc(unit, (offset + size + unit - 1) / unit * unit));
    if (base == nullptr) return nullptr;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size >= huge_page) ::madvise(base, offset + size, MADV_HUGEPAGE);
#endif
    char* const block = base + offset;
    reinterpret_cast<char**>(block)[-1] = base;
    return block;
  }
  void give(void* block) noexcept { std::free(static_cast<char**>(block)[-1]); }

 private:
  std::size_t turn_ = 0;
};

/// Blocks come in eight sizes per power of two, and room for Source's header beside, so that a tensor of 2^k bytes
/// takes no more than that. They return to a free list of their size: a fresh large block costs more in page faults
/// than the arithmetic that fills it. The one that was freed last is handed out first; to copies beside the program it
/// is the one that was freed first, whose last user is most likely done. Source takes memory from the system (null if
/// it gets none) and gives it back.
template <class Source>
class caching_arena {
 public:
  explicit caching_arena(std::string name, const Source& source = {}) : name_(std::move(name)), source_(source) {}
  caching_arena(const caching_arena&) = delete;
  caching_arena& operator=(const caching_arena&) = delete;

  static std::size_t block_size(std::size_t bytes) {
    const std::size_t body = bytes > Source::header ? bytes - Source::header : 0;
    if (body <= 512) return Source::header + (body == 0 ? 64 : (body + 63) / 64 * 64);
    const std::size_t step = std::bit_floor(body - 1) / 8;
    return Source::header + (body + step - 1) / step * step;
  }

  void* allocate(std::size_t bytes) {
    const std::size_t size = block_size(bytes);
    const std::lock_guard lock(mutex_);
    ++stats_.allocations;
    std::vector<free_block>& list = free_list(size);
    const bool recorded = open_ != 0 && std::this_thread::get_id() == recorder_;
    const bool beside = copies_run_beside();
    void* p = recorded && fits(0) ? from_reserve(size) : nullptr;
    std::uint64_t freed = 0;
    if (p == nullptr && !list.empty() && fits(size)) {
      const auto at = beside ? list.begin() : list.end() - 1;
      p = at->at;
      freed = at->freed;
      list.erase(at);
      stats_.bytes_cached -= size;
    }
    if (p == nullptr) p = from_system(size);
    if (beside) given_beside() = {p, freed};
    if (recorded) {
      try {
        reserve_of_[p] = open_;
      } catch (...) {
        put_back(p, size);
        throw;
      }
    }
    stats_.bytes_in_use += size;
    if (stats_.bytes_in_use > stats_.peak_bytes) stats_.peak_bytes = stats_.bytes_in_use;
    return p;
  }

  void release(void* p, std::size_t bytes) noexcept {
    const std::size_t size = block_size(bytes);
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= size;
    const int reserve = reserve_for(p);
    if (reserve == 0) return put_back(p, size);
    try {
      reserved_.push_back({reserve, p, size});
      stats_.bytes_reserved += size;
    } catch (...) {
      source_.give(p);
    }
  }

  // A reserve holds the memory of a step that is recorded once and repeated later, without allocating again. While it
  // is open, all that the thread that has opened it allocates belongs to it, and all that is freed joins it: the
  // repeated step will use both. Closed, it keeps what it has, and gets back what of it tensors still held, until it is
  // dropped.

  /// The number of a new reserve, which is open; only one is at a time.
  int open_reserve() {
    const std::lock_guard lock(mutex_);
    open_ = ++last_reserve_;
    recorder_ = std::this_thread::get_id();
    return open_;
  }
  void close_reserve() noexcept {
    const std::lock_guard lock(mutex_);
    open_ = 0;
  }
  void drop_reserve(int number) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = reserved_.size(); i-- > 0;)
      if (const reserved_block b = reserved_[i]; b.reserve == number) {
        take_reserved(i);
        put_back(b.memory, b.size);
      }
    std::erase_if(reserve_of_, [number](const auto& entry) { return entry.second == number; });
  }

  void empty_cache() noexcept {
    const std::lock_guard lock(mutex_);
    drop_cache();
  }

  memory_stats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

  /// How many blocks have come back to the free lists so far.
  std::uint64_t frees() const {
    const std::lock_guard lock(mutex_);
    return frees_;
  }

  void reset_peak() {
    const std::lock_guard lock(mutex_);
    stats_.peak_bytes = stats_.bytes_in_use;
  }

  void set_limit(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    if (!fits_beside_cache(0)) drop_cache();
  }

 private:
  struct free_block {
    void* at;
    std::uint64_t freed;  ///< frees() then
  };
  struct reserved_block {
    int reserve;
    void* memory;
    std::size_t size;
  };

  std::vector<free_block>& free_list(std::size_t size) {
    const std::size_t body = size - Source::header;
    const int log = static_cast<int>(std::bit_width(body)) - 1;
    const std::size_t index =
        body <= 512 ? body / 64 : 16 + static_cast<std::size_t>(log) * 8 + ((body >> (log - 3)) & 7);
    if (index >= free_.size()) free_.resize(index + 1);
    return free_[index];
  }

  /// Does the limit allow tensors `more` bytes? What is cached could be given back.
  bool fits(std::size_t more) const {
    return limit_ == 0 || stats_.bytes_in_use + stats_.bytes_reserved + more <= limit_;
  }
  /// True if that fits even with all cached blocks kept.
  bool fits_beside_cache(std::size_t more) const { return fits(stats_.bytes_cached + more); }

  /// Takes back a block that is no longer used. It goes to the free lists, or to the system if the limit or memory
  /// leaves no room in them.
  void put_back(void* p, std::size_t size) noexcept {
    try {
      if (fits_beside_cache(size) || open_ != 0) {
        free_list(size).push_back({p, frees_ + 1});
        ++frees_;
        stats_.bytes_cached += size;
        return;
      }
    } catch (...) {
    }
    source_.give(p);
  }

  void* from_reserve(std::size_t size) {
    for (std::size_t i = reserved_.size(); i-- > 0;)
      if (const reserved_block b = reserved_[i]; b.reserve == open_ && b.size == size) {
        take_reserved(i);
        return b.memory;
      }
    return nullptr;
  }
  void take_reserved(std::size_t i) noexcept {
    stats_.bytes_reserved -= reserved_[i].size;
    reserved_[i] = reserved_.back();
    reserved_.pop_back();
  }

  /// Where a block that is freed now belongs; 0: to the free lists.
  int reserve_for(void* p) {
    if (reserve_of_.empty()) return open_;
    const auto at = reserve_of_.find(p);
    if (at == reserve_of_.end()) return open_;
    const int number = at->second;
    reserve_of_.erase(at);
    return number;
  }

  void* from_system(std::size_t size) {
    void* p = nullptr;
    for (int attempt = 0; attempt < 2 && p == nullptr; ++attempt) {
      if (attempt == 1) drop_cache();
      if (fits_beside_cache(size)) p = source_.take(size);
    }
    if (p == nullptr)
      refuse<out_of_memory>({name_, ": out of memory allocating ", size, " bytes; ", stats_.bytes_in_use,
                             " bytes are in use by tensors", limit_ != 0 ? joined({", the limit is ", limit_}) : "",
                             ". Free tensors or use smaller batches"});
    ++stats_.system_allocations;
    return p;
  }

  void drop_cache() noexcept {
    if (open_ != 0)
      return;  // the step being recorded may use what was cached, and a GPU does not take memory back meanwhile
    for (std::vector<free_block>& list : free_) {
      for (const free_block& b : list) source_.give(b.at);
      list.clear();
    }
    stats_.bytes_cached = 0;
  }

  std::string name_;
  Source source_;
  mutable fork_safe_mutex mutex_;
  std::vector<std::vector<free_block>> free_;  // each in the order in which they were freed
  std::uint64_t frees_ = 0;
  address_map reserve_of_;                // the reserves of blocks in use that belong to one
  std::vector<reserved_block> reserved_;  // the free blocks of all reserves
  int open_ = 0;
  std::thread::id recorder_;
  int last_reserve_ = 0;
  memory_stats stats_;
  std::size_t limit_ = 0;
};

/// Naming, storing and type-checking tensors of any device is for every file; what runs asks for this. A class, so that
/// the message comes once.
template <device D>
struct runs_in_this_file {
  static_assert(
      always_false<D>,
      "sinter: creating or evaluating tensors on cuda<I> needs the CUDA backend: compile this file with nvcc as CUDA, "
      "named .cu or with -x cu; other files can name, pass and type-check them");
  static constexpr bool value = false;
};
template <device D>
  requires is_cpu_v<D>
struct runs_in_this_file<D> {
  static constexpr bool value = true;
};

/// The arena of D. Never destroyed, so that tensors of static storage duration may outlive main.
template <device D>
struct device_arena {
  static_assert(sizeof(runs_in_this_file<D>) > 0);
  static caching_arena<host_memory>& get();  // so that there is one message
};
template <device D>
  requires is_cpu_v<D>
struct device_arena<D> {
  static caching_arena<host_memory>& get() {
    static constinit std::atomic<caching_arena<host_memory>*> arena{nullptr};
    return make_once(arena, [] { return new caching_arena<host_memory>(device_name<D>()); });
  }
};

/// Memory from an arena for the length of a scope. Work that was started on a GPU may still use it afterwards: the work
/// of the block's next owner runs after that.
template <class Arena>
class block {
 public:
  block(Arena& arena, std::size_t bytes)
      : arena_(&arena), bytes_(bytes), data_(bytes > 0 ? arena.allocate(bytes) : nullptr) {}
  block(block&& other) noexcept
      : arena_(other.arena_), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  block& operator=(block&&) = delete;
  ~block() {
    if (data_ != nullptr) arena_->release(data_, bytes_);
  }
  void* data() const { return data_; }

 private:
  Arena* arena_;
  std::size_t bytes_;
  void* data_;
};

/// The same from D's arena.
template <device D>
struct temporary : block<std::remove_reference_t<decltype(device_arena<D>::get())>> {
  explicit temporary(std::size_t bytes) : temporary::block(device_arena<D>::get(), bytes) {}
};

}  // namespace detail

/// Statistics of D's arena.
template <device D = cpu>
memory_stats memory() {
  return detail::device_arena<D>::get().stats();
}

/// Starts a new measurement of the peak: peak_bytes becomes bytes_in_use.
template <device D = cpu>
void reset_peak_memory() {
  detail::device_arena<D>::get().reset_peak();
}

/// Gives cached blocks back to the operating system.
template <device D = cpu>
void empty_cache() {
  detail::device_arena<D>::get().empty_cache();
}

/// Makes allocations on D fail with out_of_memory where tensors would hold more than `bytes`, and what is cached beside
/// them never more than is left; 0 lifts the limit. Tensors that are there stay, also where they hold more.
template <device D = cpu>
void set_memory_limit(std::size_t bytes) {
  detail::device_arena<D>::get().set_limit(bytes);
}

}  // namespace sinter
