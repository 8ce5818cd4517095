// sinter/ranks/transport.hpp: how a backend of communicators moves bytes between ranks, and what ranks tell each
// other.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "sinter/core/host_tensor.hpp"
#include "sinter/ranks/communicator.hpp"

namespace sinter::detail {

enum class operation : std::uint8_t {
  all_reduce,
  broadcast,
  all_gather,
  reduce_scatter,
  barrier,
  split,
  send,
  receive
};

inline bool is_message(operation op) { return op == operation::send || op == operation::receive; }
inline const char* operation_name(operation op) {
  constexpr const char* names[] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter",
                                   "barrier",    "split",     "send",       "receive"};
  return names[static_cast<int>(op)];
}

/// A call as ranks tell each other of it. It has no padding, so that it can be sent as it is between equal machines.
struct call_header {
  std::int64_t number = 0;  ///< of the collective on this communicator, from 1
  std::int64_t count = 0;   ///< elements
  std::uint64_t hash = 0;   ///< of the name
  std::int32_t root = 0;    ///< of broadcast; the tag of messages
  operation op = operation::barrier;
  element_kind element = element_kind::uint8;
  std::uint8_t is_max = 0;  ///< of all_reduce
  std::uint8_t name_length = 0;
  char name[40] = {};  ///< its beginning, for messages

  bool operator==(const call_header& other) const {
    return number == other.number && count == other.count && hash == other.hash && root == other.root &&
           op == other.op && element == other.element && is_max == other.is_max;
  }
};
static_assert(sizeof(call_header) == 72);

/// FNV-1a.
inline std::uint64_t hash_of(std::string_view text) {
  std::uint64_t h = 0xcbf29ce484222325u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}

inline call_header make_header(operation op, element_kind element, std::size_t count, int root, bool is_max,
                               std::string_view name) {
  call_header h;
  h.op = op;
  h.element = element;
  h.count = static_cast<std::int64_t>(count);
  h.root = root;
  h.is_max = is_max ? 1 : 0;
  h.hash = hash_of(name);
  h.name_length = static_cast<std::uint8_t>(name.size() < sizeof h.name ? name.size() : sizeof h.name);
  if (h.name_length > 0) std::memcpy(h.name, name.data(), h.name_length);
  return h;
}

/// "all_reduce (max) of 8 float 'loss', its collective number 3".
SINTER_COLD inline std::string text_of(const call_header& h) {
  std::string text = operation_name(h.op);
  if (h.is_max != 0) text += " (max)";
  if (h.op != operation::barrier && h.op != operation::split)
    text += joined({" of ", h.count, " ", element_name(h.element)});
  if (h.name_length > 0) text += " '" + std::string(h.name, h.name_length) + "'";
  if (h.op == operation::broadcast) text += joined({" from rank ", h.root});
  if (h.op == operation::send || h.op == operation::receive) text += joined({" with tag ", h.root});
  if (h.number > 0) text += joined({", its collective number ", h.number});
  return text;
}

/// False for what came from another rank and is no call: numbers that stand for nothing.
inline bool is_call(const call_header& h) {
  return static_cast<std::uint8_t>(h.op) <= static_cast<std::uint8_t>(operation::receive) &&
         static_cast<std::uint8_t>(h.element) < static_cast<std::uint8_t>(element_kind::other) && h.is_max <= 1 &&
         h.name_length <= sizeof h.name && h.count >= 0;
}

inline std::size_t bytes_of(const call_header& h) {
  return static_cast<std::size_t>(h.count) * element_size(h.element);
}

/// Why a communicator failed, as a transport says it and ranks tell it to each other.
struct trouble {
  communication_failure kind = communication_failure::backend;
  int peer = -1;
  std::string text;
};
/// A trouble of this text, or where memory is short of one that needs none.
inline trouble trouble_of(communication_failure kind, int peer, std::initializer_list<text_piece> text) noexcept {
  try {
    return {kind, peer, joined(text)};
  } catch (...) {
    return {kind, peer, "out of memory"};  // it lies inside of the string
  }
}
/// Longer texts are cut off where ranks tell each other of a trouble.
inline constexpr std::size_t longest_text = 4096;

[[noreturn]] SINTER_COLD inline void throw_mismatch(int a, const call_header& of_a, int b, const call_header& of_b,
                                                    int peer) {
  throw trouble{communication_failure::mismatch, peer,
                joined({"mismatch: rank ", a, " calls ", text_of(of_a), ", and rank ", b, " calls ", text_of(of_b),
                        "; all ranks must make the same calls in the same order"})};
}

/// A message fits what its receiver expects where elements and tag are the same.
inline bool is_same_message(const call_header& sent, const call_header& expected) {
  return sent.count == expected.count && sent.element == expected.element && sent.root == expected.root;
}
/// Errors: a trouble that names both ranks.
inline void require_same_message(int from, const call_header& sent, int me, const call_header& expected) {
  if (!is_same_message(sent, expected)) throw_mismatch(from, sent, me, expected, from);
}

