// sinter/ranks/socket/transport.hpp: collectives and messages over connections between all ranks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "sinter/ranks/rank_sum.hpp"
#include "sinter/ranks/socket/lane.hpp"
#include "sinter/ranks/socket/meeting.hpp"

namespace sinter::detail {

class socket_transport final : public transport {
 public:
  /// Meets the other ranks. Errors: a trouble.
  socket_transport(socket_place place, communication_clock::time_point end)
      : place_(std::move(place)), waits_(static_cast<std::size_t>(place_.size), rank_wait(place_.size)) {
    take(socket_meeting(place_, end).meet(group_));
  }

  const char* name() const override { return "sockets"; }
  int rank() const override { return place_.rank; }
  int size() const override { return place_.size; }

  std::vector<call_header> exchange(const call_header& h, const deadline& until) override {
    my_wait().begin(h);
    std::vector<call_header> all(static_cast<std::size_t>(size()), h);
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      post(h, r, {});
      lane(collective_lane, r).in.push_back({h, {}, &all[static_cast<std::size_t>(r)], nullptr});
    }
    finish(until);
    return all;
  }
  void all_reduce(const call_header& h, std::byte* data, const deadline& until) override {
    my_wait().begin(h);
    const std::size_t width = element_size(h.element);
    const auto part = [&](int r) { return part_of_rank(static_cast<std::size_t>(h.count), size(), r); };
    const std::size_t longest = static_cast<std::size_t>(h.count) / static_cast<std::size_t>(size()) + 1;
    for (std::size_t at = 0; at < longest; at += piece(width)) {
      // Elements [at, at + piece) of each part: first all ranks' values of mine come here, then the sums go out.
      const auto cut = [&](int r) { return range(part(r), at, piece(width)); };
      const auto bytes = [&](int r) { return std::span(data + cut(r).begin * width, cut(r).size() * width); };
      add_up(h, bytes, bytes(rank()).data(), until);
      for (int r = 0; r < size(); ++r) {
        if (r == rank()) continue;
        post(h, r, bytes(rank()));
        expect(h, r, bytes(r));
      }
      finish(until);
    }
  }
  void broadcast(const call_header& h, std::byte* data, const deadline& until) override {
    my_wait().begin(h);
    const std::span<std::byte> bytes(data, bytes_of(h));
    for (int r = 0; r < size(); ++r)
      if (rank() == h.root && r != rank()) post(h, r, bytes);
    if (rank() != h.root) expect(h, h.root, bytes);
    finish(until);
  }
  void all_gather(const call_header& h, const std::byte* from, std::byte* all, const deadline& until) override {
    my_wait().begin(h);
    const std::size_t n = bytes_of(h);
    for (int r = 0; r < size(); ++r) {
      std::byte* const to = all + static_cast<std::size_t>(r) * n;
      if (r == rank()) {
        if (n > 0) std::memcpy(to, from, n);
      } else {
        post(h, r, {from, n});
        expect(h, r, {to, n});
      }
    }
    finish(until);
  }
  void reduce_scatter(const call_header& h, const std::byte* all, std::byte* to, const deadline& until) override {
    my_wait().begin(h);
    const std::size_t width = element_size(h.element);
    const auto part = [&](int r) { return part_of_rank(static_cast<std::size_t>(h.count), size(), r); };
    for (std::size_t at = 0; at < part(0).size(); at += piece(width)) {
      const auto bytes = [&](int r) {
        const part_of_rank cut = range(part(r), at, piece(width));
        return std::span(all + cut.begin * width, cut.size() * width);
      };
      add_up(h, bytes, to + at * width, until);
    }
  }
  std::unique_ptr<transport> split(const call_header& h, int color, int key, const deadline& until) override {
    my_wait().begin(h);
    struct member {
      color_and_key asks;
      std::array<std::byte, socket_meeting::address_size> address;
    };
    const listener here(socket_meeting::own_address(place_));
    std::vector<member> all(static_cast<std::size_t>(size()));
    member& mine = all[static_cast<std::size_t>(rank())];
    mine = {{color, key}, {}};
    socket_meeting::put_address(mine.address, here.address());
    for (int r = 0; r < size(); ++r) {
      if (r == rank()) continue;
      post(h, r, std::as_bytes(std::span(&mine, 1)));
      expect(h, r, std::as_writable_bytes(std::span(&all[static_cast<std::size_t>(r)], 1)));
    }
    finish(until);
    std::vector<color_and_key> asked;
    for (const member& m : all) asked.push_back(m.asks);
    const std::vector<int> members = ranks_of_color(asked, color);
    socket_place place = place_;
    place.size = static_cast<int>(members.size());
    std::vector<std::string> addresses;
    for (const int r : members) {
      if (r == rank()) place.rank = static_cast<int>(addresses.size());
      addresses.push_back(socket_meeting::address_at(all[static_cast<std::size_t>(r)].address));
    }
    const std::uint64_t group = hash_of(joined({group_, " ", h.number, " ", color}));
    auto made = std::unique_ptr<socket_transport>(new socket_transport(std::move(place), group));
    made->take(
        socket_meeting(made->place_, until.at(), [this] { return is_interrupted(); }).connect(here, addresses, group));
    return made;
  }

