// sinter/optim/rate.hpp: the learning rates of an optimizer, one for each group of its parameters.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "sinter/core/error.hpp"

namespace sinter::optim {

namespace detail {

SINTER_SHARED_COLD void check_setting(const char* optimizer, const char* name, double value, double below = INFINITY);
/// The place of a group behind the first. Errors: index_error.
SINTER_SHARED_COLD std::size_t checked_group(std::size_t group, std::size_t groups);
#if SINTER_DEFINES
SINTER_SHARED_COLD std::size_t checked_group(std::size_t group, std::size_t groups) {
  if (group >= groups)
    sinter::detail::refuse<index_error>(
        {"optimizer: group ", group, " of ", groups, (groups == 1 ? " group" : " groups")});
  return group - 1;
}
SINTER_SHARED_COLD void check_setting(const char* optimizer, const char* name, double value, double below) {
  if (!std::isfinite(value) || value < 0 || value >= below)
    sinter::detail::refuse<value_error>(
        {optimizer, ": ", name, " must be ",
         std::isfinite(below) ? sinter::detail::joined({"in [0, ", below, ")"}) : "finite and not negative",
         ", but is ", value});
}
#endif  // SINTER_DEFINES

}  // namespace detail

/// The learning rates, which schedules change: one for each group of parameters. There is one group unless more are
/// added.
class optimizer {
 public:
  /// That of the first group.
  double lr() const noexcept { return lr_; }
  /// Errors: index_error.
  double lr(std::size_t group) const { return group == 0 ? lr_ : more_[detail::checked_group(group, groups())]; }
  /// Sets the rate of all groups. Errors: value_error unless lr is finite and not negative.
  void set_lr(double lr) {
    detail::check_setting("optimizer", "the learning rate", lr);
    lr_ = lr;
    for (double& one : more_) one = lr;
  }
  /// Sets that of one group. Errors: value_error likewise; index_error.
  void set_lr(double lr, std::size_t group) {
    detail::check_setting("optimizer", "the learning rate", lr);
    (group == 0 ? lr_ : more_[detail::checked_group(group, groups())]) = lr;
  }
  /// Number of groups.
  std::size_t groups() const noexcept { return 1 + more_.size(); }

 protected:
  explicit optimizer(double lr) { set_lr(lr); }
  void add_group(double lr) { more_.push_back(lr); }
  void drop_group() { more_.pop_back(); }

 private:
  double lr_ = 0;
  std::vector<double> more_;  ///< of the groups from the second on
};

}  // namespace sinter::optim
