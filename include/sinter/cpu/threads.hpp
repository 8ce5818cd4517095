// sinter/cpu/threads.hpp: the worker threads of the host devices; the caller works too, and nested use runs inline.
#pragma once

#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "sinter/core/device.hpp"
#include "sinter/core/error.hpp"
#include "sinter/core/fork.hpp"
#include "sinter/core/owned_ptr.hpp"
#include "sinter/core/types.hpp"
#include "sinter/core/usage.hpp"
#include "sinter/cpu/detail/float_control.hpp"
#include "sinter/cpu/detail/thread_topology.hpp"

namespace sinter {
namespace cpu_impl {

/// A fixed team of threads that shares out the tasks of one `run` at a time.
///
/// A run posts a ticket (run number, first task left, end of the tasks left) in one atomic word; whoever moves one of
/// the two by compare-exchange owns that task, so a worker which wakes late finds a newer number or nothing left, and
/// is never waited for. The caller and every other worker take tasks from the front, the others from the back: what a
/// thread has written in one run is likely what it reads in the next, and lies in the cache of its core. Workers spin
/// for a moment after a run, then sleep in the kernel. Threads start at the first run that needs them. They compute in
/// the floating-point environment of the caller. A forked child has none of them, and starts its own.
class thread_pool {
 public:
  using task_body = void (*)(void* context, index_t task);

  /// `threads` counts the caller. `numa_node >= 0` pins the workers to that node's processors, if the node exists.
  explicit thread_pool(int threads, int numa_node = -1);
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool();

  int size() const noexcept { return target_.load(std::memory_order_relaxed); }

  /// Takes effect at once when the pool is idle, otherwise before its next run.
  void resize(int threads);

  /// Calls `body(context, task)` for every task in [0, tasks) in any order and returns when all have ended. All tasks
  /// run even if one throws; the first exception is rethrown here. From inside a task of this pool, or while another
  /// thread holds it, the tasks run one after the other on the calling thread.
  void run(index_t tasks, task_body body, void* context);

  /// Calls `f(task)` for every task in [0, tasks); see `run`.
  template <class F>
  void parallel_for(index_t tasks, F&& f) {
    using callable = std::remove_reference_t<F>;
    run(
        tasks, [](void* context, index_t task) { (*static_cast<callable*>(context))(task); },
        const_cast<void*>(static_cast<const void*>(std::addressof(f))));
  }

  /// Ends the workers for good unless a run is going on; later runs are inline. Called at program exit.
  void close() noexcept;

  /// The time of runs while a usage meter lives. A run inside a task of the same pool counts as part of that task.
  const sinter::detail::usage_counter& usage() const noexcept { return usage_; }

  /// Called by fork_watch. The child has no worker threads: after a fork inside a task it may only exit or call exec.
  void at_fork(sinter::detail::fork_step step) noexcept;

 private:
  static constexpr int first_at = 16, number_at = 32;  ///< bits of a ticket: number, first, end
  static constexpr index_t max_batch = (index_t{1} << first_at) - 1;
  static constexpr index_t end_of(std::uint64_t ticket) { return static_cast<index_t>(ticket) & max_batch; }
  static constexpr index_t first_of(std::uint64_t ticket) { return end_of(ticket >> first_at); }

  /// The pool whose run is measured on this thread.
  static thread_pool*& measured_pool() noexcept {
    static constinit thread_local thread_pool* pool = nullptr;
    return pool;
  }
  /// Adds the time of a run to the usage. A run inside a task of the same pool is part of that time already.
  class busy_time;

  static int checked(int threads);

  bool acquire() noexcept;
  void release() noexcept;

  static void run_inline(index_t tasks, task_body body, void* context);

  void run_batch(index_t tasks, task_body body, void* context);

  // A store to the epoch before the load of the sleepers, against the reverse order in `worker`: sequentially
  // consistent, so that either the sleeper sees the new epoch or the caller sees the sleeper.
  void wake(index_t useful) noexcept;

  void done_waiting(index_t tasks) noexcept;

