// sinter/optim/schedule.hpp: learning rates that change from epoch to epoch.
#pragma once

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

/// A schedule is a value: the learning rate as a function of the one the optimizer started with and the epoch.
template <class S>
concept schedule = requires(const S& s, double base, index_t epoch) {
  { s(base, epoch) } -> std::convertible_to<double>;
};

// Names in messages.
struct write_dot_every;
struct write_dot_period;
struct write_dot_least;
struct write_dot_length;
struct write_dot_start;
struct write_dot_end;
struct write_dot_growth;
struct give_the_optimizer_that_rate;
struct write_dot_length_in_steps;

/// base gamma^floor(epoch / every).
struct step_lr {
  index_t every;
  double gamma = 0.1;
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_every> step_size = {};
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
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_period> T_max = {};
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_period> t_max = {};
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_least> eta_min = {};
  double operator()(double base, index_t epoch) const;
};

/// base factor for `length` epochs, then base, as torch's ConstantLR.
struct constant_lr {
  index_t length = 5;
  double factor = 1.0 / 3;
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_length> total_iters = {};
  double operator()(double base, index_t epoch) const { return epoch < length ? base * factor : base; }
};

/// From base start to base end along a line in `length` epochs, then base end, as torch's LinearLR.
struct linear_lr {
  index_t length = 5;
  double start = 1.0 / 3;
  double end = 1;
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_start> start_factor = {};
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_end> end_factor = {};
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_length> total_iters = {};
  double operator()(double base, index_t epoch) const;
};

/// From base to `rate` in `length` epochs along half a cosine, or a line, then `rate`, as torch's SWALR: while weights
/// are averaged. The base is the rate when the scheduler is made.
struct swa_lr {
  double rate;
  index_t length = 10;
  bool linear = false;
  double operator()(double base, index_t epoch) const;
};

/// From `least` to base along a line in `up` steps, and back in `down` (as many, where that is 0), again and again, as
/// torch's CyclicLR with base as its max_lr. The part above `least` is multiplied by gamma^step, and with `halving` by
/// a half in each cycle. L. N. Smith, WACV 2017.
struct cyclic_lr {
  double least;
  index_t up = 2000;
  index_t down = 0;
  bool halving = false;
  double gamma = 1;
  double operator()(double base, index_t step) const;
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

/// From base to 0 in `length` epochs, as (1 - epoch / length)^power, then 0, as torch's PolynomialLR.
struct polynomial_lr {
  index_t length;
  double power = 1;
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_length> total_iters = {};
  double operator()(double base, index_t epoch) const;
};

/// From base to `least` along half a cosine, and then from base again, each period `growth` times as long as the one
/// before; as torch's CosineAnnealingWarmRestarts. I. Loshchilov and F. Hutter, ICLR 2017.
struct cosine_restarts_lr {
  index_t period;
  index_t growth = 1;
  double least = 0;
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_period> T_0 = {};
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_growth> T_mult = {};
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_least> eta_min = {};
  double operator()(double base, index_t epoch) const;
};

/// From base / first up to base in the first `rising` part of `length` steps, then down to base / (first last), each
/// along half a cosine, as torch's OneCycleLR with base as its max_lr. A step is a batch rather than an epoch. L. N.
/// Smith and N. Topin, 2018.
struct one_cycle_lr {
  index_t length;
  double rising = 0.3;
  double first = 25;
  double last = 1e4;
  [[no_unique_address]] sinter::detail::option_named_otherwise<give_the_optimizer_that_rate> max_lr = {};
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_length_in_steps> total_steps = {};
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_length_in_steps> epochs = {};
  double operator()(double base, index_t step) const;
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

namespace detail {

/// What all schedulers share.
class scheduler_base {
 public:
  index_t epoch() const { return epoch_; }
  /// The rate that the schedule is of: the one that a group had when the scheduler was made. Errors: index_error.
  double base_lr(std::size_t group = 0) const { return bases_[group]; }
  /// Number of groups that the scheduler keeps; those that the optimizer gets later keep their own rates.
  std::size_t groups() const { return bases_.size(); }

