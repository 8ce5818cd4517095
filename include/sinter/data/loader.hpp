// sinter/data/loader.hpp: batches of a dataset, shuffled anew each epoch and prepared by a thread ahead of their use.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "sinter/core/fork.hpp"
#include "sinter/core/owned_ptr.hpp"
#include "sinter/core/platform.hpp"
#include "sinter/data/dataset.hpp"
#include "sinter/data/sampler.hpp"
#include "sinter/random/create.hpp"

namespace sinter {

struct loader_options {
  index_t batch_size = 32;
  bool shuffle = false;
  bool drop_last = false;            ///< leave out a last batch that is not full
  std::uint64_t seed = 0;            ///< of the shuffling; epoch e has the same order in every run
  int prefetch = 2;                  ///< batches made ahead by a thread; 0: made when asked for, without a thread
  distributed_sampler sampler = {};  ///< the share of one of several ranks, of which each has batches of batch_size
};

/// How far training has come: `samples` of the order of an epoch are behind, those of all ranks.
struct loader_position {
  index_t epoch = 0, samples = 0;
  bool operator==(const loader_position&) const = default;
};

namespace detail {

/// Lets one thread at a time call a dataset, for all loops over one loader. A forked child waits for no lock of its
/// parent: the thread that held it is not there.
class dataset_turns {
 public:
  bool of_this_process() const { return process_ == process_number(); }
  std::unique_lock<std::mutex> take() {
    return of_this_process() ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }

 private:
  std::mutex mutex_;
  int process_ = process_number();
};

/// Where the next loop begins, and how far the loop has come that began last. Several threads may have loops; copies go
/// on from it.
class loader_progress {
 public:
  struct loop {
    loader_position start;
    std::uint64_t number;
  };

  loader_progress() = default;
  loader_progress(const loader_progress& other) : loader_progress(other.copy()) {}
  loader_progress& operator=(const loader_progress& other);

  loader_position next() const { return copy().next; }
  loader_position reached() const { return copy().reached; }
  void set(loader_position position);
  /// Counts an epoch.
  loop begin();
  /// The loop made no batch: the next one begins where it would have, unless another began meanwhile.
  void take_back(const loop& l, loader_position reached);
  void reach(const loop& l, loader_position position);

 private:
  struct state {
    loader_position next{}, reached{};
    std::uint64_t loops = 0;  ///< the number of the loop that began last
  };
  explicit loader_progress(const state& s) : state_(s) {}
  state copy() const;

  state state_;
  mutable fork_safe_mutex mutex_;
};

SINTER_SHARED void check_position(const loader_position& at, index_t samples);

#if SINTER_DEFINES

SINTER_SHARED loader_progress& loader_progress::operator=(const loader_progress& other) {
  const state there = other.copy();
  const std::lock_guard lock(mutex_);
  state_ = {there.next, there.reached, state_.loops + 1};
  return *this;
}
SINTER_SHARED void loader_progress::set(loader_position position) {
  const std::lock_guard lock(mutex_);
  state_ = {position, position, state_.loops + 1};
}
SINTER_SHARED loader_progress::loop loader_progress::begin() {
  const std::lock_guard lock(mutex_);
  const loader_position start = state_.next;
  state_ = {{start.epoch + 1, 0}, start, state_.loops + 1};
  return {start, state_.loops};
}
SINTER_SHARED void loader_progress::take_back(const loop& l, loader_position reached) {
  const std::lock_guard lock(mutex_);
  if (l.number == state_.loops) state_ = {l.start, reached, state_.loops + 1};
}
SINTER_SHARED void loader_progress::reach(const loop& l, loader_position position) {
  const std::lock_guard lock(mutex_);
  if (l.number == state_.loops) state_.reached = position;
}
SINTER_SHARED loader_progress::state loader_progress::copy() const {
  const std::lock_guard lock(mutex_);
  return state_;
}
SINTER_SHARED void check_position(const loader_position& at, index_t samples) {
  if (at.samples < 0 || at.samples > samples)
    refuse<value_error>({"data_loader: cannot begin behind ", at.samples, " samples of epoch ", at.epoch,
                         ": the dataset has ", samples});
}

#endif  // SINTER_DEFINES

/// One pass over a share of a dataset, in the given order or, if that is undefined, in its own. The thread makes
/// batches until `prefetch` of them wait. A forked child has no such thread: it hands out those that waited, and makes
/// the others when asked for.
template <class Set>
class loader_pass {
 public:
  using batch_type = decltype(gather(std::declval<const Set&>(), std::declval<std::span<const index_t>>()));

