// sinter/cpu/pool.hpp: the worker threads of the host devices; the caller works too, and nested use runs inline.
#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "sinter/core/error.hpp"
#include "sinter/core/types.hpp"
#include "sinter/cpu/detail/pool_topology.hpp"

namespace sinter {
namespace cpu_impl {

/// A fixed team of threads that shares out the tasks of one `run` at a time.
///
/// A run posts a ticket (run number, tasks left) in one atomic word; whoever lowers the count by compare-exchange owns
/// that task, so a worker which wakes late finds a newer number or nothing left, and is never waited for. Workers spin
/// for a moment after a run, then sleep in the kernel. Threads start at the first run that needs them.
class thread_pool {
 public:
  using task_body = void (*)(void* context, index_t task);

  /// `threads` counts the caller. `numa_node >= 0` pins the workers to that node's processors, if the node exists.
  explicit thread_pool(int threads, int numa_node = -1) : target_(checked(threads)), node_(numa_node) {}
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() { stop_workers(); }

  int size() const noexcept { return target_.load(std::memory_order_relaxed); }

  /// Takes effect at once when the pool is idle, otherwise before its next run.
  void resize(int threads) {
    target_.store(checked(threads), std::memory_order_relaxed);
    if (!acquire()) return;
    adapt();
    release();
  }

