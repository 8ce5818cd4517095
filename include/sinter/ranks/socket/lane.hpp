// sinter/ranks/socket/lane.hpp: the frames on their way over one connection between two ranks.
#pragma once

#include <deque>

#include "sinter/ranks/socket/mesh.hpp"

namespace sinter::detail {

/// A connection to another rank, with what is on its way. Lane 0 carries collectives, lane 1 messages; so neither waits
/// for the other.
struct socket_lane {
  struct outgoing {
    std::vector<std::byte> head;
    std::span<const std::byte> data;
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
  int me = 0, peer = 0, number = 0;
  std::deque<outgoing> out;
  std::deque<expected> in;

  bool is_idle() const { return out.empty() && in.empty(); }
  short events() const {
    return static_cast<short>((is_held() || has_ended_ ? 0 : POLLIN) | (out.empty() || !can_write_ ? 0 : POLLOUT));
  }
  /// Writes and reads what goes without waiting. Errors: a trouble of, or told by, the other rank.
  void move_on() {
    while (!out.empty() && can_write_ && write_some()) {
    }
    while (!has_ended_ && read_some()) {
    }
    if (has_ended_ && !is_idle())
      throw trouble{communication_failure::peer_lost, peer, joined({"rank ", peer, " has ended"})};
  }
  /// The last frame; false where another one is half on its way.
  bool post_last(const frame& f, std::span<const std::byte> text) {
    if (!out.empty() && out.front().sent > 0) return false;
    out.clear();
    out.push_back({to_wire(f), text, 0, nullptr});
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
  bool write_some() {
    outgoing& o = out.front();
    const auto all = o.head.size() + o.data.size();
    const auto rest = o.sent < o.head.size() ? std::span<const std::byte>(o.head).subspan(o.sent)
                                             : o.data.subspan(o.sent - o.head.size());
    const ssize_t n = rest.empty() ? 0 : ::send(fd.get(), rest.data(), rest.size(), no_signal);
    if (n < 0) {
      // The peer takes nothing more; its reason may still be there to read.
      can_write_ = errno == EAGAIN || errno == EINTR;
      return false;
    }
    o.sent += static_cast<std::size_t>(n);
    if (o.sent < all) return true;
    if (o.is_over) *o.is_over = true;
    out.pop_front();
    return true;
  }
  bool read_some() {
    if (got_ < frame_size) {
      const auto n = read(std::span(head_).subspan(got_));
      got_ += n;
      if (got_ < frame_size) return n > 0;
      begin_frame();
    }
    if (frame_.kind == frame_kind::goodbye) {
      has_ended_ = true;
      return false;
    }
    if (is_held()) return false;
    if (frame_.kind == frame_kind::data && at_ == 0) compare();
    const std::span<std::byte> to = frame_.kind == frame_kind::data ? in.front().to : std::span<std::byte>(text_);
    if (at_ < to.size()) {
      const auto n = read(to.subspan(at_));
      at_ += n;
      if (at_ < to.size()) return n > 0;
    }
    if (frame_.kind == frame_kind::trouble) throw trouble{frame_.failure, frame_.peer, printable(text_)};
    if (in.front().is_over) *in.front().is_over = true;
    in.pop_front();
    got_ = at_ = 0;
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
    if (!f) throw trouble{communication_failure::backend, peer, joined({"rank ", peer, " sent what is no frame"})};
    frame_ = *f;
    at_ = 0;
    if (frame_.kind == frame_kind::trouble)
      text_.resize(static_cast<std::size_t>(frame_.bytes));  // at most longest_text
  }
  /// The frame against what this rank expects; so no size from outside is ever allocated.
  void compare() {
    expected& e = in.front();
    const call_header& theirs = frame_.call;
    const bool is_same = e.take != nullptr || (number == 0 ? theirs == e.call : is_same_message(theirs, e.call));
    if (!is_same || frame_.bytes != e.to.size()) throw_mismatch(peer, theirs, me, e.call, peer);
    if (e.take != nullptr) *e.take = theirs;
  }

  std::array<std::byte, frame_size> head_{};
  std::size_t got_ = 0, at_ = 0;
  frame frame_;
  std::vector<std::byte> text_;
  bool has_ended_ = false, can_write_ = true;
};

}  // namespace sinter::detail
