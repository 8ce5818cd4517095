// sinter/ranks/communication.hpp: what the backends of communicators share: calls run in order on a thread of their
// own, ranks compare their calls, and the first failure is final.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

#include "sinter/ranks/channel.hpp"

namespace sinter::detail {

/// Runs calls in the order in which they come. Messages only start in this order: they move on between collectives.
/// The thread holds what it uses, so that it may be left behind where a library never comes back. It allocates nothing
/// of its own: what a call needs to wait in line is made before the call counts.
class communication_thread {
  struct item {
    std::shared_ptr<call> one;   ///< null: `last`
    std::function<void()> last;  ///< throws nothing
  };
  using items = std::list<item>;
  struct result {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_over = false;
    std::exception_ptr failure;
  };

 public:
  /// A place in line.
  struct ticket {
    items line;
    std::shared_ptr<result> end;  ///< of what is no call
  };

  communication_thread() : queue_(std::make_shared<queue>()), thread_([q = queue_] { q->serve(); }) {}
  communication_thread(const communication_thread&) = delete;
  communication_thread& operator=(const communication_thread&) = delete;
  ~communication_thread() {
    {
      const std::lock_guard lock(queue_->mutex);
      queue_->closing = true;
      queue_->changed.notify_all();
    }
    if (is_left_behind_) thread_.detach();
    else thread_.join();
  }

  static ticket ticket_for(std::shared_ptr<call> c) {
    ticket t;
    t.line.push_back({std::move(c), nullptr});
    return t;
  }
  /// For f(), which is no call.
  template <class F>
  static ticket ticket_for_last(F f) {
    ticket t;
    t.end = std::make_shared<result>();
    t.line.push_back({nullptr, [r = t.end, f] {
                        std::exception_ptr thrown;
                        try {
                          f();
                        } catch (...) {
                          thrown = std::current_exception();
                        }
                        const std::lock_guard lock(r->mutex);
                        r->failure = std::move(thrown);
                        r->is_over = true;
                        r->changed.notify_all();
                      }});
    return t;
  }
  /// Starts a call.
  void post(ticket t) noexcept {
    if (t.line.empty()) return;
    {
      channel& on = *t.line.front().one->on;
      const std::lock_guard lock(on.mutex);
      ++on.unfinished;
    }
    add(t.line);
  }
  /// f() of ticket_for_last(f) on the thread, after all that was posted; false where it is not over after so many
  /// seconds, when what f uses must stay. Errors: those of f.
  bool run_last(ticket t, double seconds = 1e9) {
    const auto end = after(communication_clock::now(), seconds);
    add(t.line);
    std::unique_lock lock(t.end->mutex);
    t.end->changed.wait_until(lock, end, [&] { return t.end->is_over; });
    if (t.end->failure) std::rethrow_exception(std::exchange(t.end->failure, nullptr));
    return t.end->is_over;
  }
  template <class F>
  bool call_last(F f, double seconds = 1e9) {
    return run_last(ticket_for_last(std::move(f)), seconds);
  }
  void leave_behind() { is_left_behind_ = true; }

 private:
  struct queue {
    std::mutex mutex;
    std::condition_variable changed;
    items waiting;
    bool closing = false;

    void serve() noexcept {
      items open, next;  // messages; what runs now
      std::unique_lock lock(mutex);
      while (true) {
        const auto woken = [&] { return !waiting.empty() || closing; };
        if (open.empty()) changed.wait(lock, woken);
        else changed.wait_for(lock, std::chrono::microseconds(200), woken);
        if (waiting.empty() && closing && open.empty()) return;
        if (!waiting.empty()) next.splice(next.end(), waiting, waiting.begin());
        lock.unlock();
        if (!next.empty()) {
          const item& now = next.front();
          if (now.one == nullptr) now.last();
          else run(now.one);
          if (now.one != nullptr && now.one->is_message()) open.splice(open.end(), next);
        }
        open.remove_if([](const item& i) { return move_on(i.one); });
        next.clear();
        const auto awaited = std::find_if(open.begin(), open.end(), [](const item& i) { return i.one->is_awaited(); });
        lock.lock();
        if (awaited == open.end() || !waiting.empty()) continue;
        lock.unlock();  // the program waits, so nothing comes meanwhile
        const call& c = *awaited->one;
        guarded(awaited->one, [&c] { c.on->over->watch(c.moves, c.end_of_wait()); });
        lock.lock();
      }
    }
  };

  void add(items& line) noexcept {
    const std::lock_guard lock(queue_->mutex);
    queue_->waiting.splice(queue_->waiting.end(), line);
    queue_->changed.notify_all();
  }

