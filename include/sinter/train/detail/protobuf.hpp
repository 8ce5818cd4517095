// sinter/train/detail/protobuf.hpp: writes messages of protocol buffers, field by field.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sinter/config.hpp"

namespace sinter::detail {

/// Adds the bytes of a number, the lowest first.
SINTER_SHARED_COLD void put_little_endian(std::string& to, std::uint64_t bits, int bytes);

/// A message of protocol buffers. A reader finds fields by their numbers; one that is not put has the value 0 or "".
/// Source: protobuf.dev/programming-guides/encoding.
class protobuf_message {
 public:
  /// A field of type int32, int64 or an enum. Negative numbers take ten bytes.
  void integer(std::uint32_t field, std::int64_t value);
  void real(std::uint32_t field, double value);   ///< double
  void single(std::uint32_t field, float value);  ///< float
  /// A string, bytes, or a message as its bytes.
  void bytes(std::uint32_t field, std::string_view value);
  void message(std::uint32_t field, const protobuf_message& value) { bytes(field, value.bytes_); }
  /// `repeated double`, packed.
  void reals(std::uint32_t field, std::span<const double> values);

  const std::string& bytes() const { return bytes_; }

 private:
  void varint(std::uint64_t value);
  /// How the value after it is laid out: 0 a varint, 1 eight bytes, 2 a size and so many bytes, 5 four bytes.
  void key(std::uint32_t field, std::uint32_t layout) { varint(field << 3 | layout); }

  std::string bytes_;
};

#if SINTER_DEFINES

SINTER_SHARED_COLD void put_little_endian(std::string& to, std::uint64_t bits, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(bits >> (8 * i) & 0xff);
}
SINTER_SHARED_COLD void protobuf_message::varint(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
  bytes_ += static_cast<char>(value);
}
SINTER_SHARED_COLD void protobuf_message::integer(std::uint32_t field, std::int64_t value) {
  key(field, 0);
  varint(static_cast<std::uint64_t>(value));
}
SINTER_SHARED_COLD void protobuf_message::real(std::uint32_t field, double value) {
  key(field, 1);
  put_little_endian(bytes_, std::bit_cast<std::uint64_t>(value), 8);
}
SINTER_SHARED_COLD void protobuf_message::single(std::uint32_t field, float value) {
  key(field, 5);
  put_little_endian(bytes_, std::bit_cast<std::uint32_t>(value), 4);
}
SINTER_SHARED_COLD void protobuf_message::bytes(std::uint32_t field, std::string_view value) {
  key(field, 2);
  varint(value.size());
  bytes_ += value;
}
SINTER_SHARED_COLD void protobuf_message::reals(std::uint32_t field, std::span<const double> values) {
  key(field, 2);
  varint(values.size() * 8);
  for (const double one : values) put_little_endian(bytes_, std::bit_cast<std::uint64_t>(one), 8);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
