// sinter/ranks/socket/transport.hpp: collectives and messages over connections between all ranks.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "sinter/ranks/rank_sum.hpp"
#include "sinter/ranks/socket/lane.hpp"

namespace sinter::detail {

/// Where and how the ranks meet.
struct socket_place {
  int rank = 0, size = 1;
  std::string address, listen, secret;
  log_function log;
};

class socket_transport final : public transport {
 public:
  /// Meets the other ranks at o.address. Errors: a trouble.
  socket_transport(const socket_place& o, communication_clock::time_point end)
      : rank_(o.rank), size_(o.size), host_(o.listen), base_(o.address), secret_(o.secret), log_(o.log) {
    if (!log_) log_ = [](const std::string& line) { std::fprintf(stderr, "sinter: %s\n", line.c_str()); };
    if (size_ == 1) return;
    const meeting_rules rules{secret_, log_, end};
    std::vector<std::byte> list(8 + static_cast<std::size_t>(size_) * address_size);
    const auto address_in_list = [&](int r) {
      return std::span(list).subspan(8 + static_cast<std::size_t>(r) * address_size, address_size);
    };
    if (rank_ == 0) {
      const listener here(o.address);
      const auto nonce = draw_nonce();
      std::memcpy(list.data(), nonce.data(), 8);
      list[0] |= std::byte{1};  // a list that begins with 0 says why there is none
      put_address(list, 0, here.address());
      std::vector<bool> is_there(static_cast<std::size_t>(size_));
      std::vector<std::pair<hello, descriptor>> came;
      try {
        accept_ranks(
            here, static_cast<std::size_t>(size_ - 1), [&](const hello& h) { return objection(h, 0, -1, is_there); },
            [&] { return missing(is_there, 1); }, rules, came);
        for (auto& [who, fd] : came)
          rules.receive(fd.get(), address_in_list(who.rank), joined({"rank ", who.rank}), who.rank);
      } catch (const trouble& why) {
        std::vector<std::byte> no_list(list.size());
        std::memcpy(no_list.data() + 8, why.text.data(), std::min(why.text.size(), no_list.size() - 9));
        for (auto& [who, fd] : came) static_cast<void>(::send(fd.get(), no_list.data(), no_list.size(), no_signal));
        throw;
      }
      for (auto& [who, fd] : came) rules.send(fd.get(), list, joined({"rank ", who.rank}), who.rank);
      connect(here, list, rules);
    } else {
      const listener here(own_address());
      const descriptor fd = connect_to(o.address, {0, size_, rank_, -1}, 0, rules);
      put_address(list, rank_, here.address());
      rules.send(fd.get(), address_in_list(rank_), "rank 0", 0);
      receive_list(fd, list, rules);
      connect(here, list, rules);
    }
  }

