// sinter/data/loader.hpp: batches of a dataset, shuffled anew each epoch and prepared by a thread ahead of their use.
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "sinter/core/fork.hpp"
#include "sinter/data/dataset.hpp"
#include "sinter/random/create.hpp"

namespace sinter {

struct loader_options {
  index_t batch_size = 32;
  bool shuffle = false;
  bool drop_last = false;  ///< leave out a last batch that is not full
  std::uint64_t seed = 0;  ///< of the shuffling; epoch e has the same order in every run
  int prefetch = 2;        ///< batches made ahead by a thread; 0: made when asked for, without a thread
};

namespace detail {

/// Lets one thread at a time call a dataset, for all loops over one loader. A forked child waits for no lock of its
/// parent: the thread that held it is not there.
class dataset_turns {
 public:
  bool of_this_process() const { return process_ == ::getpid(); }
  std::unique_lock<std::mutex> take() {
    return of_this_process() ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

 private:
  std::mutex mutex_;
  pid_t process_ = ::getpid();
};

/// The number of the next epoch, which several threads may count; copies go on from it.
struct epoch_counter : std::atomic<index_t> {
  epoch_counter() : std::atomic<index_t>(0) {}
  epoch_counter(const epoch_counter& other) : std::atomic<index_t>(other.load()) {}
  epoch_counter& operator=(const epoch_counter& other) {
    store(other.load());
    return *this;
  }
};

/// One pass over a dataset, in the given order or, if that is undefined, in its own. The thread makes batches until
/// `prefetch` of them wait. A forked child has no such thread: it hands out those that waited, and makes the others
/// when asked for.
template <class Set>
class loader_pass {
 public:
  using batch_type = decltype(gather(std::declval<const Set&>(), std::declval<std::span<const index_t>>()));

  loader_pass(const Set& set, std::shared_ptr<dataset_turns> turns, tensor<index_t, 1> order, index_t samples,
              index_t batches, const loader_options& options)
      : set_(set),
        turns_(std::move(turns)),
        order_(std::move(order)),
        samples_(samples),
        batches_(batches),
        options_(options) {
    if (options.prefetch == 0 || batches < 2) return;
    try {
      worker_ = std::thread([this] { work(); });
    } catch (const std::exception&) {  // no thread to be had: batches are made when asked for
    }
  }
  loader_pass(const loader_pass&) = delete;
  loader_pass& operator=(const loader_pass&) = delete;
  ~loader_pass() {
    if (!worker_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  /// The next batch, or nothing after the last; rethrows what went wrong in making it.
  std::optional<batch_type> next() {
    if (taken_ == batches_) return std::nullopt;
    std::unique_lock lock(mutex_);
    if (worker_.joinable()) changed_.wait(lock, [this] { return !ready_.empty() || failure_; });
    if (ready_.empty()) {
      lock.unlock();
      if (!failure_) return make(taken_++);
      taken_ = batches_;
      std::rethrow_exception(failure_);
    }
    std::optional<batch_type> b(std::move(ready_.front()));
    ready_.pop_front();
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    return b;
  }

  /// For fork_watch.
  void at_fork(fork_step step) noexcept {
    if (step == fork_step::before) return mutex_.lock();
    if (step == fork_step::in_child && worker_.joinable()) {
      forget_thread(worker_);
      // The old one is not destroyed: that would wait for its waiters.
      ::new (static_cast<void*>(&changed_)) std::condition_variable;
    }
    mutex_.unlock();
  }

 private:
  batch_type make(index_t number) const {
    const index_t first = number * options_.batch_size, left = samples_ - first;
    const auto n = static_cast<std::size_t>(left < options_.batch_size ? left : options_.batch_size);
    std::vector<index_t> rows;
    if (!order_.defined()) {
      rows.resize(n);
      std::iota(rows.begin(), rows.end(), first);
    }
    const auto turn = turns_->take();
    return gather(
        set_, order_.defined() ? std::span<const index_t>(order_.data() + first, n) : std::span<const index_t>(rows));
  }

  void work() noexcept {
    for (index_t number = 0; number < batches_; ++number) {
      try {
        batch_type b = make(number);
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || ready_.size() < static_cast<std::size_t>(options_.prefetch); });
        if (stop_) return;
        ready_.push_back(std::move(b));
      } catch (...) {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
        number = batches_;
      }
      changed_.notify_all();
    }
  }

