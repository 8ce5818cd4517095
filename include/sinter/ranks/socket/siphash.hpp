// sinter/ranks/socket/siphash.hpp: SipHash-2-4 with 128 bits, the keyed check of what comes over a connection.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "sinter/config.hpp"

namespace sinter::detail {

using siphash_key = std::array<std::uint64_t, 2>;
using siphash_tag = std::array<std::byte, 16>;

/// Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012; 128 bits as in its reference code of 2014. Numbers
/// are little-endian.
class siphash {
 public:
  explicit siphash(const siphash_key& key)
      : v0_(key[0] ^ 0x736f6d6570736575u),
        v1_(key[1] ^ 0x646f72616e646f6du ^ 0xee),
        v2_(key[0] ^ 0x6c7967656e657261u),
        v3_(key[1] ^ 0x7465646279746573u) {}

  void add(std::uint64_t word) {
    v3_ ^= word;
    mix();
    mix();
    v0_ ^= word;
    length_ += 8;
  }
  /// The last bytes, and the tag of all.
  siphash_tag digest(std::span<const std::byte> rest) {
    for (; rest.size() >= 8; rest = rest.subspan(8)) add(word_at(rest, 8));
    const std::uint64_t length = length_ + rest.size();
    add(word_at(rest, rest.size()) | length << 56);
    v2_ ^= 0xee;
    siphash_tag tag;
    put(tag, 0);
    v1_ ^= 0xdd;
    put(tag, 8);
    return tag;
  }

 private:
  static std::uint64_t word_at(std::span<const std::byte> from, std::size_t n) {
    std::uint64_t word = 0;
    if (std::endian::native == std::endian::little && n == 8) {
      std::memcpy(&word, from.data(), 8);
    } else {
      for (std::size_t i = 0; i < n; ++i) word |= static_cast<std::uint64_t>(from[i]) << 8 * i;
    }
    return word;
  }
  void put(siphash_tag& tag, std::size_t at) {
    for (int i = 0; i < 4; ++i) mix();
    const std::uint64_t half = v0_ ^ v1_ ^ v2_ ^ v3_;
    for (std::size_t i = 0; i < 8; ++i) tag[at + i] = static_cast<std::byte>(half >> 8 * i);
  }
  void mix() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_, v1_, v2_, v3_, length_ = 0;
};

}  // namespace sinter::detail
