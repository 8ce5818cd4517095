// sinter/ranks/socket/wire.hpp: what goes over sockets between ranks: the first words of a connection, and frames.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "sinter/ranks/socket/seal.hpp"
#include "sinter/ranks/transport.hpp"

namespace sinter::detail {

/// Numbers little-endian.
class wire_writer {
 public:
  template <class N>
  void number(N value) {
    for (std::size_t i = 0; i < sizeof(N); ++i)
      bytes.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> 8 * i));
  }
  void raw(const void* data, std::size_t n) {
    const auto* from = static_cast<const std::byte*>(data);
    bytes.insert(bytes.end(), from, from + n);
  }
  std::vector<std::byte> bytes;
};
/// Reads what the caller knows to be there.
class wire_reader {
 public:
  explicit wire_reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class N>
  N number() {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(N); ++i) value |= static_cast<std::uint64_t>(rest_[i]) << 8 * i;
    rest_ = rest_.subspan(sizeof(N));
    return static_cast<N>(value);
  }
  void raw(void* to, std::size_t n) {
    std::memcpy(to, rest_.data(), n);
    rest_ = rest_.subspan(n);
  }

 private:
  std::span<const std::byte> rest_;
};

/// data: a part of a collective, or a message; goodbye: the rank has ended well; trouble: why it gives up, as text;
/// wait: what it has waited for, for a while, or that it goes on.
enum class frame_kind : std::uint8_t { data, goodbye, trouble, wait };

/// What stands before the bytes of a frame.
struct frame {
  frame_kind kind = frame_kind::data;
  communication_failure failure = communication_failure::backend;  ///< of trouble
  std::int32_t peer = -1;
  call_header call;
  std::uint64_t bytes = 0;
};

inline constexpr std::uint32_t frame_mark = 0x32524e53;  // "SNR2"
inline constexpr std::size_t frame_size = 4 + 2 + 4 + 8 + 72;

inline std::vector<std::byte> to_wire(const frame& f) {
  wire_writer w;
  w.number(frame_mark);
  w.number(static_cast<std::uint8_t>(f.kind));
  w.number(static_cast<std::uint8_t>(f.failure));
  w.number(f.peer);
  w.number(f.bytes);
  const call_header& c = f.call;
  w.number(c.number);
  w.number(c.count);
  w.number(c.hash);
  w.number(c.root);
  w.number(static_cast<std::uint8_t>(c.op));
  w.number(static_cast<std::uint8_t>(c.element));
  w.number(c.is_max);
  w.number(c.name_length);
  w.raw(c.name, sizeof c.name);
  return w.bytes;
}

/// The frame that the first frame_size bytes say; nothing where they say none. It allocates nothing, and the values of
/// all enumerations are in range.
inline std::optional<frame> read_frame(std::span<const std::byte, frame_size> bytes) {
  wire_reader r(bytes);
  frame f;
  if (r.number<std::uint32_t>() != frame_mark) return {};
  const auto kind = r.number<std::uint8_t>(), failure = r.number<std::uint8_t>();
  f.peer = r.number<std::int32_t>();
  f.bytes = r.number<std::uint64_t>();
  call_header& c = f.call;
  c.number = r.number<std::int64_t>();
  c.count = r.number<std::int64_t>();
  c.hash = r.number<std::uint64_t>();
  c.root = r.number<std::int32_t>();
  const auto op = r.number<std::uint8_t>(), element = r.number<std::uint8_t>();
  c.is_max = r.number<std::uint8_t>();
  c.name_length = r.number<std::uint8_t>();
  r.raw(c.name, sizeof c.name);
  c.op = static_cast<operation>(op);
  c.element = static_cast<element_kind>(element);
  if (kind > static_cast<int>(frame_kind::wait) || failure > static_cast<int>(communication_failure::backend) ||
      !is_call(c))
    return {};
  f.kind = static_cast<frame_kind>(kind);
  f.failure = static_cast<communication_failure>(failure);
  if (f.kind == frame_kind::trouble && f.bytes > longest_text) return {};
  if (f.kind == frame_kind::goodbye && f.bytes > 0) return {};
  return f;
}

/// The text that a peer sent, without what a terminal would obey.
inline std::string printable(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += b >= std::byte{0x20} && b != std::byte{0x7f} ? static_cast<char>(b) : '?';
  return text;
}

