// sinter/ranks/socket/meeting.hpp: how the ranks of a communicator find each other, and connect.
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>

#include "sinter/ranks/socket/mesh.hpp"

namespace sinter::detail {

/// Where and how the ranks meet.
struct socket_place {
  int rank = 0, size = 1;
  std::string address, listen, secret;
  log_function log;
  protection protect = protection::none;
  make_record_cipher encryption = nullptr;
};

/// The connections of a rank: by the lane, and then by the other rank.
using rank_connections = std::array<std::vector<connection>, lanes_to_a_rank>;

/// How one rank finds the others: they tell rank 0 where they listen, and get the list of all from it.
class socket_meeting {
 public:
  static constexpr std::size_t address_size = 256;

  /// Until `end` at most. Errors of calls: a trouble.
  socket_meeting(
      const socket_place& place, communication_clock::time_point end,
      std::function<bool()> is_interrupted = [] { return false; })
      : place_(place),
        rules_{place.secret, place.log, end, place.protect, place.rank, place.encryption, std::move(is_interrupted)} {
    if (!rules_.log) rules_.log = [](const std::string& line) { std::fprintf(stderr, "sinter: %s\n", line.c_str()); };
  }

  /// At the address of rank 0, which draws the number of the communicator, `group`.
  rank_connections meet(std::uint64_t& group) {
    if (size() == 1) return {};
    std::vector<std::byte> list(8 + static_cast<std::size_t>(size()) * address_size);
    if (rank() == 0) {
      const listener here(place_.address);
      const auto nonce = draw_nonce();
      std::memcpy(list.data(), nonce.data(), 8);
      list[0] |= std::byte{1};  // a list that begins with 0 says why there is none
      put_address(address_in(list, 0), here.address());
      gather(here, list);
      return connect_by(here, list, group);
    }
    const listener here(own_address(place_));
    connection first = connect_to(place_.address, {0, size(), rank(), -1}, 0, rules_);
    put_address(address_in(list, rank()), here.address());
    rules_.send(first, address_in(list, rank()), "rank 0", 0);
    receive_list(first, list, rules_);
    return connect_by(here, list, group);
  }

  /// All lanes to each rank of a communicator `group`: the higher rank connects to the lower one. `from`: the rank that
  /// has said where the others are, and is to blame for what is no address; -1: each rank for its own.
  rank_connections connect(const listener& here, const std::vector<std::string>& addresses, std::uint64_t group,
                           int from = -1) {
    rank_connections made;
    for (auto& lanes : made) lanes.resize(static_cast<std::size_t>(size()));
    for (int r = 0; r < rank(); ++r) {
      const std::string& address = addresses[static_cast<std::size_t>(r)];
      try {
        static_cast<void>(parse_address(address, 1));
      } catch (const value_error& e) {
        const int to_blame = from < 0 ? r : from;
        throw trouble{communication_failure::backend, to_blame,
                      joined({"rank ", to_blame, " says of rank ", r, ": ", e.what()})};
      }
      for (int number = 0; number < lanes_to_a_rank; ++number)
        made[static_cast<std::size_t>(number)][static_cast<std::size_t>(r)] =
            connect_to(address, {group, size(), rank(), number}, r, rules_);
    }
    std::vector<bool> is_there(static_cast<std::size_t>(lanes_to_a_rank * size()));
    std::vector<std::pair<hello, connection>> came;
    accept_ranks(
        here, static_cast<std::size_t>(lanes_to_a_rank * (size() - 1 - rank())),
        [&](const hello& h) {
          return h.rank <= rank() ? std::string("a lower rank does not connect") : objection(h, group, 0, is_there);
        },
        [&] { return missing(is_there, lanes_to_a_rank); }, rules_, came);
    for (auto& [who, one] : came)
      made[static_cast<std::size_t>(who.lane)][static_cast<std::size_t>(who.rank)] = std::move(one);
    return made;
  }

  /// Where a rank listens: a free port, or a file beside that of rank 0.
  static std::string own_address(const socket_place& p) {
    if (p.address.starts_with("unix:")) {
      std::string name = p.address + "." + std::to_string(p.rank) + ".";
      const wire_nonce n = draw_nonce();
      for (std::size_t i = 0; i < 4; ++i) name += joined({static_cast<unsigned>(n[i])});
      return name;
    }
    if (!p.listen.empty()) return p.listen + ":0";
    if (!parse_address(p.address).is_loopback() && p.rank != 0)
      refuse<value_error>({"socket_communicator: rank ", p.rank, " listens on loopback, where rank 0 at ", p.address,
                           " does not reach it; set listen (SINTER_LISTEN) to a host name of this machine"});
    // Rank 0 of several machines was given an address.
    return p.rank == 0 ? p.address.substr(0, p.address.rfind(':')) + ":0" : "127.0.0.1:0";
  }
  static void put_address(std::span<std::byte> to, const std::string& address) {
    std::memcpy(to.data(), address.data(), std::min(address.size(), address_size - 1));
  }
  /// What another rank has put there, whatever it is.
  static std::string address_at(std::span<const std::byte> from) {
    std::string address;
    for (const std::byte b : from.first(address_size - 1)) {
      if (b == std::byte{0}) break;
      address += static_cast<char>(b);
    }
    return address;
  }

