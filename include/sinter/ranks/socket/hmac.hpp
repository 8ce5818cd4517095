// sinter/ranks/socket/hmac.hpp: SHA-256 and HMAC, by which processes prove to each other that they know a secret.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "sinter/config.hpp"

namespace sinter::detail {

using sha256_digest = std::array<std::uint8_t, 32>;

/// FIPS 180-4, "Secure Hash Standard", 2015.
class sha256 {
 public:
  void add(const void* data, std::size_t n) {
    const auto* from = static_cast<const std::uint8_t*>(data);
    length_ += n;
    while (n > 0) {
      const std::size_t room = sizeof block_ - filled_, m = n < room ? n : room;
      std::memcpy(block_ + filled_, from, m);
      filled_ += m;
      from += m;
      n -= m;
      if (filled_ == sizeof block_) mix();
    }
  }
  sha256_digest digest() {
    const std::uint64_t bits = length_ * 8;
    const std::uint8_t one = 0x80, zero = 0;
    add(&one, 1);
    while (filled_ != 56) add(&zero, 1);
    std::uint8_t length[8];
    for (int i = 0; i < 8; ++i) length[i] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
    add(length, 8);
    sha256_digest out;
    for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return out;
  }

 private:
  void mix() {
    static constexpr std::uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    std::uint32_t w[64];
    for (std::size_t i = 0; i < 16; ++i)
      w[i] = static_cast<std::uint32_t>(block_[4 * i]) << 24 | static_cast<std::uint32_t>(block_[4 * i + 1]) << 16 |
             static_cast<std::uint32_t>(block_[4 * i + 2]) << 8 | block_[4 * i + 3];
    for (std::size_t i = 16; i < 64; ++i) {
      const std::uint32_t a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
    }
    std::uint32_t s[8];
    std::memcpy(s, state_, sizeof s);
    for (std::size_t i = 0; i < 64; ++i) {
      const std::uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]),
                          majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
      const std::uint32_t t1 =
          s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) + choice + k[i] + w[i];
      const std::uint32_t t2 = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) + majority;
      for (std::size_t j = 7; j > 0; --j) s[j] = s[j - 1];
      s[4] += t1;
      s[0] = t1 + t2;
    }
    for (std::size_t i = 0; i < 8; ++i) state_[i] += s[i];
    filled_ = 0;
  }

  std::uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint8_t block_[64];
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;
};

/// RFC 2104, "HMAC: Keyed-Hashing for Message Authentication", 1997, with SHA-256.
inline sha256_digest hmac(std::string_view key, std::string_view message) {
  std::uint8_t padded[64] = {};
  if (key.size() > sizeof padded) {
    sha256 h;
    h.add(key.data(), key.size());
    const sha256_digest short_key = h.digest();
    std::memcpy(padded, short_key.data(), short_key.size());
  } else if (!key.empty()) {
    std::memcpy(padded, key.data(), key.size());
  }
  const auto keyed = [&](std::uint8_t pad) {
    std::uint8_t block[64];
    for (std::size_t i = 0; i < sizeof block; ++i) block[i] = padded[i] ^ pad;
    sha256 h;
    h.add(block, sizeof block);
    return h;
  };
  sha256 inner = keyed(0x36), outer = keyed(0x5c);
  inner.add(message.data(), message.size());
  const sha256_digest first = inner.digest();
  outer.add(first.data(), first.size());
  return outer.digest();
}

/// Takes as long for every pair, so that a stranger learns nothing from the time.
template <class Digest>
bool are_equal_digests(const Digest& a, const Digest& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

}  // namespace sinter::detail