  /// Calls `body(context, task)` for every task in [0, tasks) in any order and returns when all have ended. All tasks
  /// run even if one throws; the first exception is rethrown here. From inside a task of this pool, or while another
  /// thread holds it, the tasks run one after the other on the calling thread.
  void run(index_t tasks, task_body body, void* context) {
    if (tasks <= 0) return;
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

  /// Calls `f(task)` for every task in [0, tasks); see `run`.
  template <class F>
  void parallel_for(index_t tasks, F&& f) {
    using callable = std::remove_reference_t<F>;
    run(
        tasks, [](void* context, index_t task) { (*static_cast<callable*>(context))(task); },
        const_cast<void*>(static_cast<const void*>(std::addressof(f))));
  }

  /// Ends the workers for good unless a run is going on; later runs are inline. Called at program exit.
  void close() noexcept {
    target_.store(1, std::memory_order_relaxed);
    if (!acquire()) return;
    stop_workers();
    release();
  }

 private:
  static constexpr std::uint64_t count_bits = 32, count_mask = (std::uint64_t{1} << count_bits) - 1;
  static constexpr index_t max_batch = index_t{1} << 31;

  static int checked(int threads) {
    if (threads < 1 || threads > detail::most_threads)
      sinter::detail::refuse<value_error>({"sinter: a thread pool has 1 to ", detail::most_threads, " threads, got ", threads,
                                           "; the calling thread counts as one"});
    return threads;
  }

  bool acquire() noexcept {
    return !busy_.load(std::memory_order_relaxed) && !busy_.exchange(true, std::memory_order_acquire);
  }
  void release() noexcept { busy_.store(false, std::memory_order_release); }

  static void run_inline(index_t tasks, task_body body, void* context) {
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

  void run_batch(index_t tasks, task_body body, void* context) {
    body_.store(body, std::memory_order_relaxed);
    context_.store(context, std::memory_order_relaxed);
    tasks_.store(tasks, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    const std::uint64_t number = (ticket_.load(std::memory_order_relaxed) >> count_bits) + 1;
    ticket_.store(number << count_bits | static_cast<std::uint64_t>(tasks), std::memory_order_release);
    wake(tasks - 1);
    work();
    detail::backoff wait;
    while (done_.load(std::memory_order_acquire) != tasks)
      if (!wait.spin()) done_waiting(tasks);
  }

  // A store to the epoch before the load of the sleepers, against the reverse order in `worker`: sequentially
  // consistent, so that either the sleeper sees the new epoch or the caller sees the sleeper.
  void wake(index_t useful) noexcept {
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    const int sleeping = sleepers_.load(std::memory_order_seq_cst);
    if (sleeping == 0) return;
    if (useful >= sleeping) return epoch_.notify_all();
    for (index_t i = 0; i < useful; ++i) epoch_.notify_one();
  }

  void done_waiting(index_t tasks) noexcept {
    caller_sleeps_.store(1, std::memory_order_seq_cst);
    if (done_.load(std::memory_order_seq_cst) != tasks) caller_sleeps_.wait(1, std::memory_order_seq_cst);
    caller_sleeps_.store(0, std::memory_order_relaxed);
  }

  // A successful exchange proves that its run is still going on, hence that body, context and count, which were read
  // before it, belong to that run: the caller overwrites them only after all tasks of the run are counted as done.
  void work() noexcept {
    index_t finished = 0;
    std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
    while ((ticket & count_mask) != 0) {
      const task_body body = body_.load(std::memory_order_relaxed);
      void* const context = context_.load(std::memory_order_relaxed);
      const index_t tasks = tasks_.load(std::memory_order_relaxed);
      const index_t base = base_.load(std::memory_order_relaxed);
      if (!ticket_.compare_exchange_weak(ticket, ticket - 1, std::memory_order_acq_rel, std::memory_order_acquire))
        continue;
      try {
        body(context, base + tasks - static_cast<index_t>(ticket & count_mask));
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

  void worker() noexcept {
    if (node_ >= 0) detail::pin_to_node(node_);
    int seen = epoch_.load(std::memory_order_seq_cst);
    while (true) {
      work();
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

  void adapt() {
    const std::size_t wanted = static_cast<std::size_t>(size()) - 1;
    if (workers_.size() > wanted) stop_workers();
    try {
      while (workers_.size() < wanted) workers_.emplace_back([this] { worker(); });
    } catch (const std::system_error&) {
      // The system grants no more threads: go on with those there are.
      target_.store(static_cast<int>(workers_.size()) + 1, std::memory_order_relaxed);
    }
  }

  void stop_workers() noexcept {
    if (workers_.empty()) return;
    stop_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    epoch_.notify_all();
    for (std::thread& thread : workers_) thread.join();
    workers_.clear();
    stop_.store(false, std::memory_order_relaxed);
  }

  alignas(64) std::atomic<std::uint64_t> ticket_{0};
  std::atomic<task_body> body_{nullptr};
  std::atomic<void*> context_{nullptr};
  std::atomic<index_t> tasks_{0}, base_{0};
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
  std::vector<std::thread> workers_;
};

// The pools of the devices are never destroyed, so that code which runs after the static destructors may still use
// them; a static beside each ends its workers at exit.
struct pool_closer {
  thread_pool* pool;
  ~pool_closer() { pool->close(); }
};

/// The pool of device `cpu`: SINTER_NUM_THREADS threads if that is set, else one per usable processor. Throws
/// `value_error` where it is set to no number of threads.
inline thread_pool& host_pool() {
  static thread_pool* const pool = new thread_pool(detail::default_threads(-1));
  static const pool_closer closer{pool};
  return *pool;
}

/// The pool of device `numa<node>`, pinned to the processors of that node where the machine has it.
inline thread_pool& numa_pool(int node) {
  struct entry {
    int node;
    entry* next;
    thread_pool pool;
  };
  struct registry {
    std::atomic<entry*> head{nullptr};
    std::mutex growing;
    entry* find(int node) const {
      entry* e = head.load(std::memory_order_acquire);
      while (e != nullptr && e->node != node) e = e->next;
      return e;
    }
  };
  struct registry_closer {
    registry* all;
    ~registry_closer() {
      for (entry* e = all->head.load(std::memory_order_acquire); e != nullptr; e = e->next) e->pool.close();
    }
  };
  static registry* const all = new registry;
  static const registry_closer closer{all};
  if (entry* known = all->find(node)) return known->pool;
  const std::lock_guard<std::mutex> lock(all->growing);
  if (entry* known = all->find(node)) return known->pool;
  entry* const added =
      new entry{node, all->head.load(std::memory_order_relaxed), thread_pool(detail::default_threads(node), node)};
  all->head.store(added, std::memory_order_release);
  return added->pool;
}

}  // namespace cpu_impl

/// Sets how many threads device `cpu` computes with, the caller included. Results do not depend on it.
/// Throws `value_error` for less than 1 and more than 4096.
inline void set_num_threads(int threads) { cpu_impl::host_pool().resize(threads); }

/// How many threads device `cpu` computes with.
inline int num_threads() { return cpu_impl::host_pool().size(); }

}  // namespace sinter