 private:
  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  static std::span<std::byte> address_in(std::vector<std::byte>& list, int r) {
    return std::span(list).subspan(8 + static_cast<std::size_t>(r) * address_size, address_size);
  }

  /// Of rank 0: gets the addresses of all, and sends them to all.
  void gather(const listener& here, std::vector<std::byte>& list) {
    std::vector<bool> is_there(static_cast<std::size_t>(size()));
    std::vector<std::pair<hello, connection>> came;
    try {
      accept_ranks(
          here, static_cast<std::size_t>(size() - 1), [&](const hello& h) { return objection(h, 0, -1, is_there); },
          [&] { return missing(is_there, 1); }, rules_, came);
      for (auto& [who, one] : came)
        rules_.receive(one, address_in(list, who.rank), joined({"rank ", who.rank}), who.rank);
    } catch (const trouble& why) {
      std::vector<std::byte> no_list(list.size());
      std::memcpy(no_list.data() + 8, why.text.data(), std::min(why.text.size(), no_list.size() - 9));
      for (auto& [who, one] : came) {
        try {
          rules_.send(one, no_list, joined({"rank ", who.rank}), who.rank);
        } catch (const trouble&) {  // NOLINT: it is gone, or does not listen
        }
      }
      throw;
    }
    for (auto& [who, one] : came) rules_.send(one, list, joined({"rank ", who.rank}), who.rank);
  }
  rank_connections connect_by(const listener& here, std::vector<std::byte>& list, std::uint64_t& group) {
    std::memcpy(&group, list.data(), 8);
    std::vector<std::string> addresses;
    for (int r = 0; r < size(); ++r) addresses.push_back(address_at(address_in(list, r)));
    return connect(here, addresses, group, 0);
  }

  /// Why h is not let in; empty where it is, and `is_there` then says so.
  std::string objection(const hello& h, std::uint64_t group, int lane_number, std::vector<bool>& is_there) const {
    if (h.group != group) return "it belongs to another communicator";
    if (h.size != size()) return joined({"rank ", h.rank, " of ", h.size, ", where there are ", size(), " ranks"});
    const bool is_one =
        h.rank > 0 && h.rank < size() && (lane_number < 0 ? h.lane == -1 : h.lane >= 0 && h.lane < lanes_to_a_rank);
    const auto at = is_one ? static_cast<std::size_t>(lane_number < 0 ? h.rank : lanes_to_a_rank * h.rank + h.lane) : 0;
    if (!is_one || is_there[at]) return joined({"rank ", h.rank, " is not expected, or came twice"});
    is_there[at] = true;
    return {};
  }
  trouble missing(const std::vector<bool>& is_there, int lanes) const {
    std::vector<int> ranks;
    for (int r = (lanes == 1 ? 1 : rank() + 1); r < size(); ++r)
      for (int l = 0; l < lanes; ++l)
        if (!is_there[static_cast<std::size_t>(lanes * r + l)] && (ranks.empty() || ranks.back() != r))
          ranks.push_back(r);
    return {communication_failure::timeout, ranks.empty() ? -1 : ranks.front(),
            joined({"timeout: ", rank_list(ranks), " did not connect"})};
  }
  /// What rank 0 sends once all ranks are there. Errors: a trouble, with rank 0's words where it gives up.
  static void receive_list(connection& from, std::vector<std::byte>& list, meeting_rules rules) {
    rules.end = after(rules.end, 1);  // rank 0, which knows who is missing, speaks first
    try {
      rules.receive(from, list, "rank 0", 0);
    } catch (const trouble& t) {
      if (t.kind != communication_failure::timeout) throw;
      throw trouble{t.kind, -1, "timeout: rank 0 is there, and still waits for other ranks; its output names them"};
    }
    if (std::any_of(list.begin(), list.begin() + 8, [](std::byte b) { return b != std::byte{0}; })) return;
    const auto end = std::find(list.begin() + 8, list.end(), std::byte{0});
    throw trouble{communication_failure::aborted, 0, "rank 0 gave up: " + printable(std::span(list.begin() + 8, end))};
  }

  socket_place place_;
  meeting_rules rules_;
};

}  // namespace sinter::detail
