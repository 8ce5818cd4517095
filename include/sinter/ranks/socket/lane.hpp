// sinter/ranks/socket/lane.hpp: the frames on their way over one connection between two ranks.
#pragma once

#include <deque>

#include "sinter/ranks/socket/mesh.hpp"
#include "sinter/ranks/waiting.hpp"

namespace sinter::detail {

/// What follows a frame of what a rank waits for.
inline std::size_t wait_bytes(int ranks) { return 1 + 8 + 8 + 17 * static_cast<std::size_t>(ranks); }

inline std::vector<std::byte> to_wire(const rank_wait& w) {
  wire_writer to;
  to.number(static_cast<std::uint8_t>(w.waits ? 1 : 0));
  to.number(w.number);
  to.number(w.collectives);
  for (std::size_t r = 0; r < w.missing.size(); ++r) {
    to.number(w.missing[r]);
    to.number(w.sent[r]);
    to.number(w.received[r]);
  }
  return to.bytes;
}
/// `bytes`: wait_bytes(ranks) of them. Any bytes will do: all that is read are truths and numbers that are compared.
inline rank_wait read_wait(const call_header& call, std::span<const std::byte> bytes, int ranks) {
  wire_reader from(bytes);
  rank_wait w(ranks);
  w.call = call;
  w.waits = from.number<std::uint8_t>() == 1;
  w.number = from.number<std::int64_t>();
  w.collectives = from.number<std::int64_t>();
  for (std::size_t r = 0; r < w.missing.size(); ++r) {
    w.missing[r] = from.number<std::uint8_t>();
    w.sent[r] = from.number<std::int64_t>();
    w.received[r] = from.number<std::int64_t>();
  }
  return w;
}

/// A connection to another rank, with what is on its way. Three of them join two ranks: for collectives, for messages,
/// so that neither waits for the other, and for words, which never wait: why a rank gives up, and what it waits for.
struct socket_lane {
  struct outgoing {
    std::vector<std::byte> head;
    std::span<const std::byte> data;
    std::shared_ptr<const void> holds;  ///< data, or nothing
    std::size_t sent = 0;
    std::shared_ptr<bool> is_over;
  };
  struct expected {
    call_header call;
    std::span<std::byte> to;
    call_header* take = nullptr;  ///< any call will do, and is written here
    std::shared_ptr<bool> is_over;
  };

  descriptor fd;
  connection_seals seals;
  int me = 0, peer = 0, number = collective_lane;
  std::deque<outgoing> out;
  std::deque<expected> in;
  rank_wait* said = nullptr;  ///< of a word_lane: where the words of the peer go
  bool* has_said = nullptr;   ///< becomes true then
  call_header last_call;      ///< of the frames of data that came

  bool is_idle() const { return out.empty() && in.empty(); }
  short events() const {
    return static_cast<short>((is_held() || has_ended_ ? 0 : POLLIN) | (out.empty() || !can_write_ ? 0 : POLLOUT));
  }
  /// Writes and reads what goes without waiting. Errors: a trouble of, or told by, the other rank.
  void move_on() {
    write_on();
    while (!has_ended_ && read_some()) {
    }
    if (has_ended_ && number != word_lane && !is_idle())
      throw trouble{communication_failure::peer_lost, peer, joined({"rank ", peer, " has ended"})};
  }
  void write_on() {
    while (!out.empty() && can_write_ && write_some()) {
    }
  }
  void post(const frame& f, std::span<const std::byte> data, std::shared_ptr<bool> is_over = nullptr) {
    out.push_back({to_wire(f), data, nullptr, 0, std::move(is_over)});
  }
  /// The same of bytes that the frame keeps.
  void post(const frame& f, std::vector<std::byte> data) {
    const auto kept = std::make_shared<const std::vector<std::byte>>(std::move(data));
    out.push_back({to_wire(f), *kept, kept, 0, nullptr});
  }
  /// The last frame; false where one of data is half on its way.
  bool post_last(const frame& f, std::span<const std::byte> text) {
    const bool is_under_way = !out.empty() && out.front().sent > 0;
    if (is_under_way && number != word_lane) return false;
    out.erase(out.begin() + (is_under_way ? 1 : 0), out.end());
    post(f, text);
    return true;
  }
  /// Writes, at most until then, and reads nothing.
  void flush(communication_clock::time_point end) {
    while (!out.empty() && can_write_ && communication_clock::now() < end) {
      if (write_some()) continue;
      pollfd p{fd.get(), POLLOUT, 0};
      ::poll(&p, 1, 20);
    }
  }

 private:
  /// A frame came whose call this rank has not made yet.
  bool is_held() const { return got_ == frame_size && frame_.kind == frame_kind::data && in.empty(); }
  trouble lost() const {
    return {communication_failure::peer_lost, peer, joined({"rank ", peer, " was lost: its connection has ended"})};
  }

