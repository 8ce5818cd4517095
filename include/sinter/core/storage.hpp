// sinter/core/storage.hpp: reference-counted memory on a device, and how each device allocates and copies.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "sinter/core/arena.hpp"
#include "sinter/core/device.hpp"
#include "sinter/core/shape.hpp"

namespace sinter::detail {

/// Header of a block of device memory, shared by all handles and views on it.
struct storage {
  std::atomic<std::int64_t> references{1};
  std::atomic<std::uint64_t> version{0};  ///< grows with every write in place; the tape compares it
  void* data = nullptr;
  std::size_t bytes = 0;
  void (*destroy)(storage*) noexcept = nullptr;
  bool borrowed = false;              ///< the memory is someone else's
  std::atomic<bool> is_state{false};  ///< of a module's buffer; see undo_scope
};

class storage_ptr {
 public:
  storage_ptr() = default;
  explicit storage_ptr(storage* s) noexcept : s_(s) {}
  storage_ptr(const storage_ptr& other) noexcept : s_(other.s_) {
    if (s_ != nullptr) s_->references.fetch_add(1, std::memory_order_relaxed);
  }
  storage_ptr(storage_ptr&& other) noexcept : s_(std::exchange(other.s_, nullptr)) {}
  storage_ptr& operator=(storage_ptr other) noexcept {
    std::swap(s_, other.s_);
    return *this;
  }
  ~storage_ptr() {
    if (s_ != nullptr) release(s_);
  }

  storage* get() const noexcept { return s_; }
  storage* operator->() const noexcept { return s_; }
  explicit operator bool() const noexcept { return s_ != nullptr; }
  std::int64_t use_count() const noexcept { return s_ != nullptr ? s_->references.load(std::memory_order_acquire) : 0; }

 private:
  // A call, not inlined: expressions own handles, and every statement would repeat this for each of them.
  static void release(storage* s) noexcept;

  storage* s_ = nullptr;
};

/// The objects met so far, told apart by address: tied parameters, operands that stand in a formula twice.
class addresses {
 public:
  /// Is p new? Then it is added.
  bool add(const void* p);
  void clear();

 private:
  std::vector<const void*> seen_;
};

/// How device D allocates, fills and copies. `cuda<I>` is specialised in the CUDA backend; without it nothing runs.
template <device D>
struct device_runtime {
  static storage_ptr allocate(std::size_t);  // without a body: formulas name it, and their passes say what is missing
  static void copy_within(void*, const void*, std::size_t) { static_cast<void>(sizeof(runs_in_this_file<D>)); }
  static void copy_to_host(void*, const void*, std::size_t) { static_cast<void>(sizeof(runs_in_this_file<D>)); }
  static void copy_from_host(void*, const void*, std::size_t) { static_cast<void>(sizeof(runs_in_this_file<D>)); }
  template <device From>
  static void copy_from_device(void*, const void*, std::size_t) {
    static_cast<void>(sizeof(runs_in_this_file<D>));
  }
  static void check_place(const char*, const void*, std::size_t) { static_cast<void>(sizeof(runs_in_this_file<D>)); }
};

template <device D>
storage_ptr allocate_on_host(std::size_t bytes);

template <device D>
  requires is_cpu_v<D>
struct device_runtime<D> {
  // The header lies in front of the data, one cache line, so that a tensor is one block.
  static constexpr std::size_t header = 64;
  static_assert(sizeof(storage) <= header);

  static bool available() { return true; }

  static storage_ptr allocate(std::size_t bytes) { return allocate_on_host<D>(bytes); }

  static void copy_within(void* to, const void* from, std::size_t bytes) {
    if (bytes != 0) std::memcpy(to, from, bytes);
  }
};
/// Ends what begins a block of the arena of D.
template <device D>
void return_block(storage* s) noexcept {
  const std::size_t size = s->bytes + device_runtime<D>::header;
  s->~storage();
  device_arena<D>::get().release(s, size);
}
template <device D>
storage_ptr allocate_on_host(std::size_t bytes) {
  constexpr std::size_t header = device_runtime<D>::header;
  void* block = device_arena<D>::get().allocate(bytes + header);
  storage* s = new (block) storage;
  s->data = static_cast<char*>(block) + header;
  s->bytes = bytes;
  s->destroy = &return_block<D>;
  return storage_ptr(s);
}

/// Memory for the elements of a dense tensor, and its strides.
template <device D>
[[gnu::noinline]] storage_ptr allocate_dense(const index_t* shape, int rank, std::size_t element_size,
                                             index_t* strides) {
  const index_t n = checked_numel("tensor", shape, rank, element_size);
  row_major_strides(shape, rank, strides);
  return device_runtime<D>::allocate(static_cast<std::size_t>(n) * element_size);
}

template <device D>
storage_ptr copy_of_memory(const void* from, std::size_t bytes) {
  storage_ptr copy = device_runtime<D>::allocate(bytes);
  device_runtime<D>::copy_within(copy->data, from, bytes);
  return copy;
}

/// Wraps memory that stays its owner's.
SINTER_SHARED storage_ptr borrow_storage(void* data, std::size_t bytes);

/// The same of memory that `owner` keeps. It is empty, for the caller to fill, and ends with the storage.
template <class Owner>
struct owning_storage : storage {
  Owner owner{};
  owning_storage(void* memory, std::size_t size) {
    data = memory;
    bytes = size;
    borrowed = true;
    destroy = [](storage* p) noexcept { delete static_cast<owning_storage*>(p); };
  }
};

#if SINTER_DEFINES

SINTER_SHARED_NOINLINE void storage_ptr::release(storage* s) noexcept {
  if (s->references.fetch_sub(1, std::memory_order_acq_rel) == 1) s->destroy(s);
}

SINTER_SHARED bool addresses::add(const void* p) {
  if (std::find(seen_.begin(), seen_.end(), p) != seen_.end()) return false;
  seen_.push_back(p);
  return true;
}

SINTER_SHARED void addresses::clear() { seen_.clear(); }

SINTER_SHARED storage_ptr borrow_storage(void* data, std::size_t bytes) {
  auto* s = new storage;
  s->data = data;
  s->bytes = bytes;
  s->borrowed = true;
  s->destroy = [](storage* p) noexcept { delete p; };
  return storage_ptr(s);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail

namespace sinter {

namespace detail {

/// Says why a GPU cannot be used; nothing if it can. Set by a translation unit that carries the CUDA backend.
inline std::string (*cuda_trouble)(int ordinal) = nullptr;

template <device D>
std::string trouble_with() {
  if constexpr (is_cpu_v<D>) return {};
  else if (cuda_trouble == nullptr) return "no file of this program was compiled with the CUDA backend, by nvcc";
  else return cuda_trouble(device_ordinal_v<D>);
}

}  // namespace detail

template <device D>
bool available() {
  return detail::trouble_with<D>().empty();
}

}  // namespace sinter
