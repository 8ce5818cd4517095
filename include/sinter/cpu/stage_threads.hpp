// sinter/cpu/stage_threads.hpp: threads of stages that wait for one another, each alive from its first use on.
#pragma once

#include <condition_variable>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "sinter/core/fork.hpp"
#include "sinter/cpu/detail/float_control.hpp"
#include "sinter/cpu/detail/thread_topology.hpp"

namespace sinter::cpu_impl {

/// One thread for each stage. They start with the first run and compute in the floating-point environment of its
/// caller. A copy has threads of its own, and so has a forked child.
class stage_threads {
 public:
  /// `nodes`: the NUMA node of each stage's thread, -1 for any.
  explicit stage_threads(std::vector<int> nodes);
  stage_threads(const stage_threads& other);
  stage_threads& operator=(const stage_threads&) { return *this; }
  ~stage_threads();

  /// Calls f(stage) for every stage at the same time, each on its thread, and returns true when all have ended. f must
  /// not throw. Where the system grants too few threads it calls nothing and returns false.
  template <class F>
  bool run(const F& f) {
    return run([](const void* context, int stage) { (*static_cast<const F*>(context))(stage); }, &f);
  }

  /// For fork_watch. A run of the parent has no end in the child.
  void at_fork(sinter::detail::fork_step step);

 private:
  bool run(void (*call)(const void*, int), const void* context);

  bool start();

  void serve(std::size_t stage, std::uint64_t seen);

  std::vector<int> nodes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  void (*call_)(const void*, int) = nullptr;  ///< null: no run goes on
  const void* context_ = nullptr;
  std::uint64_t float_control_ = 0;
  std::size_t left_ = 0;
  std::uint64_t round_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
  sinter::detail::fork_watch watch_{*this};
};

#if SINTER_DEFINES

SINTER_SHARED stage_threads::stage_threads(std::vector<int> nodes) : nodes_(std::move(nodes)) {}
SINTER_SHARED stage_threads::stage_threads(const stage_threads& other) : stage_threads(other.nodes_) {}
SINTER_SHARED stage_threads::~stage_threads() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  for (std::thread& t : threads_) t.join();
}

SINTER_SHARED bool stage_threads::run(void (*call)(const void*, int), const void* context) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return call_ == nullptr; });  // another thread's run
  if (!start()) return false;
  call_ = call;
  context_ = context;
  float_control_ = detail::float_control();
  left_ = nodes_.size();
  ++round_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return left_ == 0; });
  call_ = nullptr;
  changed_.notify_all();
  return true;
}

SINTER_SHARED void stage_threads::at_fork(sinter::detail::fork_step step) {
  if (step == sinter::detail::fork_step::before) return mutex_.lock();
  if (step == sinter::detail::fork_step::in_child) {
    for (std::thread& lost : threads_) sinter::detail::forget_thread(lost);
    threads_.clear();
    ::new (static_cast<void*>(&changed_)) std::condition_variable;
    call_ = nullptr;
  }
  mutex_.unlock();
}

SINTER_SHARED bool stage_threads::start() {
  try {
    threads_.reserve(nodes_.size());
    while (threads_.size() < nodes_.size())
      threads_.emplace_back([this, stage = threads_.size(), round = round_] { serve(stage, round); });
    return true;
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return false;
}

SINTER_SHARED void stage_threads::serve(std::size_t stage, std::uint64_t seen) {
  if (nodes_[stage] >= 0) sinter::detail::pin_to_node(nodes_[stage]);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stop_ || round_ != seen; });
    if (stop_) return;
    seen = round_;
    const auto call = call_;
    const void* const context = context_;
    const std::uint64_t control = float_control_;
    lock.unlock();
    detail::set_float_control(control);
    call(context, static_cast<int>(stage));
    lock.lock();
    if (--left_ == 0) changed_.notify_all();
  }
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl
