// sinter/random/philox.hpp: Philox 4x32-10, random words as a pure function of key and counter.
//
// J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC'11.
// There is no state to share: any element of any draw is computed alone, so that the same bits come out whatever the
// device, the number of threads or the order.
#pragma once

#include <cstdint>

#include "sinter/config.hpp"
#include "sinter/core/types.hpp"

namespace sinter {

/// Four random words, or a counter.
struct philox_block {
  std::uint32_t word[4];
  constexpr bool operator==(const philox_block&) const = default;
};

/// Names one draw: the generator's seed is Philox's key, the number of the draw the high half of its counter. Where a
/// step is captured, whose draws come again with every replay, `run` counts the runs before in the device's memory: run
/// r makes draw + 2^32 r of it. A draw for some samples of a batch starts at element `first` of the whole batch's;
/// where these samples are no neighbours there, `skipped` elements of it lie between those of two, `of_sample` each.
struct random_key {
  std::uint64_t seed = 0;
  std::uint64_t draw = 0;
  const std::int64_t* run = nullptr;
  index_t first = 0;
  index_t skipped = 0, of_sample = 1;
  constexpr bool operator==(const random_key&) const = default;
};

namespace detail {

struct word_pair {
  std::uint32_t low, high;
};
/// The product of two words. A GPU multiplies words; left to itself its compiler makes long products of what they are
/// part of.
SINTER_WORD word_pair multiply_words(std::uint32_t a, std::uint32_t b) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) return {a * b, __umulhi(a, b)};
#endif
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product), static_cast<std::uint32_t>(product >> 32)};
}

}  // namespace detail

/// The ten rounds of Philox 4x32.
SINTER_WORD philox_block philox4x32(philox_block counter, std::uint64_t key) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  std::uint32_t a = counter.word[0], b = counter.word[1], c = counter.word[2], d = counter.word[3];
  SINTER_UNROLL
  for (int round = 0; round < 10; ++round) {
    const detail::word_pair p = detail::multiply_words(0xD2511F53u, a);
    const detail::word_pair q = detail::multiply_words(0xCD9E8D57u, c);
    a = q.high ^ b ^ k0;
    b = q.low;
    c = p.high ^ d ^ k1;
    d = p.low;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{a, b, c, d}};
}

/// Block number `index` of a draw.
SINTER_WORD philox_block philox4x32(const random_key& key, std::uint64_t index) {
  return philox4x32(philox_block{{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32),
                                  static_cast<std::uint32_t>(key.draw), static_cast<std::uint32_t>(key.draw >> 32)}},
                    key.seed);
}

namespace detail {

/// Word number `place` of a block. Chosen, not indexed: what is indexed would lie in a GPU's memory.
SINTER_WORD std::uint32_t word_at(const philox_block& b, unsigned place) {
  return place < 2 ? (place == 0 ? b.word[0] : b.word[1]) : place == 2 ? b.word[2] : b.word[3];
}

/// random_words of a draw whose samples are no neighbours in the whole batch.
template <int Each, std::size_t Words>
SINTER_WORD void scattered_words(const random_key& key, index_t first, std::uint32_t (&to)[Words]) {
  for (int i = 0; i < int{Words}; i += Each) {
    const index_t element = first + i / Each;
    const auto start = static_cast<std::uint64_t>(key.first + element + element / key.of_sample * key.skipped) * Each;
    const philox_block b = philox4x32(key, start / 4);
    for (int w = 0; w < Each; ++w) to[i + w] = word_at(b, static_cast<unsigned>(start % 4) + static_cast<unsigned>(w));
  }
}

/// The words of elements first, first + 1, ... of a draw that spends Each (1, 2 or 4) words on an element: element i
/// owns words i Each, ... of the sequence of blocks.
template <int Each, std::size_t Words>
SINTER_WORD void random_words(const random_key& of_step, index_t first, std::uint32_t (&to)[Words]) {
  const std::uint64_t run = of_step.run != nullptr ? static_cast<std::uint64_t>(*of_step.run) : 0;
  random_key key = of_step;
  key.draw += run << 32;
  if (key.skipped != 0) return scattered_words<Each>(key, first, to);
  const std::uint64_t start = static_cast<std::uint64_t>(of_step.first + first) * Each;
  std::uint64_t block = start / 4;
  auto place = static_cast<unsigned>(start % 4);
  if constexpr (Words % 4 == 0) {
    if (place == 0) {
      for (int i = 0; i < int{Words}; i += 4, ++block) {
        const philox_block b = philox4x32(key, block);
        to[i] = b.word[0], to[i + 1] = b.word[1], to[i + 2] = b.word[2], to[i + 3] = b.word[3];
      }
      return;
    }
  }
  philox_block b = philox4x32(key, block);
  for (int i = 0; i < int{Words}; ++i) {
    if (place == 4) {
      b = philox4x32(key, ++block);
      place = 0;
    }
    to[i] = word_at(b, place++);
  }
}

/// The high half of the 128-bit product.
SINTER_WORD std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
#if defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) return __umul64hi(a, b);
#endif
  const std::uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const std::uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  const std::uint64_t carry = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (carry >> 32);
}

}  // namespace detail
}  // namespace sinter
