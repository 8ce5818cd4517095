// sinter/ranks/thread/communicator.hpp: ranks that are threads of one process, over links with emulated times.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <type_traits>

#include "sinter/ranks/host_communicator.hpp"
#include "sinter/ranks/rank_sum.hpp"
#include "sinter/ranks/waiting.hpp"

namespace sinter {

/// A fault for tests: rank `rank` behaves so when it comes to its collective `number`, from 1.
struct injected_fault {
  int rank = -1;
  index_t number = 0;
};

/// Options of thread_communicator. Each rank has one link, over which a message of n bytes takes latency + n /
/// bandwidth seconds. A collective of R ranks begins when the last one comes, and takes as long as these messages one
/// after the other: all_reduce 2 (R - 1) of n / R bytes, all_gather and reduce_scatter R - 1 of one part (a ring);
/// broadcast ceil(log2 R) of n bytes, barrier and split as many without bytes (a tree). The communication thread sleeps
/// for that long; the program does not.
///
/// make() and run_ranks() refuse a timeout that is not above 0, a latency or bandwidth below 0, and a fault of a rank
/// that does not exist.
struct thread_options {
  std::chrono::duration<double> timeout = std::chrono::seconds(300);  ///< for a rank that does not take part
  std::chrono::duration<double> latency = std::chrono::seconds(0);
  double bandwidth = 0;          ///< bytes per second; 0: no limit
  injected_fault die_at = {};    ///< the rank ends there: the others throw peer_lost
  injected_fault stall_at = {};  ///< the rank stops there: the others throw timeout
};

namespace detail {

/// What the ranks share.
class thread_group {
 public:
  thread_group(int size, const thread_options& o)
      : options(o), places(static_cast<std::size_t>(size)), waits(places.size(), rank_wait(size)) {}

  struct place {
    call_header header[2];  ///< of even and odd exchanges: a rank that is ahead writes the other one
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    color_and_key asks = {};              ///< of split
    std::shared_ptr<thread_group> group;  ///< that split made
    bool has_left = false;
    int waits_at = 0;  ///< the number of meetings that the rank came to
  };
  struct message {
    call_header header;
    std::vector<std::byte> bytes;
    communication_clock::time_point arrives;
  };

  const thread_options options;
  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  std::vector<place> places;
  std::vector<rank_wait> waits;
  int meetings = 0, present = 0;
  communication_clock::time_point last_came;
  std::map<std::pair<int, int>, std::deque<message>> mail;  ///< (from, to)
  std::vector<communication_clock::time_point> link_free = std::vector<communication_clock::time_point>(places.size());
  std::optional<trouble> failure;
};

class thread_transport final : public transport {
 public:
  thread_transport(std::shared_ptr<thread_group> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~thread_transport() override {
    const std::lock_guard lock(group_->mutex);
    mine().has_left = true;
    group_->changed.notify_all();
  }

  const char* name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->places.size()); }

