// sinter/ranks/socket/seal.hpp: records under a key of their connection and direction, in their order.
#pragma once

#include <algorithm>
#include <memory>

#include "sinter/ranks/socket/hmac.hpp"
#include "sinter/ranks/socket/siphash.hpp"
#include "sinter/ranks/transport.hpp"

namespace sinter::detail {

/// What is done to all that follows the handshake of a connection. The ranks must agree.
enum class protection : std::uint8_t { none, integrity, encryption };

SINTER_COLD inline const char* text_of(protection p) {
  constexpr const char* texts[] = {".integrity off", ".integrity on", ".encryption on"};
  return texts[static_cast<int>(p)];
}

/// Bytes go in records of at most so many, each with a tag of tag_size bytes behind it.
inline constexpr std::size_t record_size = 1 << 16, tag_size = 16;

/// One direction of a connection, encrypted: the numbers of records are not used twice.
class record_cipher {
 public:
  virtual ~record_cipher() = default;
  /// Puts as many bytes at `to`.
  virtual siphash_tag encrypt(std::uint64_t number, std::span<const std::byte> from, std::byte* to) = 0;
  /// False where the tag is not theirs; then `to` holds nothing to be used.
  virtual bool decrypt(std::uint64_t number, std::span<const std::byte> from, siphash_tag tag, std::byte* to) = 0;
};
/// Null in a program that cannot encrypt.
using make_record_cipher = std::unique_ptr<record_cipher> (*)(const sha256_digest& key, bool sends);

/// One direction of a connection: seals the records that one side sends, or opens those that the other one gets. The
/// tag covers the number of the record, from 0, and its length, so a record that is changed, lost, repeated or swapped
/// does not open.
class record_seal {
 public:
  record_seal() = default;
  record_seal(protection by, const sha256_digest& key, bool sends, make_record_cipher encryption) : by_(by) {
    for (std::size_t i = 0; i < 16; ++i) key_[i / 8] |= static_cast<std::uint64_t>(key[i]) << 8 * (i % 8);
    if (by == protection::encryption) cipher_ = encryption(key, sends);
  }
  bool is_on() const { return by_ != protection::none; }

  /// Puts the record at `to`, where record.size() + tag_size bytes fit.
  void seal(std::span<const std::byte> record, std::byte* to) {
    const std::uint64_t number = records_++;
    siphash_tag tag;
    if (cipher_) {
      tag = cipher_->encrypt(number, record, to);
    } else {
      std::memcpy(to, record.data(), record.size());
      tag = check_of(number, record);
    }
    std::memcpy(to + record.size(), tag.data(), tag_size);
  }
  /// The record in `sealed`, which ends with its tag, goes to `to`; nothing goes there where the tag is wrong, which
  /// is false. `sealed` may be overwritten.
  bool open(std::span<std::byte> sealed, std::byte* to) {
    const std::uint64_t number = records_++;
    const std::span<std::byte> record = sealed.first(sealed.size() - tag_size);
    siphash_tag theirs;
    std::memcpy(theirs.data(), sealed.data() + record.size(), tag_size);
    const bool is_right = cipher_ ? cipher_->decrypt(number, record, theirs, record.data())
                                  : are_equal_digests(check_of(number, record), theirs);
    if (is_right) std::memcpy(to, record.data(), record.size());
    return is_right;
  }

 private:
  siphash_tag check_of(std::uint64_t number, std::span<const std::byte> record) const {
    siphash h(key_);
    h.add(number);
    h.add(record.size());
    return h.digest(record);
  }

  protection by_ = protection::none;
  siphash_key key_{};
  std::unique_ptr<record_cipher> cipher_;
  std::uint64_t records_ = 0;
};

/// The records of `bytes`, one after the other.
inline std::vector<std::byte> sealed_records(record_seal& by, std::span<const std::byte> bytes) {
  std::vector<std::byte> all;
  while (!bytes.empty()) {
    const std::size_t n = std::min(record_size, bytes.size()), at = all.size();
    all.resize(at + n + tag_size);
    by.seal(bytes.first(n), all.data() + at);
    bytes = bytes.subspan(n);
  }
  return all;
}

/// What a rank says where a record does not open.
SINTER_COLD inline trouble altered(int from) {
  return {communication_failure::backend, from,
          joined({"what came from rank ", from,
                  " is not what it sent: bytes were changed, lost, repeated or swapped on the way; look at what lies "
                  "between the ranks"})};
}

}  // namespace sinter::detail