/// A rank's arguments of split.
struct color_and_key {
  std::int32_t color, key;
};
/// The ranks of one color, in the order of (key, rank).
inline std::vector<int> ranks_of_color(std::span<const color_and_key> all, int color) {
  std::vector<int> ranks;
  for (std::size_t r = 0; r < all.size(); ++r)
    if (all[r].color == color) ranks.push_back(static_cast<int>(r));
  const auto place = [&](int r) { return std::pair(all[static_cast<std::size_t>(r)].key, r); };
  std::sort(ranks.begin(), ranks.end(), [&](int a, int b) { return place(a) < place(b); });
  return ranks;
}

/// "rank 2" or "ranks 2, 3".
SINTER_COLD inline std::string rank_list(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(ranks[i]);
  return text;
}

/// t seconds after `from`; centuries are enough.
inline communication_clock::time_point after(communication_clock::time_point from, double t) {
  using seconds = std::chrono::duration<double>;
  return from + std::chrono::duration_cast<communication_clock::duration>(seconds(t < 1e9 ? (t > 0 ? t : 0) : 1e9));
}

/// Until when a transport may wait. A thread that waits for the result may bring it forward.
class deadline {
 public:
  deadline() = default;
  /// So many seconds later than `base`, also when that is changed.
  deadline(const deadline& base, double later) : base_(&base), later_(later) {}
  communication_clock::time_point at() const {
    if (base_ != nullptr) return base_->is_set() ? after(base_->at(), later_) : base_->at();
    return communication_clock::time_point(communication_clock::duration(end_.load(std::memory_order_acquire)));
  }
  bool is_set() const { return at() != communication_clock::time_point::max(); }
  bool is_over() const { return communication_clock::now() >= at(); }
  void set(communication_clock::time_point t) { end_.store(t.time_since_epoch().count(), std::memory_order_release); }

 private:
  std::atomic<communication_clock::rep> end_{std::numeric_limits<communication_clock::rep>::max()};
  const deadline* base_ = nullptr;
  double later_ = 0;
};

/// Memory on its way to or from another rank.
struct transfer {
  call_header header;
  int peer = 0;
  bool outgoing = false;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::int64_t number = 0;      ///< among the messages to, or from, that rank
  std::shared_ptr<void> state;  ///< the transport's
};

/// The part of a communicator that moves bytes between ranks. All calls but wake() come from one thread. Errors: a
/// `trouble`. Collectives return, or throw, soon after `until` is over or is_interrupted().
class transport {
 public:
  virtual ~transport() = default;
  virtual const char* name() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// False where a collective may wait for ever inside a library.
  virtual bool keeps_time() const { return true; }

  /// The headers of all ranks. It is the barrier, too.
  virtual std::vector<call_header> exchange(const call_header& mine, const deadline& until) = 0;
  virtual void all_reduce(const call_header& what, std::byte* data, const deadline& until) = 0;
  virtual void broadcast(const call_header& what, std::byte* data, const deadline& until) = 0;
  virtual void all_gather(const call_header& what, const std::byte* mine, std::byte* all, const deadline& until) = 0;
  virtual void reduce_scatter(const call_header& what, const std::byte* all, std::byte* mine,
                              const deadline& until) = 0;
  virtual std::unique_ptr<transport> split(const call_header& what, int color, int key, const deadline& until) = 0;

  virtual void start(transfer& t) = 0;
  /// Moves on what was started. True once t is over.
  virtual bool test(transfer& t) = 0;
  /// Called again and again while the program waits for t, and has made no call after it. Errors: a mismatch where t
  /// can never be over.
  virtual void watch(const transfer&, communication_clock::time_point) {}
  /// What to say of t, whose time is over.
  virtual trouble timeout_of(const transfer& t) const { return timeout_for("waited for", {t.peer}); }

  /// Tells the other ranks, as well as it can, why this one gives up.
  virtual void tell(const trouble& why) noexcept = 0;
  /// The last call where nothing failed.
  virtual void close() {}
  /// Ends what waits inside; from any thread.
  virtual void wake() {}

  bool is_interrupted() const { return interrupted_.load(std::memory_order_acquire); }
  void interrupt() {
    interrupted_.store(true, std::memory_order_release);
    wake();
  }
  /// For loops that wait: a trouble where the wait has to end. `missing`: for whom.
  void give_up(const deadline& until, const char* doing, const std::vector<int>& missing) const {
    if (is_interrupted()) throw trouble{communication_failure::aborted, -1, "interrupted"};
    if (until.is_over() && !missing.empty()) throw timeout_for(doing, missing);
  }

 protected:
  /// What to say where these ranks have kept this one waiting for too long.
  virtual trouble timeout_for(const char* doing, const std::vector<int>& missing) const {
    return {communication_failure::timeout, missing.front(),
            joined({"timeout: ", doing, " ", rank_list(missing), " in vain"})};
  }

 private:
  std::atomic<bool> interrupted_{false};
};

}  // namespace sinter::detail