  std::vector<call_header> exchange(const call_header& h, const deadline& until) override {
    inject(h);
    const int turn = ++exchanges_ % 2;
    mine().header[turn] = h;
    meet(until, &h);
    std::vector<call_header> all;
    for (const thread_group::place& s : group_->places) all.push_back(s.header[turn]);
    if (h.op == operation::barrier) take(tree(), 0);
    return all;
  }
  void all_reduce(const call_header& h, std::byte* data, const deadline& until) override {
    const auto n = static_cast<std::size_t>(h.count);
    together({data, data}, until, [&] {
      const part_of_rank part(n, size(), rank_);
      const std::size_t width = element_size(h.element);
      std::vector<const std::byte*> parts;
      for (const thread_group::place& s : group_->places) parts.push_back(s.from);
      // Nobody else reads or writes this part of any rank's memory.
      join_in_rank_order(h.element, h.is_max != 0, parts, part.begin, part.size(), data + part.begin * width);
      for (const thread_group::place& s : group_->places)
        if (s.to != data) copy(s.to + part.begin * width, data + part.begin * width, part.size() * width);
    });
    take(2 * (size() - 1), one_part(h));
  }
  void broadcast(const call_header& h, std::byte* data, const deadline& until) override {
    together({data, data}, until, [&] {
      if (rank_ != h.root) copy(data, place_of(h.root).from, bytes_of(h));
    });
    take(tree(), static_cast<double>(bytes_of(h)));
  }
  void all_gather(const call_header& h, const std::byte* from, std::byte* all, const deadline& until) override {
    const std::size_t bytes = bytes_of(h);
    together({from, all}, until, [&] {
      for (std::size_t r = 0; r < group_->places.size(); ++r) copy(all + r * bytes, group_->places[r].from, bytes);
    });
    take(size() - 1, static_cast<double>(bytes));
  }
  void reduce_scatter(const call_header& h, const std::byte* all, std::byte* to, const deadline& until) override {
    together({all, to}, until, [&] {
      std::vector<const std::byte*> parts;
      for (const thread_group::place& s : group_->places) parts.push_back(s.from);
      const auto n = static_cast<std::size_t>(h.count) / group_->places.size();
      join_in_rank_order(h.element, h.is_max != 0, parts, n * static_cast<std::size_t>(rank_), n, to);
    });
    take(size() - 1, one_part(h));
  }
  std::unique_ptr<transport> split(const call_header&, int color, int key, const deadline& until) override {
    mine().asks = {color, key};
    std::vector<int> members;
    std::shared_ptr<thread_group> group;
    together({}, until, [&] {
      std::vector<color_and_key> all;
      for (const thread_group::place& s : group_->places) all.push_back(s.asks);
      members = ranks_of_color(all, color);
      if (members.front() == rank_)
        mine().group = std::make_shared<thread_group>(static_cast<int>(members.size()), without_faults());
    });
    together({}, until, [&] { group = place_of(members.front()).group; });
    mine().group = nullptr;
    take(tree(), 0);
    const auto rank_there = std::find(members.begin(), members.end(), rank_) - members.begin();
    return std::make_unique<thread_transport>(std::move(group), static_cast<int>(rank_there));
  }

  void start(transfer& t) override {
    const std::lock_guard lock(group_->mutex);
    my_wait().begin(t);
    if (!t.outgoing) return;
    thread_group::message m{t.header, {t.data, t.data + t.bytes}, {}};
    auto& free = group_->link_free[static_cast<std::size_t>(rank_)];
    const auto now = communication_clock::now();
    const double transmission =
        group_->options.bandwidth > 0 ? static_cast<double>(t.bytes) / group_->options.bandwidth : 0;
    free = after(std::max(free, now), transmission);
    m.arrives = after(free, group_->options.latency.count());
    group_->mail[{rank_, t.peer}].push_back(std::move(m));
  }
  bool test(transfer& t) override {
    const std::lock_guard lock(group_->mutex);
    if (group_->failure) throw *group_->failure;
    if (t.outgoing) return true;
    auto& box = group_->mail[{t.peer, rank_}];
    if (box.empty() && place_of(t.peer).has_left) throw left(t.peer);
    if (box.empty() || box.front().arrives > communication_clock::now()) return false;
    const thread_group::message& m = box.front();
    require_same_message(t.peer, m.header, rank_, t.header);
    copy(t.data, m.bytes.data(), t.bytes);
    box.pop_front();
    my_wait().waits = false;
    return true;
  }
  void watch(const transfer& t, communication_clock::time_point) override {
    const std::lock_guard lock(group_->mutex);
    if (my_wait().waits || group_->failure) return;
    my_wait().wait_for(t);
    look_for_cycle();
  }
  trouble timeout_of(const transfer& t) const override {
    const std::lock_guard lock(group_->mutex);
    return transport::timeout_of(t);
  }

  void tell(const trouble& why) noexcept override {
    const std::lock_guard lock(group_->mutex);
    note(why);
    group_->changed.notify_all();
  }
  void wake() override {
    const std::lock_guard lock(group_->mutex);
    group_->changed.notify_all();
  }

 private:
  struct buffers {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
  };

  thread_group::place& place_of(int r) const { return group_->places[static_cast<std::size_t>(r)]; }
  thread_group::place& mine() const { return place_of(rank_); }
  rank_wait& my_wait() const { return group_->waits[static_cast<std::size_t>(rank_)]; }
  static void copy(std::byte* to, const std::byte* from, std::size_t n) {
    if (n > 0) std::memcpy(to, from, n);
  }
  /// Bytes of the part that one rank adds up.
  double one_part(const call_header& h) const { return static_cast<double>(bytes_of(h)) / size(); }
  int tree() const { return static_cast<int>(std::ceil(std::log2(size()))); }
  thread_options without_faults() const {
    thread_options o = group_->options;
    o.die_at = o.stall_at = {};
    return o;
  }
  static trouble left(int r) { return {communication_failure::peer_lost, r, joined({"rank ", r, " has ended"})}; }

