// sinter/parallel/copy_worker.hpp: the one thread per device on which copies to it run beside the program.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "sinter/core/beside.hpp"
#include "sinter/core/device.hpp"
#include "sinter/core/fork.hpp"

namespace sinter::detail {

/// Runs jobs one after the other on a thread of its own. Who waits for a job that has not begun runs it, so all jobs
/// end also where there is no thread: where the system grants none, at the end of the program, and in a forked child.
/// A job that was posted runs without memory of the worker's: its place in the list moves along.
class copy_worker {
  struct work {
    enum class step { waits, runs, done };
    std::function<void()> run;
    step at = step::waits;
    std::exception_ptr failure;
  };

 public:
  using job = std::shared_ptr<work>;

  copy_worker() = default;
  copy_worker(const copy_worker&) = delete;
  copy_worker& operator=(const copy_worker&) = delete;
  ~copy_worker() { close(); }

  /// Starts f() beside the program. It must own what it uses.
  template <class F>
  job post(F f) {
    auto one = std::make_shared<work>();
    one->run = std::move(f);
    std::list<job> place{one};
    const std::lock_guard lock(mutex_);
    queue_.splice(queue_.end(), place);
    if (!thread_.joinable() && !closed_) start();
    changed_.notify_all();
    return one;
  }

  /// Returns when the job is done. Errors: what it threw.
  void wait(const job& one) {
    std::unique_lock lock(mutex_);
    if (one->at == work::step::waits) run(std::find(queue_.begin(), queue_.end(), one), lock);
    changed_.wait(lock, [&] { return one->at == work::step::done; });
    if (one->failure) std::rethrow_exception(one->failure);
  }

  /// Ends the thread; jobs that have not begun are run by those who wait for them.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  /// For fork_watch. A job that was running in the parent runs again in the child, from its beginning.
  void at_fork(fork_step step) {
    if (step == fork_step::before) return mutex_.lock();
    if (step == fork_step::in_child) {
      forget_thread(thread_);
      ::new (static_cast<void*>(&changed_)) std::condition_variable;
      for (const job& lost : running_) lost->at = work::step::waits;
      queue_.splice(queue_.begin(), running_);
    }
    mutex_.unlock();
  }

 private:
  void start() {
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
  }
  void serve() noexcept {
    const copying_beside beside;
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closed_ || !queue_.empty(); });
      if (closed_) return;
      run(queue_.begin(), lock);
    }
  }
  /// Runs a job of the queue.
  void run(std::list<job>::iterator place, std::unique_lock<std::mutex>& lock) noexcept {
    const job one = *place;
    running_.splice(running_.end(), queue_, place);
    one->at = work::step::runs;
    lock.unlock();
    std::exception_ptr failure;
    try {
      one->run();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    one->failure = failure;
    one->run = nullptr;
    one->at = work::step::done;
    running_.erase(place);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<job> queue_;
  std::list<job> running_;  ///< on the thread, and on those that wait
  bool closed_ = false;
  std::thread thread_;
  fork_watch watch_{*this};
};

/// The worker of D. Never destroyed, as pools of threads are not; its thread ends with the program.
template <device D>
copy_worker& copy_worker_of() {
  static constinit std::atomic<copy_worker*> worker{nullptr};
  return make_once(worker, [] {
    auto one = std::make_unique<copy_worker>();
    std::atexit([] {
      if (copy_worker* const used = worker.load(std::memory_order_acquire)) used->close();
    });
    return one.release();
  });
}

}  // namespace sinter::detail