  loader_pass(const Set& set, std::shared_ptr<dataset_turns> turns, tensor<index_t, 1> order, const epoch_share& share,
              index_t batches, const loader_options& options);
  loader_pass(const loader_pass&) = delete;
  loader_pass& operator=(const loader_pass&) = delete;
  ~loader_pass();

  /// The next batch, or nothing after the last; rethrows what went wrong in making it.
  std::optional<batch_type> next();

  /// Batches that next() has given.
  index_t taken() const { return taken_; }

  /// For fork_watch.
  void at_fork(fork_step step) noexcept;

 private:
  batch_type make(index_t number) const;
  std::optional<batch_type>& place(index_t number) { return ready_[static_cast<std::size_t>(number) % ready_.size()]; }

  void work() noexcept;

  const Set& set_;
  std::shared_ptr<dataset_turns> turns_;
  tensor<index_t, 1> order_;
  epoch_share share_;
  index_t batches_, taken_ = 0, made_ = 0;  ///< made by the thread
  loader_options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<batch_type>> ready_;  ///< those from taken_ to made_, each in the place of its number
  std::exception_ptr failure_;
  bool stop_ = false;
  std::thread worker_;
  fork_watch watch_{*this};
};

// Not inside the class: g++ compiles what is there in every file, also where sinter::compiled holds it.

template <class Set>
loader_pass<Set>::loader_pass(const Set& set, std::shared_ptr<dataset_turns> turns, tensor<index_t, 1> order,
                              const epoch_share& share, index_t batches, const loader_options& options)
    : set_(set),
      turns_(std::move(turns)),
      order_(std::move(order)),
      share_(share),
      batches_(batches),
      options_(options) {
  if (options.prefetch == 0 || batches < 2) return;
  ready_.resize(static_cast<std::size_t>(std::min<index_t>(options.prefetch, batches)));
  try {
    worker_ = std::thread([this] { work(); });
  } catch (const std::exception&) {  // no thread to be had: batches are made when asked for
  }
}
template <class Set>
loader_pass<Set>::~loader_pass() {
  if (!worker_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  worker_.join();
}
template <class Set>
auto loader_pass<Set>::next() -> std::optional<batch_type> {
  if (taken_ == batches_) return std::nullopt;
  std::unique_lock lock(mutex_);
  if (worker_.joinable()) changed_.wait(lock, [this] { return taken_ < made_ || failure_; });
  if (taken_ >= made_) {
    lock.unlock();
    if (!failure_) return make(taken_++);
    taken_ = batches_;
    std::rethrow_exception(failure_);
  }
  std::optional<batch_type> b(std::move(place(taken_)));
  place(taken_++).reset();
  lock.unlock();
  changed_.notify_all();
  return b;
}
template <class Set>
void loader_pass<Set>::at_fork(fork_step step) noexcept {
  if (step == fork_step::before) return mutex_.lock();
  if (step == fork_step::in_child && worker_.joinable()) {
    forget_thread(worker_);
    // The old one is not destroyed: that would wait for its waiters.
    ::new (static_cast<void*>(&changed_)) std::condition_variable;
  }
  mutex_.unlock();
}
template <class Set>
auto loader_pass<Set>::make(index_t number) const -> batch_type {
  const index_t first = number * options_.batch_size, left = share_.count() - first;
  const auto n = static_cast<std::size_t>(left < options_.batch_size ? left : options_.batch_size);
  std::vector<index_t> rows;
  if (!order_.defined() || !share_.is_dense()) {
    rows.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      const index_t place = share_.place(first + static_cast<index_t>(i));
      rows[i] = order_.defined() ? order_.data()[place] : place;
    }
  }
  const auto turn = turns_->take();
  return gather(set_, rows.empty() ? std::span<const index_t>(order_.data() + share_.place(first), n)
                                   : std::span<const index_t>(rows));
}
template <class Set>
void loader_pass<Set>::work() noexcept {
  for (index_t number = 0; number < batches_; ++number) {
    try {
      batch_type b = make(number);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || !place(made_); });
      if (stop_) return;
      place(made_).emplace(std::move(b));
      ++made_;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      number = batches_;
    }
    changed_.notify_all();
  }
}

}  // namespace detail

