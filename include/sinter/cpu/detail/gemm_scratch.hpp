// sinter/cpu/detail/gemm_scratch.hpp: per-thread packing buffers, kept from one product to the next.
#pragma once

#include <cstddef>
#include <new>

namespace sinter::cpu_impl::detail {

struct scratch_block {
  static constexpr std::align_val_t alignment{64};
  void* memory;
  std::size_t bytes;

  void drop() noexcept {
    ::operator delete(memory, alignment);
    memory = nullptr;
    bytes = 0;
  }
};

// The blocks are trivial, and freed by an object of their own, so that a product computed by the destructor of some
// other thread-local or static object finds them empty instead of gone.
inline thread_local scratch_block scratch_blocks[3] = {};
struct scratch_owner {
  bool used = false;
  ~scratch_owner() {
    for (scratch_block& block : scratch_blocks) block.drop();
  }
};
inline thread_local scratch_owner owner_of_scratch;

/// Uninitialised memory of this thread for `count` elements, valid until the next call with the same slot.
template <class T>
T* scratch(int slot, std::size_t count) {
  scratch_block& block = scratch_blocks[slot];
  if (block.bytes < count * sizeof(T)) {
    owner_of_scratch.used = true;
    block.drop();
    block.memory = ::operator new(count * sizeof(T), scratch_block::alignment);
    block.bytes = count * sizeof(T);
  }
  return static_cast<T*>(block.memory);
}

}  // namespace sinter::cpu_impl::detail
