// sinter/optim/schedule.hpp: learning rates that change from epoch to epoch.
#pragma once

#include <cmath>
#include <utility>
#include <vector>

#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

/// A schedule is a value: the learning rate as a function of the one the optimizer started with and the epoch.
template <class S>
concept schedule = requires(const S& s, double base, index_t epoch) {
  { s(base, epoch) } -> std::convertible_to<double>;
};

/// base gamma^floor(epoch / every).
struct step_lr {
  index_t every;
  double gamma = 0.1;
  double operator()(double base, index_t epoch) const;
};

/// base gamma^(number of milestones reached).
struct multi_step_lr {
  std::vector<index_t> milestones;
  double gamma = 0.1;
  double operator()(double base, index_t epoch) const;
};

/// base gamma^epoch.
struct exponential_lr {
  double gamma;
  double operator()(double base, index_t epoch) const { return base * std::pow(gamma, static_cast<double>(epoch)); }
};

/// From base to `least` in `period` epochs along half a cosine, after them back along the other half, as in PyTorch. I.
/// Loshchilov and F. Hutter, ICLR 2017, without restarts.
struct cosine_lr {
  index_t period;
  double least = 0;
  double operator()(double base, index_t epoch) const;
};

/// From base start to base along a line in `length` epochs, then base.
struct warm_up_lr {
  index_t length;
  double start = 1.0 / 3;
  double operator()(double base, index_t epoch) const {
    if (epoch >= length) return base;
    return base * (start + (1 - start) * static_cast<double>(epoch) / static_cast<double>(length));
  }
};

/// Both at once: the second starts from what the first gives. Factors multiply, as in torch's ChainedLR.
template <schedule A, schedule B>
struct chained_lr {
  A first;
  B second;
  double operator()(double base, index_t epoch) const { return second(first(base, epoch), epoch); }
};
template <class A, class B>
chained_lr(A, B) -> chained_lr<A, B>;

/// The first until `milestone`, then the second, which counts from there, as torch's SequentialLR.
///
///     then_lr{5, warm_up_lr{5}, cosine_lr{45}}
template <schedule A, schedule B>
struct then_lr {
  index_t milestone;
  A first;
  B second;
  double operator()(double base, index_t epoch) const {
    return epoch < milestone ? first(base, epoch) : second(base, epoch - milestone);
  }
};
template <class A, class B>
then_lr(index_t, A, B) -> then_lr<A, B>;

/// Keeps an optimizer's learning rate at a schedule; sets that of epoch 0 at once.
///
///     optim::lr_scheduler scheduler(optimizer, optim::cosine_lr{.period = 20});
///     for (...) { train(); scheduler.step(); }
template <schedule S>
class lr_scheduler {
 public:
  lr_scheduler(optimizer& target, S rule) : target_(target), rule_(std::move(rule)), base_(target.lr()) {
    set_epoch(0);
  }

  void step() { set_epoch(epoch_ + 1); }
  index_t epoch() const { return epoch_; }
  void set_epoch(index_t epoch) {
    target_.set_lr(rule_(base_, epoch));
    epoch_ = epoch;
  }

  /// The rate that the schedule is of.
  double base_lr() const { return base_; }
  /// The rate of an epoch of a schedule of `base_lr`.
  double rate(double base_lr, index_t epoch) const { return rule_(base_lr, epoch); }
  /// Goes on from there, and sets the rate.
  void restore(double base_lr, index_t epoch) {
    target_.set_lr(rate(base_lr, epoch));
    base_ = base_lr;
    epoch_ = epoch;
  }

 private:
  optimizer& target_;
  S rule_;
  double base_;
  index_t epoch_ = 0;
};

#if SINTER_DEFINES

SINTER_SHARED double step_lr::operator()(double base, index_t epoch) const {
  if (every < 1) throw value_error("step_lr: `every` must be at least 1");
  return base * std::pow(gamma, static_cast<double>(epoch / every));
}

SINTER_SHARED double multi_step_lr::operator()(double base, index_t epoch) const {
  for (index_t m : milestones) base *= epoch >= m ? gamma : 1;
  return base;
}

SINTER_SHARED double cosine_lr::operator()(double base, index_t epoch) const {
  if (period < 1) throw value_error("cosine_lr: `period` must be at least 1");
  return least + (base - least) *
                     (1 + std::cos(3.14159265358979323846 * static_cast<double>(epoch) / static_cast<double>(period))) /
                     2;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::optim