 protected:
  explicit scheduler_base(optimizer& target);
  /// Sets rate(rule, base, epoch) in each group, or throws and sets none; the bases, if they are given, become those.
  void set(index_t epoch, double (*rate)(const void*, double, index_t), const void* rule, const double* bases);

 private:
  optimizer& target_;
  of_groups<double> bases_;
  index_t epoch_ = 0;
};

}  // namespace detail

/// Keeps an optimizer's learning rates at a schedule, that of each group from where it begins; sets those of epoch 0 at
/// once.
///
///     optim::lr_scheduler scheduler(optimizer, optim::cosine_lr{.period = 20});
///     for (...) { train(); scheduler.step(); }
template <schedule S>
class lr_scheduler : public detail::scheduler_base {
 public:
  lr_scheduler(optimizer& target, S rule) : scheduler_base(target), rule_(std::move(rule)) { set_epoch(0); }

  void step() { set_epoch(epoch() + 1); }
  void set_epoch(index_t epoch) { set(epoch, &rate_of, &rule_, nullptr); }

  /// The rate of an epoch of a schedule of `base_lr`.
  double rate(double base_lr, index_t epoch) const { return rule_(base_lr, epoch); }
  /// Goes on from there, and sets the rates; one base for each group.
  void restore(const std::vector<double>& base_lr, index_t epoch) { set(epoch, &rate_of, &rule_, base_lr.data()); }

 private:
  static double rate_of(const void* rule, double base, index_t epoch) {
    return (*static_cast<const S*>(rule))(base, epoch);
  }
  S rule_;
};

struct plateau_options {
  double factor = 0.1;      ///< of the new rate to the old one
  index_t patience = 10;    ///< epochs without a better value that are put up with
  double threshold = 1e-4;  ///< by which part of the best value a better one has to be better
  index_t cooldown = 0;     ///< epochs after a smaller rate that are not counted
  double least = 0;         ///< no rate is smaller
  bool maximize = false;    ///< is a better value a larger one?
};

/// Makes the learning rates smaller when a value, such as the validation loss, has not become better for some epochs,
/// as torch's ReduceLROnPlateau with its threshold relative to the best value.
///
///     optim::reduce_on_plateau scheduler(optimizer, {.patience = 3});
///     for (...) { train(); scheduler.step(validation_loss); }
class reduce_on_plateau {
 public:
  explicit reduce_on_plateau(optimizer& target, const plateau_options& options = {});
  /// Errors: value_error for NaN.
  void step(double value);
  double best() const { return best_; }