  /// f(), whose error becomes the failure of c's communicator; true where it has none.
  template <class F>
  static bool guarded(const std::shared_ptr<call>& c, const F& f) noexcept {
    channel& on = *c->on;
    try {
      {
        const std::lock_guard lock(on.mutex);
        if (on.failure != nullptr) throw trouble{};
      }
      f();
      return true;
    } catch (const trouble& t) {
      on.fail(t, &c->header, c->name);
    } catch (const std::exception& e) {
      on.fail(trouble_of(communication_failure::backend, -1, {e.what()}), &c->header, c->name);
    } catch (...) {  // of a function of the program, such as a log
      on.fail(trouble_of(communication_failure::backend, -1, {"an exception that is no std::exception"}), &c->header,
              c->name);
    }
    std::shared_ptr<const communication_error> failure;
    {
      const std::lock_guard lock(on.mutex);
      failure = on.failure;
      if (std::exchange(on.told, true)) failure = nullptr;
    }
    if (failure != nullptr) on.over->tell(on.why);
    return false;
  }
  static void run(const std::shared_ptr<call>& c) noexcept {
    channel& on = *c->on;
    {
      const std::lock_guard lock(on.mutex);
      c->started = communication_clock::now();
      on.until.set(on.end_of_call(c->started));
    }
    const bool ok = guarded(c, [&] {
      if (c->is_message()) return on.over->start(c->moves);
      const bool is_checked = c->header.number <= on.limits.checked_calls || c->header.op == operation::barrier;
      if (is_checked) compare(on.over->exchange(c->header, on.until));
      if (c->run) c->run(*on.over, *c);
    });
    if (c->is_message()) return;  // move_on() ends it
    c->end(ok);
  }
  /// Errors: a trouble that names rank 0 and the first rank whose call is another one.
  static void compare(const std::vector<call_header>& all) {
    for (std::size_t r = 1; r < all.size(); ++r)
      if (!(all[r] == all[0])) throw_mismatch(0, all[0], static_cast<int>(r), all[r], static_cast<int>(r));
  }

  /// True once the message is over.
  static bool move_on(const std::shared_ptr<call>& c) noexcept {
    channel& on = *c->on;
    bool is_over = false;
    const bool ok = guarded(c, [&] {
      is_over = on.over->test(c->moves);
      if (is_over) return;
      if (communication_clock::now() >= c->end_of_wait()) throw on.over->timeout_of(c->moves);
    });
    if (!ok && !on.over->keeps_time()) c->for_ever = c;
    if (!ok || is_over) c->end(ok);
    return !ok || is_over;
  }

  std::shared_ptr<queue> queue_;
  bool is_left_behind_ = false;
  std::thread thread_;
};

/// A communicator as its handles and its unfinished results share it.
class communication : public std::enable_shared_from_this<communication> {
 public:
  communication(std::unique_ptr<transport> over, communication_limits limits,
                std::shared_ptr<communication_thread> thread)
      : channel_(std::make_shared<channel>(std::move(over), limits)),
        thread_(std::move(thread)),
        farewell_(std::make_shared<call>()),
        farewell_ticket_(communication_thread::ticket_for(farewell_)),
        close_ticket_(communication_thread::ticket_for_last([c = channel_] { c->over->close(); })) {
    farewell_->on = channel_;
  }
  communication(const communication&) = delete;
  communication& operator=(const communication&) = delete;
  /// Waits for all calls. Where an exception is on its way out, the other ranks are told.
  ~communication() {
    if (std::uncaught_exceptions() > exceptions_) abort("an exception left the block of its communicator");
    std::unique_lock lock(channel_->mutex);
    channel_->changed.wait(lock, [this] { return channel_->unfinished == 0 || channel_->is_stuck; });
    const bool failed = channel_->failure != nullptr, is_stuck = channel_->is_stuck;
    lock.unlock();
    if (is_stuck) thread_->leave_behind();
    else if (!failed) {
      try {
        thread_->run_last(std::move(close_ticket_));
      } catch (...) {  // NOLINT: there is nobody left to tell
      }
    }
  }

  const transport& over() const { return *channel_->over; }
  const communication_limits& limits() const { return channel_->limits; }
  communication_time time_spent() const {
    const std::lock_guard lock(channel_->mutex);
    return channel_->spent;
  }
  const std::shared_ptr<communication_thread>& thread() const { return thread_; }

  /// Starts a call, or throws before it counts. Errors: the failure of the communicator.
  std::shared_ptr<work_state> post(std::shared_ptr<call> c) {
    {
      const std::lock_guard lock(channel_->mutex);
      if (channel_->failure != nullptr) channel_->throw_failure();
    }
    c->on = channel_;
    auto ticket = communication_thread::ticket_for(c);
    auto shared = std::make_shared<shared_call>(shared_from_this(), c);
    if (!c->is_message()) c->header.number = ++calls_;
    c->moves.header = c->header;
    thread_->post(std::move(ticket));
    return shared;
  }

  /// Returns once the other ranks are told, so that the program may end. A library may not come back for that.
  void abort(std::string_view reason) noexcept {
    channel_->fail(
        trouble_of(communication_failure::aborted, over().rank(), {"aborted by rank ", over().rank(), ": ", reason}),
        nullptr, {});
    // The thread finds the failure in this empty call, and tells the other ranks.
    thread_->post(std::exchange(farewell_ticket_, {}));
    std::unique_lock lock(channel_->mutex);
    channel_->changed.wait_until(lock, after(communication_clock::now(), 2),
                                 [&] { return farewell_->is_over || channel_->is_stuck; });
  }

 private:
  /// A call as its result holds it, with the communicator; the thread holds the call alone.
  struct shared_call final : work_state {
    shared_call(std::shared_ptr<communication> the_owner, std::shared_ptr<call> the_call)
        : owner(std::move(the_owner)), one(std::move(the_call)) {}
    bool done() const override { return one->done(); }
    void wait(std::optional<double> limit) override { one->wait(limit); }
    std::shared_ptr<communication> owner;
    std::shared_ptr<call> one;
  };

  std::shared_ptr<channel> channel_;
  std::shared_ptr<communication_thread> thread_;
  std::shared_ptr<call> farewell_;  ///< made before memory may be short
  communication_thread::ticket farewell_ticket_, close_ticket_;
  index_t calls_ = 0;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace sinter::detail