  void start(transfer& t) override {
    auto is_over = std::make_shared<bool>(false);
    t.state = is_over;
    my_wait().begin(t);
    const std::span<std::byte> bytes(t.data, t.bytes);
    if (t.peer == rank()) {
      if (t.outgoing) to_itself_.push_back({t.header, {bytes.begin(), bytes.end()}});
      *is_over = t.outgoing;
    } else if (t.outgoing) {
      lane(message_lane, t.peer).post(frame_of(t.header, t.bytes), bytes, is_over);
    } else {
      lane(message_lane, t.peer).in.push_back({t.header, bytes, nullptr, is_over});
    }
  }
  bool test(transfer& t) override {
    if (t.peer == rank() && !t.outgoing && !to_itself_.empty()) {
      const auto& [sent, bytes] = to_itself_.front();
      require_same_message(rank(), sent, rank(), t.header);
      if (t.bytes > 0) std::memcpy(t.data, bytes.data(), t.bytes);
      to_itself_.pop_front();
      return true;
    }
    move_on();
    const bool is_over = *static_cast<bool*>(t.state.get());
    if (is_over && watched_ == t.state.get()) end_wait();
    return is_over;
  }
  void watch(const transfer& t, communication_clock::time_point end) override {
    if (std::exchange(watched_, t.state.get()) != t.state.get()) wait_began_ = communication_clock::now();
    say_wait(end, [&] { my_wait().wait_for(t); });
  }

  void tell(const trouble& why) noexcept override {
    try {
      frame f;
      f.kind = frame_kind::trouble;
      f.failure = why.kind;
      f.peer = why.peer;
      last_words_ = why.text.substr(0, longest_text);
      f.bytes = last_words_.size();
      say_last(f, std::as_bytes(std::span(last_words_)));
    } catch (...) {  // NOLINT: the others see that the connections end
      for (auto& lanes : lanes_)
        for (socket_lane& l : lanes) ::shutdown(l.fd.get(), SHUT_WR);
    }
  }
  void close() override {
    frame f;
    f.kind = frame_kind::goodbye;
    say_last(f, {});
  }

 private:
  /// For split: without connections.
  socket_transport(socket_place place, std::uint64_t group)
      : place_(std::move(place)),
        group_(group),
        waits_(static_cast<std::size_t>(place_.size), rank_wait(place_.size)) {}
  void take(rank_connections all) {
    for (int number = 0; number < lanes_to_a_rank; ++number) {
      auto& lanes = lanes_[static_cast<std::size_t>(number)];
      lanes.resize(all[static_cast<std::size_t>(number)].size());
      for (std::size_t r = 0; r < lanes.size(); ++r) {
        socket_lane& l = lanes[r];
        connection& one = all[static_cast<std::size_t>(number)][r];
        l.fd = std::move(one.fd);
        l.seals = std::move(one.seals);
        l.me = rank();
        l.peer = static_cast<int>(r);
        l.number = number;
        if (number != word_lane) continue;
        l.said = &waits_[r];
        l.has_said = &has_said_;
      }
    }
  }

  /// Elements of a part that are on their way at a time: 8 MiB from all ranks together.
  std::size_t piece(std::size_t width) const {
    return std::max<std::size_t>(1, (std::size_t{8} << 20) / width / static_cast<std::size_t>(size()));
  }
  static part_of_rank range(part_of_rank whole, std::size_t at, std::size_t n) {
    whole.begin = std::min(whole.begin + at, whole.end);
    whole.end = std::min(whole.begin + n, whole.end);
    return whole;
  }
  /// to = the sum of all ranks' bytes(rank()), in the order of the ranks.
  template <class Bytes>
  void add_up(const call_header& h, const Bytes& bytes, std::byte* to, const deadline& until) {
    const std::size_t n = bytes(rank()).size();
    std::vector<std::byte> theirs(n * static_cast<std::size_t>(size()));
    std::vector<const std::byte*> parts;
    for (int r = 0; r < size(); ++r) {
      std::byte* const there = theirs.data() + n * static_cast<std::size_t>(r);
      parts.push_back(r == rank() ? bytes(rank()).data() : there);
      if (r == rank()) continue;
      post(h, r, bytes(r));
      expect(h, r, {there, n});
    }
    finish(until);
    join_in_rank_order(h.element, h.is_max != 0, parts, 0, n / element_size(h.element), to);
  }

