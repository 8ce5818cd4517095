// sinter/core/arena.hpp: the caching allocator behind every host device, with its statistics.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sinter/core/address_map.hpp"
#include "sinter/core/beside.hpp"
#include "sinter/core/capture.hpp"
#include "sinter/core/device.hpp"
#include "sinter/core/error.hpp"
#include "sinter/core/fork.hpp"
#include "sinter/core/free_blocks.hpp"
#include "sinter/core/host_memory.hpp"

namespace sinter {

/// What a device's arena holds. Bytes are rounded up to the arena's block sizes.
struct memory_stats {
  std::size_t bytes_in_use = 0;        ///< held by living tensors
  std::size_t peak_bytes = 0;          ///< largest bytes_in_use since the last reset_peak_memory
  std::size_t bytes_cached = 0;        ///< freed by tensors, kept for the next allocation
  std::size_t bytes_reserved = 0;      ///< freed by tensors, kept for a captured step
  std::size_t bytes_held = 0;          ///< in use, cached, reserved, and ends of blocks that are larger than asked for
  std::size_t allocations = 0;         ///< requests served so far
  std::size_t system_allocations = 0;  ///< requests that had to ask the operating system
  std::size_t system_frees = 0;        ///< blocks given back to it
};

namespace detail {

/// Blocks come in eight sizes per power of two, and room for Source's header beside, so that a tensor of 2^k bytes
/// takes no more than that. They return to a free list of their size: a fresh large block costs more in page faults
/// than the arithmetic that fills it. The one that was freed last is handed out first; to copies beside the program it
/// is the one that was freed first, whose last user is most likely done. Source takes memory from the system (null if
/// it gets none) and gives it back.
///
/// What the arena holds of the system's memory, less reserves, stays within P + max(P, allowance), where P is the
/// most that was in use lately: in the last `lately` to 2 * `lately` allocations. So what one step of a loop frees is
/// there for the next. Tensors come and go without changing what is held, so the bound needs care only where a block is
/// taken from the system, where P shrinks, and where a reserve is dropped. Where it leaves no room for a block from the
/// system, a larger one may serve; otherwise the ones longest unused go back.
template <class Source>
class caching_arena {
 public:
  static constexpr std::uint64_t lately = std::uint64_t{1} << 16;
  static constexpr std::size_t least_shared = 4096;  ///< smallest size that a larger block may serve

  explicit caching_arena(std::string name, const Source& source = {}) : name_(std::move(name)), source_(source) {}
  caching_arena(const caching_arena&) = delete;
  caching_arena& operator=(const caching_arena&) = delete;
  /// Gives back all but what is in use.
  ~caching_arena() {
    free_.take_all([this](void* p, std::size_t) { source_.give(p); });
    for (const reserved_block& b : reserved_) source_.give(b.memory);
  }

  static std::size_t block_size(std::size_t bytes) {
    return Source::header + block_sizes::round_up(bytes > Source::header ? bytes - Source::header : 0);
  }

  void* allocate(std::size_t bytes) {
    const std::size_t size = block_size(bytes);
    const std::lock_guard lock(mutex_);
    if (++stats_.allocations >= next_review_) review();
    blocks_of_size& list = free_list(size);
    const bool recorded = open_ != 0 && std::this_thread::get_id() == recorder_;
    const bool beside = copies_run_beside();
    void* p = recorded && fits(0) ? from_reserve(size) : nullptr;
    std::uint64_t freed = 0;
    if (p == nullptr && fits(size))
      p = list.empty() ? from_larger(size, beside, freed) : from_list(list, size, beside, freed);
    if (p == nullptr) p = from_system(size);
    if (beside) given_beside() = {p, freed};
    if (recorded) {
      try {
        reserve_of_[p] = open_;
      } catch (...) {
        put_back(p, whole_size(p, size));
        throw;
      }
    }
    stats_.bytes_in_use += size;
    if (stats_.bytes_in_use > stats_.peak_bytes) stats_.peak_bytes = stats_.bytes_in_use;
    if (stats_.bytes_in_use > peak_now_) peak_now_ = stats_.bytes_in_use;
    return p;
  }