  // A successful exchange proves that its run is still going on, hence that body, context, base and control, which
  // were read before it, belong to that run: the caller overwrites them only after all tasks of the run are counted as
  // done.
  void work(std::uint64_t own_control, bool from_back) noexcept;

  void worker(bool from_back) noexcept;

  void adapt() noexcept;

  void stop_workers() noexcept;

  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  std::atomic<task_body> body_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<index_t> base_{0};
  std::atomic<std::uint64_t> float_control_{0};
  alignas(64) std::atomic<int> epoch_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  alignas(64) std::atomic<index_t> done_{0};
  std::atomic<int> caller_sleeps_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  alignas(64) std::atomic<bool> busy_{false};
  std::atomic<int> target_;
  int node_;
  sinter::detail::usage_counter usage_;
  std::mutex team_;  ///< held while the list of workers changes
  std::vector<std::thread> workers_;
  sinter::detail::fork_watch watch_{*this};
};

// The pools of the devices are never destroyed, so that code which runs after the static destructors may still use
// them; what is registered beside each ends its workers at exit.

/// The pool of device `cpu`: SINTER_NUM_THREADS threads if that is set, else one per usable processor. Throws
/// `value_error` where it is set to no number of threads.
SINTER_SHARED thread_pool& host_pool();

/// The pool of device `numa<node>`, pinned to the processors of that node where the machine has it.
SINTER_SHARED thread_pool& numa_pool(int node);

/// The pool of a host device.
template <device D>
thread_pool& pool_of() {
  if constexpr (std::is_same_v<D, cpu>) return host_pool();
  else return numa_pool(device_ordinal_v<D>);
}

#if SINTER_DEFINES

namespace detail {

// Variables, not static ones of functions: those of a function that sinter::compiled holds are not shared with code
// that holds a copy of it, as the files of sinter_variants() do.
inline constinit std::atomic<thread_pool*> pool_of_host{nullptr};

struct pool_of_node {
  int node;
  pool_of_node* next;
  thread_pool pool;
};
inline constinit std::atomic<pool_of_node*> first_pool_of_node{nullptr};

}  // namespace detail

class thread_pool::busy_time {
 public:
  explicit busy_time(thread_pool& pool) noexcept
      : pool_(sinter::detail::usage_is_measured() && measured_pool() != &pool ? &pool : nullptr),
        clock_(pool_ != nullptr ? &pool_->usage_ : nullptr) {
    if (pool_ != nullptr) before_ = std::exchange(measured_pool(), pool_);
  }
  busy_time(const busy_time&) = delete;
  busy_time& operator=(const busy_time&) = delete;
  ~busy_time() {
    if (pool_ != nullptr) measured_pool() = before_;
  }