  /// Returns once all ranks are here. What they wrote before is seen by all. `begins`: the collective that the meeting
  /// is the begin of.
  void meet(const deadline& until, const call_header* begins = nullptr) {
    std::unique_lock lock(group_->mutex);
    if (group_->failure) throw *group_->failure;
    const int here = group_->meetings;
    mine().waits_at = here + 1;
    if (begins != nullptr) my_wait().begin(*begins);
    arrive();
    bool is_said = begins == nullptr;
    while (group_->meetings == here) {
      try {
        if (!std::exchange(is_said, true)) {
          my_wait().wait_for(*begins, missing_at(here));
          look_for_cycle();
        }
        give_up_where_one_is_missing(here, until);
      } catch (const trouble& t) {
        leave_meeting();
        if (!is_interrupted()) note(t);
        throw;
      } catch (...) {  // what it is tell() says
        leave_meeting();
        throw;
      }
      group_->changed.wait_until(lock, until.at());
    }
    my_wait().waits = false;
    came_ = group_->last_came;
  }
  /// Under the lock.
  void look_for_cycle() {
    try {
      wait_graph(group_->waits).require_no_cycle(rank_);
    } catch (const trouble& t) {
      note(t);
      group_->changed.notify_all();
      throw;
    }
  }
  std::vector<int> missing_at(int meeting) const {
    std::vector<int> missing;
    for (int r = 0; r < size(); ++r)
      if (place_of(r).waits_at != meeting + 1) missing.push_back(r);
    return missing;
  }
  /// Under the lock. The first failure stays.
  void note(const trouble& why) noexcept {
    if (group_->failure) return;
    try {
      group_->failure = why;
    } catch (const std::bad_alloc&) {
      group_->failure = trouble{why.kind, why.peer, "out of memory"};  // which lies inside of the string
    }
  }
  /// Under the lock: the meeting must not end without this rank.
  void leave_meeting() noexcept {
    mine().waits_at = 0;
    --group_->present;
  }
  /// Under the lock: the last one ends the meeting.
  void arrive() {
    if (++group_->present < size()) return;
    group_->present = 0;
    ++group_->meetings;
    group_->last_came = communication_clock::now();
    group_->changed.notify_all();
  }
  void give_up_where_one_is_missing(int here, const deadline& until) const {
    if (group_->failure) throw *group_->failure;
    const std::vector<int> missing = missing_at(here);
    for (const int r : missing)
      if (place_of(r).has_left) throw left(r);
    give_up(until, "waited for", missing);
  }
  /// Under the lock.
  trouble timeout_for(const char* doing, const std::vector<int>& missing) const override {
    return wait_graph(group_->waits).timeout_of(rank_, doing, missing);
  }
  /// f() once all ranks are here with their buffers; returns when all are done, so that buffers are free again.
  template <class F>
  void together(buffers b, const deadline& until, const F& f) {
    mine().from = b.from;
    mine().to = b.to;
    meet(until);
    std::exception_ptr failure;
    try {
      f();
    } catch (...) {
      failure = std::current_exception();
    }
    std::unique_lock lock(group_->mutex);
    const int here = group_->meetings;
    arrive();
    group_->changed.wait(lock, [&] { return group_->meetings != here; });  // soon: all have only memory to move
    if (failure) std::rethrow_exception(failure);
  }
  /// Sleeps until so many messages of so many bytes have passed since the last rank came.
  void take(int messages, double bytes) {
    const thread_options& o = group_->options;
    const double one = o.latency.count() + (o.bandwidth > 0 ? bytes / o.bandwidth : 0);
    std::unique_lock lock(group_->mutex);
    const auto end = after(came_, messages * one);
    while (communication_clock::now() < end && !is_interrupted() && !group_->failure)
      group_->changed.wait_until(lock, end);
  }

