// sinter/data/loader.hpp: batches of a dataset, shuffled anew each epoch and prepared by a thread ahead of their use.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

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

/// One pass over a dataset. The thread makes batches until `ahead` of them wait.
template <class Set>
class loader_pass {
 public:
  using batch_type = decltype(gather(std::declval<const Set&>(), std::declval<std::span<const index_t>>()));

  loader_pass(const Set& set, std::vector<index_t> order, index_t batches, const loader_options& options)
      : set_(set), order_(std::move(order)), batches_(batches), options_(options) {
    if (options.prefetch == 0 || batches < 2) return;
    try {
      worker_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {  // no thread to be had: batches are made when asked for
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
    if (!worker_.joinable()) return make(taken_++);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || failure_; });
    if (ready_.empty()) {
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

 private:
  batch_type make(index_t number) const {
    const auto size = static_cast<std::size_t>(options_.batch_size);
    const std::size_t first = static_cast<std::size_t>(number) * size;
    const std::size_t n = order_.size() - first < size ? order_.size() - first : size;
    return gather(set_, std::span<const index_t>(order_).subspan(first, n));
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
  std::vector<index_t> order_;
  index_t batches_, taken_ = 0;
  loader_options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<batch_type> ready_;
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread worker_;
};

}  // namespace detail

/// A range of batches. Every loop over it is one epoch with an order of its own, fixed by seed and epoch number. The
/// loader must outlive the loop. Errors: value_error for a batch size below 1; what the dataset throws reaches the
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
  index_t size() const {
    const index_t n = set_.size();
    return options_.drop_last ? n / options_.batch_size : n / options_.batch_size + (n % options_.batch_size != 0);
  }
  const Set& dataset() const { return set_; }
  const loader_options& options() const { return options_; }

  /// The number of the next epoch: 0, 1, ...; set it to go on where an earlier run stopped.
  index_t epoch() const { return epoch_; }
  void set_epoch(index_t epoch) { epoch_ = epoch; }

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

  iterator begin() { return iterator(std::make_unique<pass>(set_, order_of(epoch_++), size(), options_)); }
  std::default_sentinel_t end() const { return {}; }

 private:
  std::vector<index_t> order_of(index_t epoch) const {
    const index_t n = set_.size();
    std::vector<index_t> order(static_cast<std::size_t>(n));
    if (options_.shuffle) {
      generator gen(options_.seed, static_cast<std::uint64_t>(epoch));
      const auto permutation = randperm<std::int64_t>(gen, n);
      for (index_t i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = permutation.data()[i];
    } else {
      for (index_t i = 0; i < n; ++i) order[static_cast<std::size_t>(i)] = i;
    }
    return order;
  }

  Set set_;
  loader_options options_;
  index_t epoch_ = 0;
};

}  // namespace sinter