  void release(void* p, std::size_t bytes) noexcept {
    std::size_t size = block_size(bytes);
    const std::lock_guard lock(mutex_);
    stats_.bytes_in_use -= size;
    size = whole_size(p, size);
    const int reserve = reserve_for(p);
    if (reserve == 0) return put_back(p, size);
    try {
      reserved_.push_back({reserve, p, size});
      stats_.bytes_reserved += size;
    } catch (...) {
      give(p, size);
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
    keep_bound();
  }
  void drop_reserve(int number) noexcept {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = reserved_.size(); i-- > 0;)
      if (const reserved_block b = reserved_[i]; b.reserve == number) {
        take_reserved(i);
        put_back(b.memory, b.size);
      }
    std::erase_if(reserve_of_, [number](const auto& entry) { return entry.second == number; });
    keep_bound();
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

  void set_allowance(std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    allowance_ = bytes;
    keep_bound();
  }

 private:
  struct reserved_block {
    int reserve;
    void* memory;
    std::size_t size;
  };

  blocks_of_size& free_list(std::size_t size) { return free_.of(size - Source::header); }

  /// Does the limit allow tensors `more` bytes? What is cached could be given back.
  bool fits(std::size_t more) const {
    return limit_ == 0 || stats_.bytes_in_use + stats_.bytes_reserved + more <= limit_;
  }
  /// True if that fits even with all cached blocks kept.
  bool fits_beside_cache(std::size_t more) const { return fits(stats_.bytes_cached + more); }

  /// The most that was in use lately, with `more` bytes in use from now on.
  std::size_t recent_peak(std::size_t more) const {
    return std::max({peak_now_, peak_before_, stats_.bytes_in_use + more});
  }
  /// True if the arena would hold more than its bound with another block of `more` bytes, taken for a tensor.
  bool over_bound(std::size_t more) const {
    const std::size_t held = stats_.bytes_held - stats_.bytes_reserved + more, peak = recent_peak(more);
    return held > peak && held - peak > std::max(peak, allowance_);
  }
  /// A GPU takes no memory back while a step is recorded on it, and none of a thread that records one elsewhere; and
  /// the step may use what is cached.
  bool can_give() const { return open_ == 0 && capturing() == nullptr; }

  void* from_list(blocks_of_size& list, std::size_t size, bool beside, std::uint64_t& freed) {
    const free_block b = beside ? list.take_oldest() : list.take_newest();
    freed = b.freed;
    stats_.bytes_cached -= size;
    return b.at;
  }

  /// A larger cached block, where the bound leaves no room for one from the system; null if none may serve. The ends
  /// that are unused must be at most a quarter of what the bound counts from, or they would take the place of the
  /// cache. A limit is for whole blocks, so under one no end is left unused.
  SINTER_COLD void* from_larger(std::size_t wanted, bool beside, std::uint64_t& freed) {
    if (wanted < least_shared || limit_ != 0 || !over_bound(wanted)) return nullptr;
    const std::size_t body = free_.next_larger(wanted - Source::header), size = Source::header + body;
    if (body == 0) return nullptr;
    const std::size_t held_by_tensors = stats_.bytes_held - stats_.bytes_reserved - stats_.bytes_cached;
    if (held_by_tensors - stats_.bytes_in_use + size - wanted > recent_peak(wanted) / 4) return nullptr;
    blocks_of_size& list = free_.of(body);
    larger_[beside ? list.oldest().at : list.newest().at] = static_cast<int>(block_sizes::number(body));
    return from_list(list, size, beside, freed);
  }
  /// The size of a block that served a request for `size`. From now on it counts as no longer in use.
  std::size_t whole_size(void* p, std::size_t size) {
    if (size < least_shared || larger_.empty()) return size;
    const auto at = larger_.find(p);
    if (at == larger_.end()) return size;
    size = Source::header + block_sizes::size(static_cast<std::size_t>(at->second));
    larger_.erase(at);
    return size;
  }

  /// Takes back a block that is no longer used. It goes to the free lists, or to the system if the limit or memory
  /// leaves no room in them.
  void put_back(void* p, std::size_t size) noexcept {
    try {
      if (fits_beside_cache(size) || !can_give()) {
        free_list(size).push({p, frees_ + 1});
        ++frees_;
        stats_.bytes_cached += size;
        return;
      }
    } catch (...) {
    }
    give(p, size);
  }

  /// The smallest free block of the open reserve that is large enough, and not above twice the size.
  SINTER_COLD void* from_reserve(std::size_t size) {
    const std::size_t most = size < least_shared ? size : 2 * size;
    std::size_t best = reserved_.size();
    for (std::size_t i = reserved_.size(); i-- > 0;) {
      const reserved_block& b = reserved_[i];
      if (b.reserve == open_ && size <= b.size && b.size <= most &&
          (best == reserved_.size() || b.size < reserved_[best].size))
        best = i;
    }
    if (best == reserved_.size()) return nullptr;
    const reserved_block b = reserved_[best];
    if (b.size > size) larger_[b.memory] = static_cast<int>(block_sizes::number(b.size - Source::header));
    take_reserved(best);
    return b.memory;
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

  SINTER_COLD void* from_system(std::size_t size) {
    keep_bound(size);
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
    stats_.bytes_held += size;
    return p;
  }
  void give(void* p, std::size_t size) noexcept {
    source_.give(p);
    ++stats_.system_frees;
    stats_.bytes_held -= size;
  }

  void drop_cache() noexcept {
    if (!can_give()) return;
    free_.take_all([this](void* p, std::size_t body) { give(p, Source::header + body); });
    stats_.bytes_cached = 0;
  }
  /// Gives back the block that was freed before all others, if its free was at most number `last`. False where none may
  /// go.
  bool give_oldest(std::uint64_t last) noexcept {
    const std::size_t body = can_give() ? free_.size_of_oldest(last) : 0;
    if (body == 0) return false;
    stats_.bytes_cached -= Source::header + body;
    give(free_.of(body).take_oldest().at, Source::header + body);
    return true;
  }
  /// Makes room for `more` bytes within the bound, as far as cached blocks take it.
  void keep_bound(std::size_t more = 0) noexcept {
    while (over_bound(more) && give_oldest(frees_)) {
    }
  }

  /// Forgets what was in use before the latest review, and gives back blocks that were not asked for since then.
  SINTER_COLD void review() noexcept {
    next_review_ = stats_.allocations + lately;
    peak_before_ = std::exchange(peak_now_, stats_.bytes_in_use);
    keep_bound();
    const std::uint64_t old = std::exchange(frees_at_review_, frees_);
    while (stats_.bytes_cached > allowance_ && give_oldest(old)) {
    }
  }

  std::string name_;
  Source source_;
  mutable fork_safe_mutex mutex_;
  free_blocks free_;
  std::uint64_t frees_ = 0;
  address_map larger_;                    // the numbers of sizes of blocks that are larger than asked for
  address_map reserve_of_;                // the reserves of blocks in use that belong to one
  std::vector<reserved_block> reserved_;  // the free blocks of all reserves
  int open_ = 0;
  std::thread::id recorder_;
  int last_reserve_ = 0;
  memory_stats stats_;
  std::size_t limit_ = 0;
  std::size_t allowance_ = Source::allowance;
  std::size_t peak_now_ = 0;     // of what is in use, since the latest review
  std::size_t peak_before_ = 0;  // between the two latest reviews
  std::uint64_t next_review_ = lately;
  std::uint64_t frees_at_review_ = 0;
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
// Not inside the class: g++ compiles what is there in every file, also where sinter::compiled holds it.
template <device D>
caching_arena<host_memory>& host_arena() {
  static constinit std::atomic<caching_arena<host_memory>*> arena{nullptr};
  return make_once(arena, [] { return new caching_arena<host_memory>(device_name<D>()); });
}
template <device D>
  requires is_cpu_v<D>
struct device_arena<D> {
  static caching_arena<host_memory>& get() { return host_arena<D>(); }
};

/// Memory from an arena for the length of a scope. Work that was started on a GPU may still use it afterwards: the work
/// of the block's next owner runs after that.
template <class Arena>
class block {
 public:
  block(Arena& arena, std::size_t bytes);
  block(block&& other) noexcept
      : arena_(other.arena_), bytes_(other.bytes_), data_(std::exchange(other.data_, nullptr)) {}
  block& operator=(block&&) = delete;
  ~block();
  void* data() const { return data_; }

 private:
  Arena* arena_;
  std::size_t bytes_;
  void* data_;
};

template <class Arena>
block<Arena>::block(Arena& arena, std::size_t bytes)
    : arena_(&arena), bytes_(bytes), data_(bytes > 0 ? arena.allocate(bytes) : nullptr) {}
template <class Arena>
block<Arena>::~block() {
  if (data_ != nullptr) arena_->release(data_, bytes_);
}

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

/// Sets by how much what D's arena keeps may exceed the most that was in use lately, in place of 1 MiB (64 MiB on a
/// GPU), where that most is less: `bytes_in_use + bytes_cached <= peak + max(peak, bytes)`. The largest
/// `std::size_t` lifts the bound.
template <device D = cpu>
void set_cache_allowance(std::size_t bytes) {
  detail::device_arena<D>::get().set_allowance(bytes);
}

}  // namespace sinter
