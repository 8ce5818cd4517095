// sinter/data/sampler.hpp: which samples of an epoch each of several ranks works on.
#pragma once

#include <concepts>
#include <cstdint>

#include "sinter/core/error.hpp"
#include "sinter/core/types.hpp"

namespace sinter {

// Names in messages.
template <class C>
struct sampler_is_made_of_a_communicator_and_not_implicitly_from;
struct write_distributed_sampler_of_it;

namespace detail {

/// A communicator, or what tells the same.
template <class C>
concept has_rank_and_size = requires(const C& c) {
  { c.rank() } -> std::convertible_to<index_t>;
  { c.size() } -> std::convertible_to<index_t>;
};

}  // namespace detail

struct distributed_sampler_options {
  bool pad = true;         ///< repeat samples so that every rank has equally many; false for evaluation
  bool drop_last = false;  ///< leave out samples instead, so that every rank has equally many; then `pad` does nothing
};

/// The share of one rank in the order of an epoch: samples rank, rank + size, rank + 2 size, ... of it, as
/// torch.utils.data.DistributedSampler. All ranks must have the same dataset, seed, batch size and options. With b
/// samples a batch, step k of all ranks together is order[k b size : (k + 1) b size], whatever size is at constant
/// b size. Of N samples each rank gets
///
///     {}                  ceil(N / size): what lacks is repeated from the beginning of the order
///     {.drop_last = true} floor(N / size): the last N mod size samples of the order are left out
///     {.pad = false}      floor(N / size), and the first N mod size ranks one more: each sample once
///
/// The last needs a loop that bears ranks with fewer batches than others. Made of rank and size, or of a communicator
/// or whatever else has rank() and size(). Errors: value_error for a size below 1 and for a rank outside the size.
///
///     data_loader loader(train, {.batch_size = 64, .shuffle = true, .sampler = distributed_sampler(rank, size)});
class distributed_sampler {
 public:
  using options_type = distributed_sampler_options;

  /// Of the only rank, which gets all samples.
  distributed_sampler() = default;
  distributed_sampler(index_t rank, index_t size, const options_type& options = {})
      : rank_(rank), size_(size), options_(options) {
    if (size < 1) detail::refuse<value_error>({"distributed_sampler: there must be at least 1 rank, not ", size});
    if (rank < 0 || rank >= size)
      detail::refuse<value_error>(
          {"distributed_sampler: there is no rank ", rank, " among ", size, "; they are numbered from 0"});
  }
  // Two constructors, as clang 19 cannot choose between a default argument and the pack of the deleted one.
  template <detail::has_rank_and_size Communicator>
  explicit distributed_sampler(const Communicator& world) : distributed_sampler(world, options_type()) {}
  template <detail::has_rank_and_size Communicator>
  distributed_sampler(const Communicator& world, const options_type& options)
      : distributed_sampler(index_t{world.rank()}, index_t{world.size()}, options) {}
  template <class C, class... More, class Problem = sampler_is_made_of_a_communicator_and_not_implicitly_from<C>,
            class Fix = write_distributed_sampler_of_it>
    requires(sizeof...(More) == 0 && requires(const C& c) { c.rank(), c.size(); })
  distributed_sampler(const C&, More&&...) = delete;

  index_t rank() const { return rank_; }
  index_t size() const { return size_; }
  const options_type& options() const { return options_; }

  /// How many samples this rank gets of n.
  index_t count(index_t n) const {
    const index_t each = n / size_, left = n % size_;
    if (options_.drop_last) return each;
    return each + (options_.pad ? left != 0 : rank_ < left);
  }

 private:
  index_t rank_ = 0, size_ = 1;
  options_type options_;
};

namespace detail {

/// The samples of one rank among those of an epoch of `samples` from number `first` on.
class epoch_share {
 public:
  epoch_share(const distributed_sampler& sampler, index_t first, index_t samples)
      : sampler_(sampler), first_(first), samples_(samples) {}

  index_t count() const { return sampler_.count(samples_ - first_); }
  /// The largest count() of all ranks.
  index_t most() const { return distributed_sampler(0, sampler_.size(), sampler_.options()).count(samples_ - first_); }
  /// Where sample number i of the share stands in the order of the epoch.
  index_t place(index_t i) const {
    const auto number = static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(sampler_.size()) +
                        static_cast<std::uint64_t>(sampler_.rank()) + static_cast<std::uint64_t>(first_);
    const auto all = static_cast<std::uint64_t>(samples_);
    return static_cast<index_t>(number < all ? number : (number - all) % all);
  }
  /// True where place(i + 1) is place(i) + 1 for all i.
  bool is_dense() const { return sampler_.size() == 1; }
  /// How many samples of the epoch are behind when each rank has had i of this pass, or all that it gets.
  index_t reached(index_t i) const {
    const auto had = static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(sampler_.size());
    return i >= most() || had >= static_cast<std::uint64_t>(samples_ - first_) ? samples_
                                                                               : first_ + static_cast<index_t>(had);
  }

 private:
  distributed_sampler sampler_;
  index_t first_, samples_;
};

}  // namespace detail
}  // namespace sinter