  const char* name() const override { return "sockets"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  std::vector<call_header> exchange(const call_header& h, const deadline& until) override {
    std::vector<call_header> all(static_cast<std::size_t>(size_), h);
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      post(h, r, {});
      lane(0, r).in.push_back({h, {}, &all[static_cast<std::size_t>(r)], nullptr});
    }
    finish(until);
    return all;
  }
  void all_reduce(const call_header& h, std::byte* data, const deadline& until) override {
    const std::size_t width = element_size(h.element);
    const auto part = [&](int r) { return part_of_rank(static_cast<std::size_t>(h.count), size_, r); };
    const std::size_t longest = static_cast<std::size_t>(h.count) / static_cast<std::size_t>(size_) + 1;
    for (std::size_t at = 0; at < longest; at += piece(width)) {
      // Elements [at, at + piece) of each part: first all ranks' values of mine come here, then the sums go out.
      const auto cut = [&](int r) { return range(part(r), at, piece(width)); };
      const auto bytes = [&](int r) { return std::span(data + cut(r).begin * width, cut(r).size() * width); };
      add_up(h, bytes, bytes(rank_).data(), until);
      for (int r = 0; r < size_; ++r) {
        if (r == rank_) continue;
        post(h, r, bytes(rank_));
        expect(h, r, bytes(r));
      }
      finish(until);
    }
  }
  void broadcast(const call_header& h, std::byte* data, const deadline& until) override {
    const std::span<std::byte> bytes(data, bytes_of(h));
    for (int r = 0; r < size_; ++r)
      if (rank_ == h.root && r != rank_) post(h, r, bytes);
    if (rank_ != h.root) expect(h, h.root, bytes);
    finish(until);
  }
  void all_gather(const call_header& h, const std::byte* from, std::byte* all, const deadline& until) override {
    const std::size_t n = bytes_of(h);
    for (int r = 0; r < size_; ++r) {
      std::byte* const to = all + static_cast<std::size_t>(r) * n;
      if (r == rank_) {
        if (n > 0) std::memcpy(to, from, n);
      } else {
        post(h, r, {from, n});
        expect(h, r, {to, n});
      }
    }
    finish(until);
  }
  void reduce_scatter(const call_header& h, const std::byte* all, std::byte* to, const deadline& until) override {
    const std::size_t width = element_size(h.element);
    const auto part = [&](int r) { return part_of_rank(static_cast<std::size_t>(h.count), size_, r); };
    for (std::size_t at = 0; at < part(0).size(); at += piece(width)) {
      const auto bytes = [&](int r) {
        const part_of_rank cut = range(part(r), at, piece(width));
        return std::span(all + cut.begin * width, cut.size() * width);
      };
      add_up(h, bytes, to + at * width, until);
    }
  }
  std::unique_ptr<transport> split(const call_header& h, int color, int key, const deadline& until) override {
    struct member {
      color_and_key asks;
      char address[address_size];
    };
    const listener here(own_address());
    std::vector<member> all(static_cast<std::size_t>(size_));
    member& mine = all[static_cast<std::size_t>(rank_)];
    mine = {{color, key}, {}};
    here.address().copy(mine.address, address_size - 1);
    for (int r = 0; r < size_; ++r) {
      if (r == rank_) continue;
      post(h, r, std::as_bytes(std::span(&mine, 1)));
      expect(h, r, std::as_writable_bytes(std::span(&all[static_cast<std::size_t>(r)], 1)));
    }
    finish(until);
    std::vector<color_and_key> asked;
    for (const member& m : all) asked.push_back(m.asks);
    const std::vector<int> members = ranks_of_color(asked, color);
    auto made = std::unique_ptr<socket_transport>(new socket_transport(*this));
    made->size_ = static_cast<int>(members.size());
    std::vector<std::byte> list(8 + members.size() * address_size);
    const std::uint64_t group = hash_of(joined({group_, " ", h.number, " ", color}));
    std::memcpy(list.data(), &group, 8);
    for (int i = 0; i < made->size_; ++i) {
      const int r = members[static_cast<std::size_t>(i)];
      if (r == rank_) made->rank_ = i;
      std::memcpy(list.data() + 8 + static_cast<std::size_t>(i) * address_size,
                  all[static_cast<std::size_t>(r)].address, address_size);
    }
    made->connect(here, list, {secret_, log_, until.at(), [this] { return is_interrupted(); }});
    return made;
  }

  void start(transfer& t) override {
    auto is_over = std::make_shared<bool>(false);
    t.state = is_over;
    const std::span<std::byte> bytes(t.data, t.bytes);
    if (t.peer == rank_) {
      if (t.outgoing) to_itself_.push_back({t.header, {bytes.begin(), bytes.end()}});
      *is_over = t.outgoing;
    } else if (t.outgoing) {
      lane(1, t.peer).out.push_back({to_wire(frame_of(t.header, t.bytes)), bytes, 0, is_over});
    } else {
      lane(1, t.peer).in.push_back({t.header, bytes, nullptr, is_over});
    }
  }
  bool test(transfer& t) override {
    if (t.peer == rank_ && !t.outgoing && !to_itself_.empty()) {
      const auto& [sent, bytes] = to_itself_.front();
      require_same_message(rank_, sent, rank_, t.header);
      if (t.bytes > 0) std::memcpy(t.data, bytes.data(), t.bytes);
      to_itself_.pop_front();
      return true;
    }
    move_on();
    return *static_cast<bool*>(t.state.get());
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
    } catch (...) {  // NOLINT: the others see that the connection ends
    }
  }
  void close() override {
    frame f;
    f.kind = frame_kind::goodbye;
    say_last(f, {});
  }

