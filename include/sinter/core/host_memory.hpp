// sinter/core/host_memory.hpp: where the arenas of the host devices get their memory.
#pragma once

#include "sinter/core/platform.hpp"

namespace sinter::detail {

/// Memory of the system. Large blocks begin at different places of a page, in turn: caches and write buffers find a
/// line by the low bits of its address, and operands of one statement that all began a page would compete for the same
/// few of them.
class host_memory {
 public:
  static constexpr std::size_t alignment = 64;
  static constexpr std::size_t header = 64;                       ///< of a tensor's block, in front of its elements
  static constexpr std::size_t allowance = std::size_t{1} << 20;  ///< see caching_arena
  static constexpr std::size_t huge_page = std::size_t{2} << 20;
  static constexpr std::size_t page = 4096;
  static constexpr std::size_t places = 16;                     ///< in a page, where blocks begin
  static constexpr std::size_t placed = std::size_t{64} << 10;  ///< smallest block to which that applies

  void* take(std::size_t size) noexcept {
    const std::size_t offset = alignment + (size >= placed ? turn_++ % places * (page / places) : 0);
    const std::size_t unit = size >= huge_page ? huge_page : size >= placed ? page : alignment;
    auto* const base = static_cast<char*>(take_aligned(unit, (offset + size + unit - 1) / unit * unit));
    if (base == nullptr) return nullptr;
    if (size >= huge_page) ask_for_huge_pages(base, offset + size);
    char* const block = base + offset;
    reinterpret_cast<char**>(block)[-1] = base;
    return block;
  }
  void give(void* block) noexcept { give_aligned(static_cast<char**>(block)[-1]); }

 private:
  std::size_t turn_ = 0;
};

}  // namespace sinter::detail