// Names in messages.
struct batch_size_that_is_not_in_braces;
struct write_dot_batch_size_in_braces;

/// A range of batches. Every loop over it is one epoch with an order of its own, fixed by seed and epoch number. The
/// loader must outlive the loop. Several loops may run at once, in several threads too; they take turns at the dataset.
/// With a sampler the batches are those of one of several ranks. Errors: value_error for a batch size below 1 or a
/// dataset of negative size; what the dataset throws reaches the loop. A loop without a first batch is no epoch: the
/// next one has the same order.
///
///     data_loader loader(train, {.batch_size = 64, .shuffle = true});
///     for (auto& [x, y] : loader) step(x, y);
///
/// What is left of an epoch is a loop of its own. It may have another number of ranks and another batch size:
///
///     const loader_position here = loader.position();  // in the loop, after a step
///     again.set_position(here);                        // of another run
///     for (auto& [x, y] : again) step(x, y);           // the batches that follow, then the loop ends
template <dataset Set>
class data_loader {
 public:
  using pass = detail::loader_pass<Set>;
  using batch_type = typename pass::batch_type;

 private:
  using loop = detail::loader_progress::loop;

 public:
  explicit data_loader(Set set, loader_options options = {}) : set_(std::move(set)), options_(options) {
    if (options.batch_size < 1)
      detail::refuse<value_error>({"data_loader: the batch size must be at least 1, not ", options.batch_size});
    if (options.prefetch < 0)
      detail::refuse<value_error>({"data_loader: prefetch must not be negative, but is ", options.prefetch});
  }

  template <std::integral N, class Problem = batch_size_that_is_not_in_braces,
            class Fix = write_dot_batch_size_in_braces>
  data_loader(Set, N) = delete;

  /// Number of batches in an epoch, those of this rank.
  index_t size() const { return batches_of(sampler().count(samples())); }
  const Set& dataset() const { return set_; }
  const loader_options& options() const { return options_; }

  /// The number of the next epoch: 0, 1, ...; set it to go on where an earlier run stopped.
  index_t epoch() const { return progress_.next().epoch; }
  void set_epoch(index_t epoch) { progress_.set({epoch, 0}); }

  /// How far the loop has come that began last: its epoch, and how many samples of it all ranks together have been
  /// given, the current batch included; those made ahead do not count, nor do repeated ones. With the last batch that
  /// is the size of the dataset, whatever was left out. When the loop has ended it is {epoch + 1, 0}; after a `break`
  /// it stays where the loop was left, although the next loop will begin another epoch. All ranks have the same, except
  /// that without padding some end earlier: rank 0 is never among them.
  loader_position position() const { return progress_.reached(); }
  /// The next loop begins there; a loop that is under way no longer counts. {epoch(), 0} is the beginning of the next
  /// epoch. Errors: value_error for a negative number and for more samples than the dataset has.
  void set_position(loader_position position);

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = batch_type;
    using difference_type = std::ptrdiff_t;