 private:
  optimizer& target_;
  plateau_options options_;
  double best_;
  index_t without_ = 0, cooling_ = 0;
};

#if SINTER_DEFINES

namespace detail {

SINTER_SHARED scheduler_base::scheduler_base(optimizer& target) : target_(target), bases_(target.lr()) {
  for (std::size_t group = 1; group < target.groups(); ++group) bases_.add(target.lr(group));
}
SINTER_SHARED void scheduler_base::set(index_t epoch, double (*rate)(const void*, double, index_t), const void* rule,
                                       const double* bases) {
  std::vector<double> rates;
  for (std::size_t group = 0; group < groups(); ++group) {
    rates.push_back(rate(rule, bases != nullptr ? bases[group] : base_lr(group), epoch));
    check_setting("optimizer", "the learning rate", rates.back());
  }
  for (std::size_t group = 0; group < groups(); ++group) {
    target_.set_lr(rates[group], group);
    if (bases != nullptr) bases_.set(group, bases[group]);
  }
  epoch_ = epoch;
}

}  // namespace detail

SINTER_SHARED double polynomial_lr::operator()(double base, index_t epoch) const {
  if (length < 1) throw value_error("polynomial_lr: `length` must be at least 1");
  return epoch >= length ? 0 : base * std::pow(1 - static_cast<double>(epoch) / static_cast<double>(length), power);
}

namespace detail {

/// From a to b along half a cosine, where x goes from 0 to 1.
inline double along_cosine(double a, double b, double x) {
  return b + (a - b) * (1 + std::cos(3.14159265358979323846 * x)) / 2;
}

}  // namespace detail

SINTER_SHARED double linear_lr::operator()(double base, index_t epoch) const {
  if (length < 1) throw value_error("linear_lr: `length` must be at least 1");
  const double at = epoch < length ? static_cast<double>(epoch) / static_cast<double>(length) : 1;
  return base * (start + (end - start) * at);
}

SINTER_SHARED double swa_lr::operator()(double base, index_t epoch) const {
  if (length < 0) throw value_error("swa_lr: `length` must not be negative");
  if (epoch >= length) return rate;
  const double at = static_cast<double>(epoch) / static_cast<double>(length);
  return linear ? base + (rate - base) * at : detail::along_cosine(base, rate, at);
}

SINTER_SHARED double cyclic_lr::operator()(double base, index_t step) const {
  if (up < 1 || down < 0) throw value_error("cyclic_lr: `up` must be at least 1, and `down` not negative");
  const index_t length = up + (down == 0 ? up : down), at = step % length;
  const double height = at <= up ? static_cast<double>(at) / static_cast<double>(up)
                                 : static_cast<double>(length - at) / static_cast<double>(length - up);
  const double cycles = halving ? static_cast<double>(step / length) : 0;
  return least + (base - least) * height * std::pow(0.5, cycles) * std::pow(gamma, static_cast<double>(step));
}

SINTER_SHARED double cosine_restarts_lr::operator()(double base, index_t epoch) const {
  if (period < 1 || growth < 1) throw value_error("cosine_restarts_lr: `period` and `growth` must be at least 1");
  index_t begin = 0, length = period;
  while (epoch - begin >= length && growth > 1) {
    begin += length;
    length *= growth;
  }
  const index_t at = (epoch - begin) % length;
  return detail::along_cosine(base, least, static_cast<double>(at) / static_cast<double>(length));
}

SINTER_SHARED double one_cycle_lr::operator()(double base, index_t step) const {
  if (length < 2) throw value_error("one_cycle_lr: `length` must be at least 2");
  const double low = base / first, end = low / last, at = static_cast<double>(step < length ? step : length - 1);
  const double top = rising * static_cast<double>(length) - 1, over = static_cast<double>(length - 1);
  if (top > 0 && at <= top) return detail::along_cosine(low, base, at / top);
  return detail::along_cosine(base, end, (at - top) / (over - top));
}

SINTER_SHARED reduce_on_plateau::reduce_on_plateau(optimizer& target, const plateau_options& options)
    : target_(target),
      options_(options),
      best_(options.maximize ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity()) {
  if (!(options.factor > 0 && options.factor < 1))
    sinter::detail::refuse<value_error>(
        {"reduce_on_plateau: factor is ", options.factor, "; it must lie between 0 and 1"});
  if (options.patience < 0 || options.cooldown < 0)
    throw value_error("reduce_on_plateau: `patience` and `cooldown` must be 0 or more");
}
SINTER_SHARED void reduce_on_plateau::step(double value) {
  if (std::isnan(value)) throw value_error("reduce_on_plateau: the value is NaN");
  const bool is_better =
      options_.maximize ? value > best_ * (1 + options_.threshold) : value < best_ * (1 - options_.threshold);
  if (is_better) best_ = value;
  without_ = is_better ? 0 : without_ + 1;
  if (cooling_ > 0) {
    --cooling_;
    without_ = 0;
  }
  if (without_ <= options_.patience) return;
  for (std::size_t group = 0; group < target_.groups(); ++group) {
    const double rate = target_.lr(group) * options_.factor;
    target_.set_lr(rate > options_.least ? rate : options_.least, group);
  }
  cooling_ = options_.cooldown;
  without_ = 0;
}

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
