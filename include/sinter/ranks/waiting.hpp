// sinter/ranks/waiting.hpp: what ranks wait for: calls that wait for each other for ever, and who keeps others waiting.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "sinter/ranks/transport.hpp"

namespace sinter::detail {

/// What a rank waits for, and what it has begun: what another rank must know to tell whether its wait can end.
struct rank_wait {
  rank_wait() = default;
  explicit rank_wait(int ranks)
      : missing(static_cast<std::size_t>(ranks)), sent(missing.size()), received(missing.size()) {}

  bool waits = false;
  call_header call;              ///< in which it waits, or that it made last
  std::int64_t number = 0;       ///< of the collective; of the message, among those to or from that rank
  std::int64_t collectives = 0;  ///< that it has come to
  /// By rank: 1 if this one waits for a call of that rank, 2 if for what it has written to that rank to go, else 0.
  std::vector<std::uint8_t> missing;
  std::vector<std::int64_t> sent, received;  ///< messages that it has begun, by the other rank

  void wait_for(const transfer& t) {
    waits = true;
    call = t.header;
    number = t.number;
    std::fill(missing.begin(), missing.end(), std::uint8_t{0});
    missing[static_cast<std::size_t>(t.peer)] = t.outgoing ? 2 : 1;
  }
  void wait_for(const call_header& h, const std::vector<int>& calls_of, const std::vector<int>& writes_to = {}) {
    waits = true;
    call = h;
    number = h.number;
    std::fill(missing.begin(), missing.end(), std::uint8_t{0});
    for (const int r : writes_to) missing[static_cast<std::size_t>(r)] = 2;
    for (const int r : calls_of) missing[static_cast<std::size_t>(r)] = 1;
  }
  /// Counts a message that begins.
  void begin(transfer& t) {
    call = t.header;
    t.number = ++(t.outgoing ? sent : received)[static_cast<std::size_t>(t.peer)];
  }
  void begin(const call_header& h) {
    call = h;
    if (h.number > 0) collectives = h.number;
  }
};

/// Ranks do not begin a call while they wait: messages wait behind a collective, and the program behind a message. So
/// where a waits for a call that b has not begun, and b for one of a, both do for ever, also over further ranks. It
/// does not matter when each rank has said what it waits for: the first one to go on would need a call of the next,
/// which has not gone on.
class wait_graph {
 public:
  /// all[r]: what rank r has said last.
  explicit wait_graph(std::span<const rank_wait> all) : all_(all) {}

  /// The ranks of a cycle that `from` is part of, `from` first; empty where there is none. Who waits for what it
  /// writes to go does not wait for certain, as the system may take it: that counts `with_writes` only.
  std::vector<int> cycle(int from, bool with_writes) const {
    std::vector<int> path;
    std::vector<bool> seen(all_.size());
    const auto reaches = [&](const auto& self, int at) -> bool {
      path.push_back(at);
      for (int next = 0; next < size(); ++next) {
        if (!is_waiting_for(at, next, with_writes)) continue;
        if (next == from) return true;
        if (seen[static_cast<std::size_t>(next)]) continue;
        seen[static_cast<std::size_t>(next)] = true;
        if (self(self, next)) return true;
      }
      path.pop_back();
      return false;
    };
    reaches(reaches, from);
    return path;
  }
  /// Errors: a mismatch where `from` is part of a cycle.
  void require_no_cycle(int from, bool with_writes = false) const {
    std::vector<int> ranks = cycle(from, with_writes);
    if (ranks.empty()) return;
    // The same words, whoever finds it. A message that meets a collective is the odd one.
    std::rotate(ranks.begin(), std::min_element(ranks.begin(), ranks.end()), ranks.end());
    const auto odd = std::find_if(ranks.begin(), ranks.end(), [this](int r) { return is_message(said(r).call.op); });
    std::string text = "mismatch: ";
    for (std::size_t i = 0; i < ranks.size(); ++i)
      text += (i > 0 ? ", " : "") + text_of_wait(ranks[i], ranks[(i + 1) % ranks.size()]);
    throw trouble{communication_failure::mismatch, odd != ranks.end() ? *odd : ranks.front(),
                  text +
                      ": none of this can end; all ranks must make the same collectives in the same order, and each "
                      "receive needs a send"};
  }

  /// The trouble of rank `me`, which has waited for these ranks for too long: it names those at the end of the waits
  /// that begin there, which do not wait.
  SINTER_COLD trouble timeout_of(int me, const char* doing, const std::vector<int>& missing) const {
    std::vector<int> to_follow = missing, idle;
    std::vector<bool> seen(all_.size());
    seen[static_cast<std::size_t>(me)] = true;
    std::string through;
    for (std::size_t i = 0; i < to_follow.size(); ++i) {
      const int r = to_follow[i];
      if (seen[static_cast<std::size_t>(r)]) continue;
      seen[static_cast<std::size_t>(r)] = true;
      int last = -1;
      for (int next = 0; next < size(); ++next)
        if (is_waiting_for(r, next, true)) to_follow.push_back(last = next);
      if (last < 0) idle.push_back(r);
      else if (last != me) through += "; " + text_of_wait(r, last);
    }
    if (idle.empty()) idle = missing;
    std::sort(idle.begin(), idle.end());
    std::string text = joined({"timeout: ", doing, " ", rank_list(idle), " in vain"});
    if (idle.size() == 1)
      if (const rank_wait& one = said(idle[0]); one.collectives > 0 || is_message(one.call.op))
        text += joined({"; the last call of rank ", idle[0], " known here is ", text_of(one.call)});
    return {communication_failure::timeout, idle.front(), text + through};
  }

 private:
  int size() const { return static_cast<int>(all_.size()); }
  const rank_wait& said(int r) const { return all_[static_cast<std::size_t>(r)]; }
  /// True where a waits for a call that b has not begun.
  bool is_waiting_for(int a, int b, bool with_writes) const {
    const rank_wait &x = said(a), &y = said(b);
    const auto of_b = static_cast<std::size_t>(b), of_a = static_cast<std::size_t>(a);
    if (!x.waits || x.missing[of_b] == 0 || (x.missing[of_b] == 2 && !with_writes)) return false;
    const std::int64_t begun = x.call.op == operation::send      ? y.received[of_a]
                               : x.call.op == operation::receive ? y.sent[of_a]
                                                                 : y.collectives;
    return begun < x.number;
  }
  std::string text_of_wait(int r, int for_whom) const {
    return joined({"rank ", r, " waits in ", text_of(said(r).call), " for ",
                   r == for_whom ? std::string("itself") : joined({"rank ", for_whom})});
  }

  std::span<const rank_wait> all_;
};

}  // namespace sinter::detail