// A connection begins so: the one who accepts it sends a number that it draws; the other one says who it is, draws a
// number, and proves by an HMAC of all these that it knows the secret. Only then it gets a proof in return. Nothing
// else is read before, and nothing of another length. What follows is under keys made of the secret and all these
// bytes, where the ranks have integrity or encryption on.

using wire_nonce = std::array<std::byte, 16>;

/// Who connects, and what for.
struct hello {
  std::uint64_t group = 0;  ///< drawn by rank 0 for each communicator; 0 for the first connection to it
  std::int32_t size = 0, rank = 0, lane = 0;
  protection protect = protection::none;
};

/// The connections of two ranks: for collectives, for messages, and for words.
inline constexpr int collective_lane = 0, message_lane = 1, word_lane = 2, lanes_to_a_rank = 3;

inline constexpr std::size_t hello_size = 8 + 8 + 3 * 4 + 1 + sizeof(wire_nonce) + sizeof(sha256_digest);

inline sha256_digest proof_of(std::string_view secret, std::string_view role, std::span<const std::byte> a,
                              std::span<const std::byte> b) {
  std::string text(role);
  for (const auto& part : {a, b}) text.append(reinterpret_cast<const char*>(part.data()), part.size());
  return hmac(secret, text);
}

inline constexpr char hello_mark[9] = "SINTER-2";

inline std::vector<std::byte> to_wire(const hello& h, std::string_view secret, const wire_nonce& theirs,
                                      const wire_nonce& mine) {
  wire_writer w;
  w.raw(hello_mark, 8);
  w.number(h.group);
  w.number(h.size);
  w.number(h.rank);
  w.number(h.lane);
  w.number(static_cast<std::uint8_t>(h.protect));
  w.raw(mine.data(), mine.size());
  const sha256_digest proof = proof_of(secret, "connects", theirs, w.bytes);
  w.raw(proof.data(), proof.size());
  return w.bytes;
}
/// Nothing where the proof is wrong.
inline std::optional<hello> read_hello(std::span<const std::byte, hello_size> bytes, std::string_view secret,
                                       const wire_nonce& mine) {
  const auto said = std::span<const std::byte>(bytes).first(hello_size - sizeof(sha256_digest));
  sha256_digest proof;
  std::memcpy(proof.data(), bytes.data() + said.size(), proof.size());
  if (!are_equal_digests(proof, proof_of(secret, "connects", mine, said))) return {};
  wire_reader r(said);
  char mark[8];
  r.raw(mark, sizeof mark);
  if (std::memcmp(mark, hello_mark, sizeof mark) != 0) return {};
  hello h;
  h.group = r.number<std::uint64_t>();
  h.size = r.number<std::int32_t>();
  h.rank = r.number<std::int32_t>();
  h.lane = r.number<std::int32_t>();
  const auto protect = r.number<std::uint8_t>();
  if (protect > static_cast<int>(protection::encryption)) return {};
  h.protect = static_cast<protection>(protect);
  return h;
}
/// What the one who accepts proves in return, with the protection that it has. It lets nobody in who has another one,
/// but says so.
inline sha256_digest answer_of(std::string_view secret, std::span<const std::byte> hello_bytes, protection mine) {
  const auto p = static_cast<std::byte>(mine);
  return proof_of(secret, "accepts", hello_bytes, {&p, 1});
}

/// The two directions of a connection, as one side sees them. The keys are HMACs of all that was said, which both
/// sides have proved to know; each connection has keys of its own, as both drew a number for it.
struct connection_seals {
  record_seal out, in;

  connection_seals() = default;
  connection_seals(protection by, std::string_view secret, const wire_nonce& of_acceptor,
                   std::span<const std::byte> hello_bytes, bool accepts, make_record_cipher encryption) {
    if (by == protection::none) return;
    const sha256_digest to_acceptor = proof_of(secret, "key to the one who accepts", of_acceptor, hello_bytes),
                        from_acceptor = proof_of(secret, "key from the one who accepts", of_acceptor, hello_bytes);
    out = record_seal(by, accepts ? from_acceptor : to_acceptor, true, encryption);
    in = record_seal(by, accepts ? to_acceptor : from_acceptor, false, encryption);
  }
};

}  // namespace sinter::detail