  socket_lane& lane(int number, int r) { return lanes_[static_cast<std::size_t>(number)][static_cast<std::size_t>(r)]; }
  static frame frame_of(const call_header& h, std::size_t bytes) {
    frame f;
    f.call = h;
    f.bytes = bytes;
    return f;
  }
  void post(const call_header& h, int r, std::span<const std::byte> bytes) {
    lane(collective_lane, r).post(frame_of(h, bytes.size()), bytes);
  }
  void expect(const call_header& h, int r, std::span<std::byte> bytes) {
    lane(collective_lane, r).in.push_back({h, bytes, nullptr, nullptr});
  }
  void move_on() {
    for (auto& lanes : lanes_)
      for (socket_lane& l : lanes)
        if (l.fd.get() >= 0) l.move_on();
  }
  /// Returns once all that was posted for a collective is over.
  void finish(const deadline& until) {
    wait_began_ = communication_clock::now();
    while (true) {
      move_on();
      std::vector<int> missing;
      for (const socket_lane& l : lanes_[collective_lane])
        if (!l.is_idle()) missing.push_back(l.peer);
      if (missing.empty()) return end_wait();
      give_up(until, "waited for", missing);
      say_wait(until.at(), [&] {
        std::vector<int> calls_of;
        for (const socket_lane& l : lanes_[collective_lane])
          if (!l.in.empty()) calls_of.push_back(l.peer);
        my_wait().wait_for(call_header(my_wait().call), calls_of, missing);
      });
      std::vector<pollfd> polls;
      for (auto& lanes : lanes_)
        for (const socket_lane& l : lanes)
          if (l.fd.get() >= 0 && l.events() != 0) polls.push_back({l.fd.get(), l.events(), 0});
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until.at() - communication_clock::now());
      ::poll(polls.data(), static_cast<nfds_t>(polls.size()),
             static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 50)));
    }
  }

  rank_wait& my_wait() { return waits_[static_cast<std::size_t>(rank())]; }
  /// Tells the other ranks of a wait that is long: after 0.25 s, or a quarter of the time that there is. What they
  /// have told may show that it has no end. Errors: then a mismatch.
  template <class Note>
  void say_wait(communication_clock::time_point end, const Note& note) {
    if (!my_wait().waits) {
      const double seconds = std::chrono::duration<double>(end - wait_began_).count();
      if (communication_clock::now() < after(wait_began_, std::min(0.25, seconds / 4))) return;
      note();
      tell_wait();
      has_said_ = true;
    }
    if (std::exchange(has_said_, false)) wait_graph(waits_).require_no_cycle(rank());
  }
  void end_wait() {
    watched_ = nullptr;
    if (!std::exchange(my_wait().waits, false)) return;
    tell_wait();
  }
  void tell_wait() {
    frame f;
    f.kind = frame_kind::wait;
    f.call = my_wait().call;
    f.bytes = wait_bytes(size());
    for (socket_lane& l : lanes_[word_lane]) {
      if (l.fd.get() < 0) continue;
      l.post(f, to_wire(my_wait()));
      l.write_on();
    }
  }
  /// Where all wait for each other, and a send is part of it, that is to say as well.
  trouble timeout_for(const char* doing, const std::vector<int>& missing) const override {
    std::vector<rank_wait> known = waits_;
    for (const socket_lane& l : lanes_[collective_lane])
      if (l.fd.get() >= 0 && !known[static_cast<std::size_t>(l.peer)].waits && l.last_call.number > 0)
        known[static_cast<std::size_t>(l.peer)].begin(l.last_call);
    try {
      wait_graph(known).require_no_cycle(rank(), true);
    } catch (const trouble& t) {
      return t;
    }
    return wait_graph(known).timeout_of(rank(), doing, missing);
  }
  /// The last frame on every connection.
  void say_last(const frame& f, std::span<const std::byte> text) {
    const auto end = after(communication_clock::now(), 1);
    for (auto& lanes : lanes_)
      for (socket_lane& l : lanes) {
        if (l.fd.get() < 0) continue;
        if (l.post_last(f, text)) l.flush(end);
        ::shutdown(l.fd.get(), SHUT_WR);
      }
  }

  socket_place place_;
  std::uint64_t group_ = 0;
  std::array<std::vector<socket_lane>, lanes_to_a_rank> lanes_;
  std::vector<rank_wait> waits_;   ///< of all ranks; of others what they told last
  bool has_said_ = false;          ///< and it was not looked at yet
  const void* watched_ = nullptr;  ///< the state of the message that the program waits for
  communication_clock::time_point wait_began_{};
  std::deque<std::pair<call_header, std::vector<std::byte>>> to_itself_;
  std::string last_words_;
};

}  // namespace sinter::detail