 private:
  static constexpr std::size_t address_size = 256;

  /// For split: a transport without connections, with the address, the secret and the log of `from`.
  socket_transport(const socket_transport& from)
      : transport(), host_(from.host_), base_(from.base_), secret_(from.secret_), log_(from.log_) {}

  /// Elements of a part that are on their way at a time: 8 MiB from all ranks together.
  std::size_t piece(std::size_t width) const {
    return std::max<std::size_t>(1, (std::size_t{8} << 20) / width / static_cast<std::size_t>(size_));
  }
  static part_of_rank range(part_of_rank whole, std::size_t at, std::size_t n) {
    whole.begin = std::min(whole.begin + at, whole.end);
    whole.end = std::min(whole.begin + n, whole.end);
    return whole;
  }
  /// to = the sum of all ranks' bytes(rank_), in the order of the ranks.
  template <class Bytes>
  void add_up(const call_header& h, const Bytes& bytes, std::byte* to, const deadline& until) {
    const std::size_t n = bytes(rank_).size();
    std::vector<std::byte> theirs(n * static_cast<std::size_t>(size_));
    std::vector<const std::byte*> parts;
    for (int r = 0; r < size_; ++r) {
      std::byte* const there = theirs.data() + n * static_cast<std::size_t>(r);
      parts.push_back(r == rank_ ? bytes(rank_).data() : there);
      if (r == rank_) continue;
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
    lane(0, r).out.push_back({to_wire(frame_of(h, bytes.size())), bytes, 0, nullptr});
  }
  void expect(const call_header& h, int r, std::span<std::byte> bytes) {
    lane(0, r).in.push_back({h, bytes, nullptr, nullptr});
  }
  void move_on() {
    for (auto& lanes : lanes_)
      for (socket_lane& l : lanes)
        if (l.fd.get() >= 0) l.move_on();
  }
  /// Returns once all that was posted on lane 0 is over.
  void finish(const deadline& until) {
    while (true) {
      move_on();
      std::vector<int> missing;
      for (const socket_lane& l : lanes_[0])
        if (!l.is_idle()) missing.push_back(l.peer);
      if (missing.empty()) return;
      give_up(until, "waited for", missing);
      std::vector<pollfd> polls;
      for (auto& lanes : lanes_)
        for (const socket_lane& l : lanes)
          if (l.fd.get() >= 0 && l.events() != 0) polls.push_back({l.fd.get(), l.events(), 0});
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until.at() - communication_clock::now());
      ::poll(polls.data(), static_cast<nfds_t>(polls.size()),
             static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 50)));
    }
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

  /// Where this rank listens: a free port, or a file beside that of rank 0.
  std::string own_address() const {
    if (base_.starts_with("unix:")) {
      std::string name = base_ + "." + std::to_string(rank_) + ".";
      const wire_nonce n = draw_nonce();
      for (std::size_t i = 0; i < 4; ++i) name += joined({static_cast<unsigned>(n[i])});
      return name;
    }
    if (!host_.empty()) return host_ + ":0";
    if (!parse_address(base_).is_loopback() && rank_ != 0)
      refuse<value_error>({"socket_communicator: rank ", rank_, " listens on loopback, where rank 0 at ", base_,
                           " does not reach it; set listen (SINTER_LISTEN) to a host name of this machine"});
    // Rank 0 of several machines was given an address.
    return rank_ == 0 ? base_.substr(0, base_.rfind(':')) + ":0" : "127.0.0.1:0";
  }
  static void put_address(std::vector<std::byte>& list, int r, const std::string& address) {
    std::memcpy(list.data() + 8 + static_cast<std::size_t>(r) * address_size, address.data(),
                std::min(address.size(), address_size - 1));
  }
  /// Why h is not let in; empty where it is, and `is_there` then says so.
  std::string objection(const hello& h, std::uint64_t group, int lane_number, std::vector<bool>& is_there) const {
    if (h.group != group) return "it belongs to another communicator";
    if (h.size != size_) return joined({"rank ", h.rank, " of ", h.size, ", where there are ", size_, " ranks"});
    const int at = lane_number < 0 ? h.rank : 2 * h.rank + h.lane;
    if (h.rank <= 0 || h.rank >= size_ || (lane_number < 0 ? h.lane != -1 : h.lane < 0 || h.lane > 1) || at < 0 ||
        is_there[static_cast<std::size_t>(at)])
      return joined({"rank ", h.rank, " is not expected, or came twice"});
    is_there[static_cast<std::size_t>(at)] = true;
    return {};
  }
  trouble missing(const std::vector<bool>& is_there, int lanes) const {
    std::vector<int> ranks;
    for (int r = (lanes == 1 ? 1 : rank_ + 1); r < size_; ++r)
      for (int l = 0; l < lanes; ++l)
        if (!is_there[static_cast<std::size_t>(lanes * r + l)] && (ranks.empty() || ranks.back() != r))
          ranks.push_back(r);
    return {communication_failure::timeout, ranks.empty() ? -1 : ranks.front(),
            joined({"timeout: ", rank_list(ranks), " did not connect"})};
  }
  /// What rank 0 sends once all ranks are there. Errors: a trouble, with rank 0's words where it gives up.
  static void receive_list(const descriptor& fd, std::vector<std::byte>& list, meeting_rules rules) {
    rules.end = after(rules.end, 1);  // rank 0, which knows who is missing, speaks first
    try {
      rules.receive(fd.get(), list, "rank 0", 0);
    } catch (const trouble& t) {
      if (t.kind != communication_failure::timeout) throw;
      throw trouble{t.kind, -1, "timeout: rank 0 is there, and still waits for other ranks; its output names them"};
    }
    if (std::any_of(list.begin(), list.begin() + 8, [](std::byte b) { return b != std::byte{0}; })) return;
    const auto end = std::find(list.begin() + 8, list.end(), std::byte{0});
    throw trouble{communication_failure::aborted, 0, "rank 0 gave up: " + printable(std::span(list.begin() + 8, end))};
  }
  /// Both lanes to each rank: the higher one connects to the lower one.
  void connect(const listener& here, const std::vector<std::byte>& list, const meeting_rules& rules) {
    std::memcpy(&group_, list.data(), 8);
    for (auto& lanes : lanes_) lanes = std::vector<socket_lane>(static_cast<std::size_t>(size_));
    const auto take = [&](descriptor fd, int r, int number) {
      socket_lane& l = lane(number, r);
      l.fd = std::move(fd);
      l.me = rank_;
      l.peer = r;
      l.number = number;
    };
    for (int r = 0; r < rank_; ++r) {
      std::string address;
      for (std::size_t i = 0; i < address_size - 1; ++i) {
        const auto c = static_cast<char>(list[8 + static_cast<std::size_t>(r) * address_size + i]);
        if (c == '\0') break;
        address += c;
      }
      for (const int number : {0, 1}) take(connect_to(address, {group_, size_, rank_, number}, r, rules), r, number);
    }
    std::vector<bool> is_there(2 * static_cast<std::size_t>(size_));
    std::vector<std::pair<hello, descriptor>> came;
    accept_ranks(
        here, 2 * static_cast<std::size_t>(size_ - 1 - rank_),
        [&](const hello& h) {
          return h.rank <= rank_ ? std::string("a lower rank does not connect") : objection(h, group_, 0, is_there);
        },
        [&] { return missing(is_there, 2); }, rules, came);
    for (auto& [who, fd] : came) take(std::move(fd), who.rank, who.lane);
  }

  int rank_ = 0, size_ = 1;
  std::string host_, base_, secret_;
  log_function log_;
  std::uint64_t group_ = 0;
  std::array<std::vector<socket_lane>, 2> lanes_;
  std::deque<std::pair<call_header, std::vector<std::byte>>> to_itself_;
  std::string last_words_;
};

}  // namespace sinter::detail
