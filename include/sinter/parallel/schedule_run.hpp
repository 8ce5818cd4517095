// sinter/parallel/schedule_run.hpp: runs a schedule: a thread for each stage, bounded queues between neighbours, times.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <vector>

#include "sinter/core/undo.hpp"
#include "sinter/cpu/stage_threads.hpp"
#include "sinter/parallel/schedule.hpp"

namespace sinter::detail {

/// What a stage does. All calls of a run come from one thread, in the order of the schedule; any may throw.
class stage_work {
 public:
  virtual ~stage_work() = default;
  /// Waits for what the neighbour sent.
  virtual void take(nn::stage_action) = 0;
  virtual void compute(nn::stage_action) = 0;
  /// Sends the result to the neighbour behind. Must not wait.
  virtual void send(nn::stage_action) = 0;
};

/// For tests: where it is not null, called with the stage and 2 k before, and 2 k + 1 behind, the work of the stage's
/// action number k. It may sleep or throw.
inline std::atomic<void (*)(int stage, int point)>& stage_hook() {
  static constinit std::atomic<void (*)(int, int)> hook{nullptr};
  return hook;
}

/// Seconds from the start of a run.
struct action_times {
  double arrived = 0;  ///< the microbatch is in the queue, and the queue behind has room
  double begin = 0;    ///< it is on the device
  double end = 0;
};

/// One run of a schedule.
class schedule_run {
 public:
  /// `stages`: as many as the schedule has.
  schedule_run(const nn::schedule& plan, std::vector<stage_work*> stages)
      : plan_(plan), stages_(std::move(stages)), changes_(stages_.size()) {
    for (auto& queues : arrived_) queues.resize(stages_.size());
    for (int i = 0; i < plan.stages(); ++i) times.emplace_back(plan.of(i).size());
  }

  /// Returns when all stages have ended: with all their work done, or after the first error, which `failure` then
  /// holds, with buffers and generators as before.
  void run(cpu_impl::stage_threads& threads) {
    start_ = std::chrono::steady_clock::now();
    if (!threads.run([this](int stage) { run_stage(stage); })) return run_serially();
    undo_scope::settle(changes_, failure != nullptr);
  }
  /// The same on the caller's thread, where the system grants no others.
  void run_serially() {
    std::vector<std::size_t> at(stages_.size(), 0);
    {
      undo_scope own(false);
      for (const int stage : plan_.serial_order()) act(stage, at[static_cast<std::size_t>(stage)]++);
      changes_.front().add(own.take());
    }
    undo_scope::settle(changes_, failure != nullptr);
  }

  std::exception_ptr failure;  ///< null: none
  int failed_stage = 0;
  nn::stage_action failed_action{};
  std::vector<std::vector<action_times>> times;  ///< for each stage, as its list

 private:
  void run_stage(int stage) {
    undo_scope own(false);
    for (std::size_t k = 0; k < plan_.of(stage).size(); ++k)
      if (!act(stage, k)) break;
    changes_[static_cast<std::size_t>(stage)].add(own.take());
  }

  /// Runs action number k of a stage; false where one has failed.
  bool act(int stage, std::size_t k) {
    const nn::stage_action a = plan_.of(stage)[k];
    stage_work& work = *stages_[static_cast<std::size_t>(stage)];
    action_times& t = times[static_cast<std::size_t>(stage)][k];
    try {
      disturb(stage, 2 * static_cast<int>(k));
      if (!enter(stage, a)) return false;
      t.arrived = now();
      work.take(a);
      t.begin = now();
      work.compute(a);
      t.end = now();
      disturb(stage, 2 * static_cast<int>(k) + 1);
      work.send(a);
      leave(stage, a);
      return true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure) {
        failure = std::current_exception();
        failed_stage = stage;
        failed_action = a;
      }
      changed_.notify_all();
      return false;
    }
  }

  static void disturb(int stage, int point) {
    if (const auto hook = stage_hook().load(std::memory_order_relaxed)) hook(stage, point);
  }
  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

  using queue = std::deque<index_t>;
  /// Into a stage, from before it or from behind it.
  queue* queue_into(int stage, nn::direction way) {
    if (stage < 0 || stage >= plan_.stages()) return nullptr;
    return &arrived_[static_cast<std::size_t>(way)][static_cast<std::size_t>(stage)];
  }
  static int step(nn::direction way) { return way == nn::direction::forward ? 1 : -1; }

  /// Waits until the microbatch is there and its result has room, and takes it; false where a stage has failed.
  bool enter(int stage, nn::stage_action a) {
    const bool from_outside = queue_into(stage - step(a.way), a.way) == nullptr;
    queue* const from = from_outside ? nullptr : queue_into(stage, a.way);
    const queue* const to = queue_into(stage + step(a.way), a.way);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return failure || ((from == nullptr || !from->empty()) &&
                         (to == nullptr || static_cast<index_t>(to->size()) < nn::schedule::queue_places));
    });
    if (failure) return false;
    if (from != nullptr) {
      from->pop_front();
      changed_.notify_all();
    }
    return true;
  }
  void leave(int stage, nn::stage_action a) {
    queue* const to = queue_into(stage + step(a.way), a.way);
    if (to == nullptr) return;
    const std::lock_guard lock(mutex_);
    to->push_back(a.microbatch);
    changed_.notify_all();
  }

  const nn::schedule& plan_;
  std::vector<stage_work*> stages_;
  std::vector<change_list> changes_;  ///< of each stage
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<queue> arrived_[2];
};

}  // namespace sinter::detail