 private:
  thread_pool *pool_, *before_ = nullptr;
  sinter::detail::usage_clock clock_;
};

SINTER_SHARED int thread_pool::checked(int threads) {
  if (threads < 1 || threads > detail::most_threads)
    sinter::detail::refuse<value_error>({"sinter: a thread pool has 1 to ", detail::most_threads, " threads, got ",
                                         threads, "; the calling thread counts as one"});
  return threads;
}

SINTER_SHARED thread_pool::thread_pool(int threads, int numa_node) : target_(checked(threads)), node_(numa_node) {}
SINTER_SHARED thread_pool::~thread_pool() { stop_workers(); }

inline bool thread_pool::acquire() noexcept {
  return !busy_.load(std::memory_order_relaxed) && !busy_.exchange(true, std::memory_order_acquire);
}
inline void thread_pool::release() noexcept { busy_.store(false, std::memory_order_release); }

SINTER_SHARED void thread_pool::resize(int threads) {
  target_.store(checked(threads), std::memory_order_relaxed);
  if (!acquire()) return;
  adapt();
  release();
}

SINTER_SHARED void thread_pool::close() noexcept {
  target_.store(1, std::memory_order_relaxed);
  if (!acquire()) return;
  stop_workers();
  release();
}

SINTER_SHARED void thread_pool::at_fork(sinter::detail::fork_step step) noexcept {
  if (step == sinter::detail::fork_step::before) return team_.lock();
  if (step == sinter::detail::fork_step::in_child) {
    for (std::thread& lost : workers_) sinter::detail::forget_thread(lost);
    workers_.clear();
    ticket_.store(0, std::memory_order_relaxed);
    sleepers_.store(0, std::memory_order_relaxed);
    stop_.store(false, std::memory_order_relaxed);
    caller_sleeps_.store(0, std::memory_order_relaxed);
    failed_.store(false, std::memory_order_relaxed);
    ::new (static_cast<void*>(&error_)) std::exception_ptr;
    release();
  }
  team_.unlock();
}

SINTER_SHARED void thread_pool::done_waiting(index_t tasks) noexcept {
  caller_sleeps_.store(1, std::memory_order_seq_cst);
  if (done_.load(std::memory_order_seq_cst) != tasks) caller_sleeps_.wait(1, std::memory_order_seq_cst);
  caller_sleeps_.store(0, std::memory_order_relaxed);
}

SINTER_SHARED void thread_pool::run(index_t tasks, task_body body, void* context) {
  if (tasks <= 0) return;
  const busy_time measured(*this);
  if (tasks == 1) return body(context, 0);
  if (size() == 1 || !acquire()) return run_inline(tasks, body, context);
  if (workers_.size() + 1 != static_cast<std::size_t>(size())) adapt();
  if (workers_.empty()) {
    release();
    return run_inline(tasks, body, context);
  }
  for (index_t first = 0; first < tasks; first += max_batch) {
    base_.store(first, std::memory_order_relaxed);
    run_batch(tasks - first < max_batch ? tasks - first : max_batch, body, context);
  }
  std::exception_ptr error = std::move(error_);
  error_ = nullptr;
  failed_.store(false, std::memory_order_relaxed);
  release();
  if (error) std::rethrow_exception(error);
}

SINTER_SHARED void thread_pool::run_inline(index_t tasks, task_body body, void* context) {
  std::exception_ptr error;
  for (index_t task = 0; task < tasks; ++task) {
    try {
      body(context, task);
    } catch (...) {
      if (!error) error = std::current_exception();
    }
  }
  if (error) std::rethrow_exception(error);
}

SINTER_SHARED void thread_pool::run_batch(index_t tasks, task_body body, void* context) {
  body_.store(body, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  const std::uint64_t control = detail::float_control();
  float_control_.store(control, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const std::uint64_t number = (ticket_.load(std::memory_order_relaxed) >> number_at) + 1;
  ticket_.store(number << number_at | static_cast<std::uint64_t>(tasks), std::memory_order_release);
  wake(tasks - 1);
  work(control, false);
  detail::backoff wait;
  while (done_.load(std::memory_order_acquire) != tasks)
    if (!wait.spin()) done_waiting(tasks);
}

SINTER_SHARED void thread_pool::wake(index_t useful) noexcept {
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  const int sleeping = sleepers_.load(std::memory_order_seq_cst);
  if (sleeping == 0) return;
  if (useful >= sleeping) return epoch_.notify_all();
  for (index_t i = 0; i < useful; ++i) epoch_.notify_one();
}

SINTER_SHARED void thread_pool::work(std::uint64_t own_control, bool from_back) noexcept {
  index_t finished = 0;
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  while (first_of(ticket) != end_of(ticket)) {
    const task_body body = body_.load(std::memory_order_relaxed);
    void* const context = context_.load(std::memory_order_relaxed);
    const index_t base = base_.load(std::memory_order_relaxed);
    const std::uint64_t control = float_control_.load(std::memory_order_relaxed);
    const std::uint64_t left = from_back ? ticket - 1 : ticket + (std::uint64_t{1} << first_at);
    if (!ticket_.compare_exchange_weak(ticket, left, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
    if (control != own_control) detail::set_float_control(own_control = control);
    try {
      body(context, base + (from_back ? end_of(left) : first_of(ticket)));
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
    }
    ++finished;
    ticket = ticket_.load(std::memory_order_acquire);
  }
  if (finished == 0) return;
  done_.fetch_add(finished, std::memory_order_seq_cst);
  if (caller_sleeps_.load(std::memory_order_seq_cst) != 0) {
    caller_sleeps_.store(0, std::memory_order_seq_cst);
    caller_sleeps_.notify_one();
  }
}

SINTER_SHARED void thread_pool::worker(bool from_back) noexcept {
  measured_pool() = this;
  if (node_ >= 0) sinter::detail::pin_to_node(node_);
  int seen = epoch_.load(std::memory_order_seq_cst);
  while (true) {
    work(detail::float_control(), from_back);
    detail::backoff wait;
    int now = epoch_.load(std::memory_order_seq_cst);
    while (now == seen) {
      if (stop_.load(std::memory_order_relaxed)) return;
      if (!wait.spin()) {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        epoch_.wait(seen, std::memory_order_seq_cst);
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      }
      now = epoch_.load(std::memory_order_seq_cst);
    }
    seen = now;
    if (stop_.load(std::memory_order_relaxed)) return;
  }
}

SINTER_SHARED void thread_pool::adapt() noexcept {
  const std::size_t wanted = static_cast<std::size_t>(size()) - 1;
  if (workers_.size() > wanted) stop_workers();
  const std::lock_guard lock(team_);
  try {
    while (workers_.size() < wanted)
      workers_.emplace_back([this, from_back = workers_.size() % 2 == 0] { worker(from_back); });
  } catch (const std::system_error&) {
    // The system grants no more threads: go on with those there are.
    target_.store(static_cast<int>(workers_.size()) + 1, std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
    // No memory for more just now: the next run tries again.
  }
}

SINTER_SHARED void thread_pool::stop_workers() noexcept {
  const std::lock_guard lock(team_);
  if (workers_.empty()) return;
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_seq_cst);
  epoch_.notify_all();
  for (std::thread& thread : workers_) thread.join();
  workers_.clear();
  stop_.store(false, std::memory_order_relaxed);
}

SINTER_SHARED thread_pool& host_pool() {
  return sinter::detail::make_once(detail::pool_of_host, [] {
    auto one = sinter::detail::make_owned<thread_pool>(detail::default_threads(-1));
    std::atexit([] {
      if (thread_pool* const used = detail::pool_of_host.load(std::memory_order_acquire)) used->close();
    });
    return one.release();
  });
}

SINTER_SHARED thread_pool& numa_pool(int node) {
  using entry = detail::pool_of_node;
  auto& first = detail::first_pool_of_node;
  const auto find = [node](entry* e) {
    while (e != nullptr && e->node != node) e = e->next;
    return e;
  };
  entry* head = first.load(std::memory_order_acquire);
  if (entry* const known = find(head)) return known->pool;
  sinter::detail::owned_ptr<entry> added(new entry{node, head, thread_pool(detail::default_threads(node), node)});
  if (head == nullptr)
    std::atexit([] {
      for (entry* e = detail::first_pool_of_node.load(std::memory_order_acquire); e != nullptr; e = e->next)
        e->pool.close();
    });
  while (!first.compare_exchange_weak(head, added.get(), std::memory_order_acq_rel, std::memory_order_acquire)) {
    if (entry* const known = find(head)) return known->pool;
    added->next = head;
  }
  return added.release()->pool;
}

#endif  // SINTER_DEFINES

}  // namespace cpu_impl

// Names in messages.
template <class>
struct threads_of_a_gpu;
struct set_those_of_cpu_or_numa;

/// Sets how many threads host device D computes with, the caller included. Results do not depend on it.
/// Errors: value_error for less than 1 and more than 4096.
///
///     set_num_threads<numa<0>>(2);
///     set_num_threads(4);  // of device cpu
template <device D = cpu>
  requires is_cpu_v<D>
void set_num_threads(int threads) {
  cpu_impl::pool_of<D>().resize(threads);
}
template <device D, class Problem = threads_of_a_gpu<D>, class Fix = set_those_of_cpu_or_numa>
  requires is_cuda_v<D>
void set_num_threads(int) = delete;

/// How many threads host device D computes with.
template <device D = cpu>
  requires is_cpu_v<D>
int num_threads() {
  return cpu_impl::pool_of<D>().size();
}

}  // namespace sinter