  const Set& set_;
  std::shared_ptr<dataset_turns> turns_;
  tensor<index_t, 1> order_;
  index_t samples_, batches_, taken_ = 0;
  loader_options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<batch_type> ready_;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread worker_;
  fork_watch watch_{*this};
};

}  // namespace detail

/// A range of batches. Every loop over it is one epoch with an order of its own, fixed by seed and epoch number. The
/// loader must outlive the loop. Several loops may run at once, in several threads too; they take turns at the dataset.
/// Errors: value_error for a batch size below 1 or a dataset of negative size; what the dataset throws reaches the
/// loop.
///
///     data_loader loader(train, {.batch_size = 64, .shuffle = true});
///     for (auto& [x, y] : loader) step(x, y);
template <dataset Set>
class data_loader {
 public:
  using pass = detail::loader_pass<Set>;
  using batch_type = typename pass::batch_type;

  explicit data_loader(Set set, loader_options options = {}) : set_(std::move(set)), options_(options) {
    if (options.batch_size < 1)
      detail::refuse<value_error>({"data_loader: the batch size must be at least 1, not ", options.batch_size});
    if (options.prefetch < 0)
      detail::refuse<value_error>({"data_loader: prefetch must not be negative, but is ", options.prefetch});
  }

  /// Number of batches in an epoch.
  index_t size() const { return batches_of(samples()); }
  const Set& dataset() const { return set_; }
  const loader_options& options() const { return options_; }

  /// The number of the next epoch: 0, 1, ...; set it to go on where an earlier run stopped.
  index_t epoch() const { return epoch_; }
  void set_epoch(index_t epoch) { epoch_.store(epoch); }

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = batch_type;
    using difference_type = std::ptrdiff_t;

    explicit iterator(std::unique_ptr<pass> p) : pass_(std::move(p)) { ++*this; }
    batch_type& operator*() const { return *current_; }
    iterator& operator++() {
      current_.reset();
      if (auto next = pass_->next()) current_ = std::make_unique<batch_type>(std::move(*next));
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return current_ == nullptr; }

   private:
    std::unique_ptr<pass> pass_;
    std::unique_ptr<batch_type> current_;
  };

  iterator begin() {
    if (!turns_ || !turns_->of_this_process()) turns_ = std::make_shared<detail::dataset_turns>();
    const index_t n = samples();
    return iterator(std::make_unique<pass>(set_, turns_, order_of(epoch_++, n), n, batches_of(n), options_));
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  index_t samples() const {
    const index_t n = set_.size();
    if (n < 0) detail::refuse<value_error>({"data_loader: size() of the dataset is ", n, "; it must not be negative"});
    return n;
  }
  index_t batches_of(index_t n) const {
    return options_.drop_last ? n / options_.batch_size : n / options_.batch_size + (n % options_.batch_size != 0);
  }
  /// Undefined without shuffling: an order of a huge dataset would fill the memory.
  tensor<index_t, 1> order_of(index_t epoch, index_t n) const {
    if (!options_.shuffle) return {};
    generator gen(options_.seed, static_cast<std::uint64_t>(epoch));
    return randperm<index_t>(gen, n);
  }

  Set set_;
  loader_options options_;
  std::shared_ptr<detail::dataset_turns> turns_ = std::make_shared<detail::dataset_turns>();
  detail::epoch_counter epoch_;
};

}  // namespace sinter
