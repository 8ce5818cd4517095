// sinter/core/free_blocks.hpp: the free blocks of an arena, by size and by age.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sinter/config.hpp"

namespace sinter::detail {

/// The sizes of blocks: multiples of 64 bytes up to 512, then eight sizes per power of two. They are numbered in
/// ascending order, so that number + 8 is twice the size from 512 bytes on.
struct block_sizes {
  static constexpr std::size_t round_up(std::size_t bytes) {
    if (bytes <= 512) return bytes == 0 ? 64 : (bytes + 63) / 64 * 64;
    const std::size_t step = std::bit_floor(bytes - 1) / 8;
    return (bytes + step - 1) & ~(step - 1);  // a power of two
  }
  static constexpr std::size_t number(std::size_t size) {
    if (size < 512) return size / 64;
    const auto log = static_cast<std::size_t>(std::bit_width(size)) - 1;
    return 8 * (log - 8) + ((size >> (log - 3)) & 7);
  }
  static constexpr std::size_t size(std::size_t number) {
    return number < 8 ? number * 64 : (8 + number % 8) << (number / 8 + 5);
  }
};

struct free_block {
  void* at;
  std::uint64_t freed;  ///< the number of this free, in the order of all
};

/// The free blocks of one size, in the order in which they were freed.
class blocks_of_size {
 public:
  bool empty() const;
  const free_block& oldest() const;
  const free_block& newest() const;
  void push(const free_block& b);
  free_block take_newest();
  free_block take_oldest();

 private:
  std::vector<free_block> blocks_;
  std::size_t first_ = 0;  // those in front of it were taken
};

/// The free blocks of all sizes.
class free_blocks {
 public:
  /// Those of a size. Errors: bad_alloc.
  blocks_of_size& of(std::size_t size) {
    const std::size_t number = block_sizes::number(size);
    if (number >= sizes_.size()) add_sizes(number + 1);
    return sizes_[number];
  }
  /// The smallest size above `size`, of at most twice that, of which there is a block; 0: none.
  std::size_t next_larger(std::size_t size) const;
  /// The size of the block that was freed before all others, if its free was at most number `last`; else 0. Takes time
  /// in proportion to the number of sizes, not of blocks.
  std::size_t size_of_oldest(std::uint64_t last) const;
  /// Hands all of them to take(address, size).
  template <class F>
  void take_all(const F& take) {
    for (std::size_t n = 0; n < sizes_.size(); ++n)
      while (!sizes_[n].empty()) take(sizes_[n].take_newest().at, block_sizes::size(n));
  }

 private:
  void add_sizes(std::size_t count);

  std::vector<blocks_of_size> sizes_;  // by number; there are no blocks of number 0
};

#if SINTER_DEFINES

SINTER_SHARED bool blocks_of_size::empty() const { return first_ == blocks_.size(); }
SINTER_SHARED const free_block& blocks_of_size::oldest() const { return blocks_[first_]; }
SINTER_SHARED const free_block& blocks_of_size::newest() const { return blocks_.back(); }
SINTER_SHARED void blocks_of_size::push(const free_block& b) { blocks_.push_back(b); }
SINTER_SHARED free_block blocks_of_size::take_newest() {
  const free_block b = blocks_.back();
  blocks_.pop_back();
  return b;
}
SINTER_SHARED free_block blocks_of_size::take_oldest() {
  const free_block b = blocks_[first_++];
  if (2 * first_ > blocks_.size()) {
    blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }
  return b;
}

SINTER_SHARED_COLD void free_blocks::add_sizes(std::size_t count) { sizes_.resize(count); }
SINTER_SHARED std::size_t free_blocks::next_larger(std::size_t size) const {
  const std::size_t number = block_sizes::number(size), end = std::min(number + 9, sizes_.size());
  for (std::size_t n = number + 1; n < end; ++n)
    if (!sizes_[n].empty()) return block_sizes::size(n);
  return 0;
}
SINTER_SHARED std::size_t free_blocks::size_of_oldest(std::uint64_t last) const {
  std::size_t found = 0;
  for (std::size_t n = 1; n < sizes_.size(); ++n)
    if (!sizes_[n].empty() && sizes_[n].oldest().freed <= last) {
      found = n;
      last = sizes_[n].oldest().freed;
    }
  return block_sizes::size(found);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
