// sinter/ranks/channel.hpp: the state of a communicator and of its calls, which its thread and the program share.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "sinter/ranks/transport.hpp"

namespace sinter::detail {

struct communication_limits {
  double timeout = 300;
  index_t checked_calls = 100;
};

/// The state of a communicator that its thread sees.
struct channel {
  channel(std::unique_ptr<transport> by, communication_limits within)
      : over(std::move(by)),
        limits(within),
        spare_failure_(std::make_shared<const communication_error>(
            joined({"communicator (", over->name(), "), rank ", over->rank(), " of ", over->size(),
                    ": a call failed, and memory was too short to say why"})
                .c_str(),
            communication_failure::backend, over->rank(), -1, 0, std::string())) {
    const char* const always = std::getenv("SINTER_COMM_CHECK");
    if (always != nullptr && std::string_view(always) == "1")
      limits.checked_calls = std::numeric_limits<index_t>::max();
  }

  const std::unique_ptr<transport> over;
  communication_limits limits;
  deadline until;

  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  std::shared_ptr<const communication_error> failure;
  trouble why;
  bool told = false, is_stuck = false;
  int unfinished = 0;
  const void* awaited = nullptr;  ///< the call that the program waits for
  communication_time spent;
  communication_clock::time_point limit = communication_clock::time_point::max();  ///< of the thread that waits

  communication_clock::time_point end_of_call(communication_clock::time_point started) const {
    const auto end = after(started, limits.timeout);
    return limit < end ? limit : end;
  }

  /// Under the mutex. A new error each time, as threads must not share one.
  [[noreturn]] SINTER_COLD void throw_failure() const {
    throw communication_error(failure->what(), failure->kind(), failure->rank(), failure->peer(), failure->number(),
                              failure->name());
  }

  /// The first failure stays. A call that waits in the transport ends.
  void fail(const trouble& t, const call_header* during, const std::string& name) noexcept {
    {
      const std::lock_guard lock(mutex);
      if (failure != nullptr) return;
      const int peer = t.peer < -1 || t.peer >= over->size() ? -1 : t.peer;  // another rank may have told it
      try {
        trouble reason{t.kind, peer, t.text};
        failure = failure_of(reason, during, name);
        why = std::move(reason);
      } catch (const std::bad_alloc&) {
        why.kind = t.kind;
        why.peer = peer;
        why.text = "out of memory";
        failure = spare_failure_;
      }
      changed.notify_all();
    }
    over->interrupt();
  }

 private:
  std::shared_ptr<const communication_error> failure_of(const trouble& t, const call_header* during,
                                                        const std::string& name) const {
    const int me = over->rank();
    std::string text = joined({"communicator (", over->name(), "), rank ", me, " of ", over->size(), ": "});
    if (during != nullptr) {
      text += operation_name(during->op);
      if (during->number > 0) text += joined({" number ", during->number});
      if (!name.empty()) text += " '" + name + "'";
      text += ": ";
    }
    return std::make_shared<const communication_error>((text + t.text).c_str(), t.kind, me, t.peer,
                                                       during != nullptr ? during->number : 0, name);
  }

  std::shared_ptr<const communication_error> spare_failure_;  ///< for a failure without memory
};

/// One call, from its post to its end.
struct call {
  std::shared_ptr<channel> on;
  call_header header;
  std::string name;
  std::function<void(transport&, const call&)> run;  ///< a collective, once the calls were compared
  transfer moves;                                    ///< of a message
  std::shared_ptr<void> memory;                      ///< what the call reads and writes
  std::shared_ptr<call> for_ever;                    ///< itself, where a library may still write to its memory

  bool is_over = false;  ///< this and what follows: under the mutex of the channel
  communication_clock::time_point started{};
  bool has_failed = false;

  bool is_message() const { return detail::is_message(header.op); }
  bool done() const {
    const std::lock_guard lock(on->mutex);
    return is_over || on->is_stuck;
  }
  bool is_awaited() const {
    const std::lock_guard lock(on->mutex);
    return on->awaited == this;
  }
  communication_clock::time_point end_of_wait() const {
    const std::lock_guard lock(on->mutex);
    return on->end_of_call(started);
  }
  void end(bool well) {
    const std::lock_guard lock(on->mutex);
    has_failed = !well;
    is_over = true;
    run = nullptr;
    --on->unfinished;
    on->spent.under_way += seconds_since(started);
    on->changed.notify_all();
  }

  /// Returns once the call is over. Errors: the failure of the communicator.
  void wait(std::optional<double> seconds) {
    std::unique_lock lock(on->mutex);
    if (seconds.has_value() && !is_over) {
      on->limit = after(communication_clock::now(), *seconds);
      if (on->limit < on->until.at()) on->until.set(on->limit);
      lock.unlock();
      on->over->wake();
      lock.lock();
    }
    const auto start = communication_clock::now();
    on->awaited = this;
    while (!is_over) {
      if (on->over->keeps_time()) on->changed.wait(lock);
      else keep_time(lock);
    }
    on->awaited = nullptr;
    on->spent.waited += seconds_since(start);
    on->limit = communication_clock::time_point::max();
    if (has_failed) on->throw_failure();
  }

 private:
  /// For a library that may never return: waits for a moment, and makes the communicator fail where the time is over.
  void keep_time(std::unique_lock<std::mutex>& lock) {
    if (on->is_stuck) on->throw_failure();
    const bool runs = started != communication_clock::time_point{};
    // Later than the thread would end by itself where it still looks at the time.
    const auto end = runs ? after(on->end_of_call(started), 0.5) : communication_clock::time_point::max();
    const auto look = after(communication_clock::now(), 0.05);
    on->changed.wait_until(lock, end < look ? end : look);
    if (is_over || on->is_stuck || communication_clock::now() < end) return;
    lock.unlock();
    on->fail(trouble_of(communication_failure::timeout, -1,
                        {"timeout: not all ranks took part; set SINTER_COMM_CHECK=1, and the message names them"}),
             &header, name);
    lock.lock();
    on->is_stuck = true;
    on->changed.notify_all();
  }
};

}  // namespace sinter::detail