  bool is_hit(const injected_fault& f, const call_header& h) const { return f.rank == rank_ && f.number == h.number; }
  void inject(const call_header& h) {
    if (is_hit(group_->options.die_at, h)) {
      tell({communication_failure::peer_lost, rank_, joined({"rank ", rank_, " was lost"})});
      throw trouble{communication_failure::backend, rank_, "this rank dies here, as die_at says"};
    }
    if (!is_hit(group_->options.stall_at, h)) return;
    std::unique_lock lock(group_->mutex);
    group_->changed.wait(lock, [&] { return is_interrupted() || group_->failure.has_value(); });
  }

  std::shared_ptr<thread_group> group_;
  int rank_;
  int exchanges_ = 0;
  communication_clock::time_point came_{};  ///< when the last rank came to the last meeting
};

}  // namespace detail

/// Ranks that are threads of this process, for tests and for measurements with emulated links: sums are the same bit by
/// bit each time, all calls are compared, faults can be injected. See the concept `communicator`.
///
///     run_ranks(4, {.timeout = std::chrono::seconds(10)}, [](thread_communicator ranks) {
///       tensor<float, 1> x{float(ranks.rank())};
///       tensor sum = ranks.all_reduce(x).get();  // 6
///     });
class thread_communicator : public detail::host_communicator<thread_communicator> {
 public:
  /// One for each of `size` ranks. Errors: value_error for no ranks and for wrong options.
  static std::vector<thread_communicator> make(int size, const thread_options& options = {}) {
    if (size < 1) detail::refuse<value_error>({"thread_communicator: ", size, " ranks; there must be one or more"});
    require(options, size);
    auto group = std::make_shared<detail::thread_group>(size, options);
    std::vector<thread_communicator> all;
    for (int r = 0; r < size; ++r)
      all.push_back(thread_communicator(std::make_unique<detail::thread_transport>(group, r),
                                        {options.timeout.count(), std::numeric_limits<index_t>::max()},
                                        std::make_shared<detail::communication_thread>()));
    return all;
  }

 private:
  using base = detail::host_communicator<thread_communicator>;
  friend base;
  using base::base;

  SINTER_COLD static void require(const thread_options& o, int size) {
    detail::require_options("thread_communicator", o.timeout.count(), 0);
    const double latency = o.latency.count();
    if (!(latency >= 0 && latency < std::numeric_limits<double>::infinity()))
      detail::refuse<value_error>({"thread_communicator: latency is ", latency, " seconds; give 0 or more"});
    if (!(o.bandwidth >= 0))
      detail::refuse<value_error>({"thread_communicator: bandwidth is ", o.bandwidth,
                                   " bytes per second; give more than 0, or 0 for no limit"});
    for (const auto& [name, fault] : {std::pair("die_at", o.die_at), std::pair("stall_at", o.stall_at)})
      if (fault.rank < -1 || fault.rank >= size || fault.number < 0)
        detail::refuse<value_error>({"thread_communicator: ", name, " is {", fault.rank, ", ", fault.number,
                                     "}, where there are ", size, " ranks; collectives count from 1"});
  }
};

/// Calls f(communicator) for `size` ranks, each on a thread, and returns when all have ended. An exception on one rank
/// makes the others fail with "aborted by rank r: its text". Errors: the exception that came first.
template <class F>
void run_ranks(int size, const thread_options& options, const F& f) {
  std::vector<thread_communicator> all = thread_communicator::make(size, options);
  std::mutex mutex;
  std::exception_ptr first;
  const auto note = [&] {
    const std::lock_guard lock(mutex);
    if (!first) first = std::current_exception();
  };
  std::vector<std::thread> threads;
  try {
    for (int r = 0; r < size; ++r)
      threads.emplace_back([&, mine = std::optional(std::move(all[static_cast<std::size_t>(r)]))]() mutable {
        try {
          detail::run_rank(*std::exchange(mine, std::nullopt), f, note);
        } catch (...) {  // NOLINT: it is noted
        }
      });
  } catch (...) {  // no thread to be had
    note();
    all.clear();
  }
  for (std::thread& t : threads) t.join();
  if (first) std::rethrow_exception(first);
}
template <class F>
void run_ranks(int size, const F& f) {
  run_ranks(size, thread_options{}, f);
}

}  // namespace sinter