    iterator(detail::owned_ptr<pass> p, data_loader& loader, const loop& l, const detail::epoch_share& share);
    iterator(iterator&&) noexcept;
    iterator& operator=(iterator&&) noexcept;
    ~iterator();
    batch_type& operator*() const { return *current_; }
    iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return current_ == nullptr; }

   private:
    loader_position reached() const;

    detail::owned_ptr<pass> pass_;
    detail::owned_ptr<batch_type> current_;
    data_loader* loader_;
    loop loop_;
    detail::epoch_share share_;
  };

  iterator begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  index_t samples() const;
  /// Batches are left out for all ranks alike.
  distributed_sampler sampler() const {
    const distributed_sampler& s = options_.sampler;
    return {s.rank(), s.size(), {s.options().pad, s.options().drop_last || options_.drop_last}};
  }
  index_t batches_of(index_t n) const {
    return options_.drop_last ? n / options_.batch_size : n / options_.batch_size + (n % options_.batch_size != 0);
  }
  /// Undefined without shuffling: an order of a huge dataset would fill the memory.
  tensor<index_t, 1> order_of(index_t epoch, index_t n) const;

  Set set_;
  loader_options options_;
  std::shared_ptr<detail::dataset_turns> turns_ = std::make_shared<detail::dataset_turns>();
  detail::loader_progress progress_;
};

template <dataset Set>
void data_loader<Set>::set_position(loader_position position) {
  if (position.epoch < 0) detail::refuse<value_error>({"data_loader: epoch ", position.epoch, " is negative"});
  detail::check_position(position, samples());
  progress_.set(position);
}
template <dataset Set>
data_loader<Set>::iterator::iterator(detail::owned_ptr<pass> p, data_loader& loader, const loop& l,
                                     const detail::epoch_share& share)
    : pass_(std::move(p)), loader_(&loader), loop_(l), share_(share) {
  ++*this;
}
template <dataset Set>
data_loader<Set>::iterator::iterator(iterator&&) noexcept = default;
template <dataset Set>
auto data_loader<Set>::iterator::operator=(iterator&&) noexcept -> iterator& = default;
template <dataset Set>
data_loader<Set>::iterator::~iterator() = default;
template <dataset Set>
auto data_loader<Set>::iterator::operator++() -> iterator& {
  current_.reset();
  if (auto next = pass_->next()) current_ = detail::make_owned<batch_type>(std::move(*next));
  loader_->progress_.reach(loop_, reached());
  return *this;
}
template <dataset Set>
loader_position data_loader<Set>::iterator::reached() const {
  const index_t epoch = loop_.start.epoch, taken = pass_->taken();
  if (current_ == nullptr) return {epoch + 1, 0};
  const bool last = taken == loader_->batches_of(share_.most());
  return {epoch, share_.reached(last ? share_.most() : taken * loader_->options_.batch_size)};
}
template <dataset Set>
auto data_loader<Set>::begin() -> iterator {
  if (!turns_ || !turns_->of_this_process()) turns_ = std::make_shared<detail::dataset_turns>();
  const index_t n = samples();
  detail::check_position(progress_.next(), n);
  const loader_position before = progress_.reached();
  const loop l = progress_.begin();
  try {
    const detail::epoch_share share(sampler(), l.start.samples, n);
    return iterator(
        detail::make_owned<pass>(set_, turns_, order_of(l.start.epoch, n), share, batches_of(share.count()), options_),
        *this, l, share);
  } catch (...) {
    progress_.take_back(l, before);
    throw;
  }
}
template <dataset Set>
index_t data_loader<Set>::samples() const {
  const index_t n = set_.size();
  if (n < 0) detail::refuse<value_error>({"data_loader: size() of the dataset is ", n, "; it must not be negative"});
  return n;
}
template <dataset Set>
tensor<index_t, 1> data_loader<Set>::order_of(index_t epoch, index_t n) const {
  if (!options_.shuffle) return {};
  generator gen(options_.seed, static_cast<std::uint64_t>(epoch));
  return randperm<index_t>(gen, n);
}

}  // namespace sinter