  /// What is left of the frame, from `sent` on: bytes of its head, or of its data.
  static std::span<const std::byte> rest_of(const outgoing& o) {
    return o.sent < o.head.size() ? std::span<const std::byte>(o.head).subspan(o.sent)
                                  : o.data.subspan(o.sent - o.head.size());
  }
  /// False where nothing more goes at present.
  bool write_some() {
    outgoing& o = out.front();
    const auto all = o.head.size() + o.data.size();
    if (!seals.out.is_on()) {
      if (!write(rest_of(o), o.sent)) return false;
    } else {
      // `sent` counts what is sealed. A head goes together with the first record of its data.
      if (sealed_at_ == sealed_end_) {
        sealed_at_ = sealed_end_ = 0;
        if (o.sent == 0) seal(o);
        if (o.sent < all) seal(o);
      }
      if (!write(std::span<const std::byte>(sealed_).first(sealed_end_).subspan(sealed_at_), sealed_at_)) return false;
      if (sealed_at_ < sealed_end_) return true;
    }
    if (o.sent < all) return true;
    if (o.is_over) *o.is_over = true;
    out.pop_front();
    return true;
  }
  void seal(outgoing& o) {
    const std::span<const std::byte> rest = rest_of(o), record = rest.first(std::min(record_size, rest.size()));
    const std::size_t at = std::exchange(sealed_end_, sealed_end_ + record.size() + tag_size);
    if (sealed_.size() < sealed_end_) sealed_.resize(sealed_end_);
    seals.out.seal(record, sealed_.data() + at);
    o.sent += record.size();
  }
  bool write(std::span<const std::byte> bytes, std::size_t& at) {
    const ssize_t n = bytes.empty() ? 0 : ::send(fd.get(), bytes.data(), bytes.size(), no_signal);
    if (n >= 0) {
      at += static_cast<std::size_t>(n);
      return true;
    }
    // The peer takes nothing more; its reason may still be there to read.
    can_write_ = errno == EAGAIN || errno == EINTR;
    return false;
  }

  bool read_some() {
    if (got_ < frame_size) {
      if (!fill(head_, got_)) return false;
      begin_frame();
    }
    if (frame_.kind == frame_kind::goodbye) {
      has_ended_ = true;
      return false;
    }
    if (is_held()) return false;
    if (frame_.kind == frame_kind::data && at_ == 0) compare();
    if (!fill(frame_.kind == frame_kind::data ? in.front().to : std::span<std::byte>(text_), at_)) return false;
    got_ = at_ = 0;
    if (frame_.kind == frame_kind::trouble) throw trouble{frame_.failure, frame_.peer, printable(text_)};
    if (frame_.kind == frame_kind::wait) {
      *said = read_wait(frame_.call, text_, static_cast<int>(said->missing.size()));
      *has_said = true;
      return true;
    }
    if (in.front().is_over) *in.front().is_over = true;
    in.pop_front();
    return true;
  }
  /// Reads into to[at...]; true once it is full. Where the connection is sealed only what has opened goes there.
  bool fill(std::span<std::byte> to, std::size_t& at) {
    while (at < to.size()) {
      if (!seals.in.is_on()) {
        const std::size_t n = read(to.subspan(at));
        if (n == 0) return false;
        at += n;
        continue;
      }
      const std::size_t length = std::min(record_size, to.size() - at);
      if (record_.size() < length + tag_size) record_.resize(length + tag_size);
      const std::span<std::byte> record = std::span(record_).first(length + tag_size);
      const std::size_t n = read(record.subspan(record_at_));
      if (n == 0) return false;
      record_at_ += n;
      if (record_at_ < record.size()) continue;
      record_at_ = 0;
      if (!seals.in.open(record, to.data() + at)) throw altered(peer);
      at += length;
    }
    return true;
  }
  /// 0 where nothing is there yet.
  std::size_t read(std::span<std::byte> to) {
    const ssize_t n = ::recv(fd.get(), to.data(), to.size(), 0);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0 || (errno != EAGAIN && errno != EINTR) || !can_write_) throw lost();
    return 0;
  }
  void begin_frame() {
    const std::optional<frame> f = read_frame(std::span<const std::byte, frame_size>(head_));
    const auto is_wait = [&] {
      return said != nullptr && f->bytes == wait_bytes(static_cast<int>(said->missing.size()));
    };
    if (!f || (f->kind == frame_kind::data && number == word_lane) || (f->kind == frame_kind::wait && !is_wait()))
      throw trouble{communication_failure::backend, peer, joined({"rank ", peer, " sent what is no frame"})};
    frame_ = *f;
    at_ = 0;
    if (frame_.kind == frame_kind::data) last_call = frame_.call;
    else text_.resize(static_cast<std::size_t>(frame_.bytes));  // none, longest_text at most, or wait_bytes()
  }
  /// The frame against what this rank expects; so no size from outside is ever allocated.
  void compare() {
    expected& e = in.front();
    const call_header& theirs = frame_.call;
    const bool is_same =
        e.take != nullptr || (number == collective_lane ? theirs == e.call : is_same_message(theirs, e.call));
    if (!is_same || frame_.bytes != e.to.size()) throw_mismatch(peer, theirs, me, e.call, peer);
    if (e.take != nullptr) *e.take = theirs;
  }

  std::array<std::byte, frame_size> head_{};
  std::size_t got_ = 0, at_ = 0;
  frame frame_;
  std::vector<std::byte> text_;
  std::vector<std::byte> sealed_, record_;  ///< on their way out, and in
  std::size_t sealed_at_ = 0, sealed_end_ = 0, record_at_ = 0;
  bool has_ended_ = false, can_write_ = true;
};

}  // namespace sinter::detail
