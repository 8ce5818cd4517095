// tests/train/events.hpp: reads files for TensorBoard; knows nothing of how Sinter writes them.
#pragma once

#include "../catch.hpp"

#include <bit>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sinter/io.hpp>

namespace events {

/// CRC-32C from the highest bit on, as its standard defines it, with the bits of bytes and of the result reversed.
inline std::uint32_t crc32c(std::string_view bytes) {
  const auto reversed = [](std::uint32_t x, int bits) {
    std::uint32_t y = 0;
    for (int i = 0; i < bits; ++i) y |= (x >> i & 1u) << (bits - 1 - i);
    return y;
  };
  std::uint32_t c = 0xffffffffu;
  for (const char b : bytes) {
    c ^= reversed(static_cast<unsigned char>(b), 8) << 24;
    for (int k = 0; k < 8; ++k) c = c << 1 ^ ((c & 0x80000000u) != 0 ? 0x1EDC6F41u : 0);
  }
  return ~reversed(c, 32);
}
inline std::uint32_t masked(std::uint32_t c) { return std::rotr(c, 15) + 0xa282ead8u; }

inline std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t x = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) x |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return x;
}

/// Fields of a message by number: the bits of numbers, and what has a size. Throws std::out_of_range where it ends
/// early.
struct message {
  std::map<int, std::uint64_t> numbers;
  std::map<int, std::string> pieces;

  explicit message(std::string_view from) {
    const auto varint = [&] {
      std::uint64_t x = 0;
      for (int shift = 0;; shift += 7) {
        const auto b = static_cast<unsigned char>(from.at(0));
        from.remove_prefix(1);
        x |= std::uint64_t{b & 0x7fu} << shift;
        if (b < 0x80) return x;
      }
    };
    const auto take = [&](std::size_t n) {
      if (from.size() < n) throw std::out_of_range("a field");
      const std::string_view all = from.substr(0, n);
      from.remove_prefix(n);
      return all;
    };
    while (!from.empty()) {
      const std::uint64_t key = varint();
      const int field = static_cast<int>(key >> 3);
      const bool once = !numbers.contains(field) && !pieces.contains(field);
      CHECK(once);
      if ((key & 7) == 0) numbers[field] = varint();
      else if ((key & 7) == 1) numbers[field] = little_endian(take(8));
      else if ((key & 7) == 5) numbers[field] = little_endian(take(4));
      else pieces[field] = take(varint());
    }
  }
  double real(int field) const { return std::bit_cast<double>(numbers.at(field)); }
  message at(int field) const { return message(pieces.at(field)); }
  std::vector<double> reals(int field) const {
    std::vector<double> all;
    for (std::string_view rest = pieces.at(field); !rest.empty(); rest.remove_prefix(8))
      all.push_back(std::bit_cast<double>(little_endian(rest.substr(0, 8))));
    return all;
  }
};

/// The events of a file. Sums that are wrong throw.
inline std::vector<message> events_in(const std::string& path) {
  std::vector<message> all;
  const std::string file = sinter::detail::read_file(path);
  for (std::string_view rest = file; !rest.empty();) {
    const std::size_t size = little_endian(rest.substr(0, 8));
    if (masked(crc32c(rest.substr(0, 8))) != little_endian(rest.substr(8, 4))) throw std::runtime_error("a size");
    const std::string_view event = rest.substr(12, size);
    if (masked(crc32c(event)) != little_endian(rest.substr(12 + size, 4))) throw std::runtime_error("an event");
    all.emplace_back(event);
    rest.remove_prefix(16 + size);
  }
  return all;
}
/// The value in an event.
inline message value_in(const message& event) { return event.at(5).at(1); }
inline float scalar_in(const message& value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.numbers.at(2)));
}

}  // namespace events
