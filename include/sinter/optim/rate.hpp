// sinter/optim/rate.hpp: the learning rates of an optimizer, one for each group of its parameters.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "sinter/core/concepts.hpp"
#include "sinter/core/error.hpp"

namespace sinter::optim {

namespace detail {

SINTER_SHARED_COLD void check_setting(const char* optimizer, const char* name, double value, double below = INFINITY);
[[noreturn]] SINTER_SHARED_COLD void refuse_group(std::size_t group, std::size_t groups);
#if SINTER_DEFINES
[[noreturn]] SINTER_SHARED_COLD void refuse_group(std::size_t group, std::size_t groups) {
  sinter::detail::refuse<index_error>(
      {"optimizer: group ", group, " of ", groups, (groups == 1 ? " group" : " groups")});
}
SINTER_SHARED_COLD void check_setting(const char* optimizer, const char* name, double value, double below) {
  if (!std::isfinite(value) || value < 0 || value >= below)
    sinter::detail::refuse<value_error>(
        {optimizer, ": ", name, " must be ",
         std::isfinite(below) ? sinter::detail::joined({"in [0, ", below, ")"}) : "finite and not negative",
         ", but is ", value});
}
#endif  // SINTER_DEFINES

/// A value for each group of parameters. There is one group unless more are added. The first stands by itself, so that
/// it is there in what was moved from, too.
template <class T>
class of_groups {
 public:
  explicit of_groups(T first) : first_(std::move(first)) {}
  std::size_t size() const noexcept { return 1 + more_.size(); }
  const T& first() const noexcept { return first_; }
  /// Errors: index_error.
  const T& operator[](std::size_t group) const {
    if (group >= size()) refuse_group(group, size());
    return group == 0 ? first_ : more_[group - 1];
  }
  void set(std::size_t group, const T& value) {
    if (group >= size()) refuse_group(group, size());
    (group == 0 ? first_ : more_[group - 1]) = value;
  }
  /// So that the next add() does not throw, if copies of T do not.
  void reserve() { more_.reserve(size()); }
  void add(const T& value) { more_.push_back(value); }
  void drop_last() { more_.pop_back(); }

 private:
  T first_;
  std::vector<T> more_;
};

}  // namespace detail

// Names in messages.
struct write_lr_and_set_lr_with_the_number_of_the_group;
struct use_a_run_checkpoint_of_sinter_ranks_hpp;
struct optimizer_in_place_of_a_number;
struct leave_it_out;
struct write_optim_lr_scheduler_of_the_optimizer_and_the_schedule;

/// The learning rates, which schedules change: one for each group of parameters. There is one group unless more are
/// added.
class optimizer {
 public:
  /// That of the first group.
  double lr() const noexcept { return rates_.first(); }
  /// Errors: index_error.
  double lr(std::size_t group) const { return rates_[group]; }
  /// Sets the rate of all groups. Errors: value_error unless lr is finite and not negative.
  void set_lr(double lr) {
    detail::check_setting("optimizer", "the learning rate", lr);
    for (std::size_t group = 0; group < groups(); ++group) rates_.set(group, lr);
  }
  /// Sets that of one group. Errors: value_error likewise; index_error.
  void set_lr(double lr, std::size_t group) {
    detail::check_setting("optimizer", "the learning rate", lr);
    rates_.set(group, lr);
  }
  // PyTorch's names of what goes by another one; and a schedule that is given an optimizer.
  SINTER_MEMBER_NAMED_OTHERWISE(param_groups, write_lr_and_set_lr_with_the_number_of_the_group)
  SINTER_MEMBER_NAMED_OTHERWISE(state_dict, use_a_run_checkpoint_of_sinter_ranks_hpp)
  SINTER_MEMBER_NAMED_OTHERWISE(load_state_dict, use_a_run_checkpoint_of_sinter_ranks_hpp)
  template <class N, class Problem = optimizer_in_place_of_a_number,
            class Fix = write_optim_lr_scheduler_of_the_optimizer_and_the_schedule>
    requires(std::is_arithmetic_v<N>)
  operator N() const = delete;

  /// Number of groups.
  std::size_t groups() const noexcept { return rates_.size(); }

 protected:
  explicit optimizer(double lr) : rates_(lr) { set_lr(lr); }
  void add_group(double lr) { rates_.add(lr); }
  void drop_group() { rates_.drop_last(); }

 private:
  detail::of_groups<double> rates_;
};

}  // namespace sinter::optim
