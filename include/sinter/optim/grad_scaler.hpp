// sinter/optim/grad_scaler.hpp: loss scaling, which keeps small gradients of half from vanishing.
#pragma once

#include <cmath>
#include <concepts>
#include <vector>

#include "sinter/ops/cast.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

struct grad_scaler_options {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  index_t growth_interval = 2000;  ///< updates without overflow before the scale grows
  bool enabled = true;             ///< if not, losses and gradients are left alone and every step is taken
};

/// An optimizer that multiplies gradients by a factor and tells whether they are finite, and that takes a step in which
/// they count so many times: rule_optimizer, and sharded.
template <class O>
concept scaled_optimizer = std::derived_from<O, optimizer> && requires(O& o, double factor) {
  { o.scale_gradients(factor) } -> std::same_as<bool>;
  o.step(factor);
};

/// As torch.amp.GradScaler: the loss is multiplied by a scale before backward, so that small gradients do not round to
/// 0, and the step divides by it again, in the precision of the update. Where one of them is not finite the step is
/// left out, and update() makes the scale smaller; after growth_interval updates without that it makes it larger. For
/// parameters of any floating-point type, on any device; bfloat16, which has the range of float, seldom needs it. P.
/// Micikevicius et al., "Mixed precision training", ICLR 2018.
///
///     optim::grad_scaler scaler;
///     variable loss = cross_entropy(model(x), labels);
///     optimizer.zero_grad();
///     variable(scaler.scale(loss)).backward();
///     scaler.step(optimizer);
///     scaler.update();
class grad_scaler {
 public:
  /// Errors: value_error unless the scale is positive and finite, growth is at least 1, backoff in (0, 1] and the
  /// interval 1 or more.
  explicit grad_scaler(const grad_scaler_options& options = {});

  /// The loss times the scale, in float where the loss is half or bfloat16.
  template <expression E>
    requires floating_element<element_of<E>>
  auto scale(E&& loss) const {
    return cast<compute_type<element_of<E>>>(std::forward<E>(loss)) * get_scale();
  }

  /// Divides the gradients of the optimizer's parameters by the scale, so that they can be read or clipped
  /// before step(). In half the smallest then round to 0, which they do not in a step() alone. PyTorch's unscale_.
  /// Errors: value_error for a second time, or after step(), before update().
  template <scaled_optimizer O>
  void unscale(O& optimizer) {
    if (!options_.enabled) return;
    use& u = use_of(&optimizer);
    if (u.unscaled || u.stepped)
      throw value_error(
          "grad_scaler: unscale() was called for this optimizer already, or its step(); call update() first");
    u.finite = optimizer.scale_gradients(1 / scale_);
    u.unscaled = true;
  }

  /// The optimizer's step, unless a gradient is infinite or NaN; whether it was taken. Errors: value_error for a second
  /// step before update().
  template <scaled_optimizer O>
  bool step(O& optimizer) {
    if (options_.enabled) {
      use& u = use_of(&optimizer);
      if (u.stepped)
        throw value_error("grad_scaler: step() was called for this optimizer already; call update() first");
      u.stepped = true;
      if (!u.unscaled) u.finite = optimizer.scale_gradients(1);
      if (u.finite) optimizer.step(u.unscaled ? 1 : 1 / scale_);
      return u.finite;
    }
    optimizer.step();
    return true;
  }

  /// After the steps of all optimizers: adapts the scale. Errors: value_error where there was none.
  void update();
  /// Sets the scale instead. Errors: value_error unless it is positive and finite.
  void update(double new_scale);

  /// The scale; 1 where the scaler is not enabled.
  double get_scale() const { return options_.enabled ? scale_ : 1; }
  const grad_scaler_options& options() const { return options_; }

  /// What lasts from update to update.
  struct state_type {
    double scale = 1;
    index_t good_updates = 0;  ///< since the scale changed last
  };
  /// Errors: value_error between a step or unscale() and the update() after it.
  state_type state() const;
  /// Errors: value_error for a scale that is not positive and finite, and for a number of updates out of range.
  void set_state(const state_type& s);
  void check_state(const state_type& s) const;

 private:
  /// What happened to an optimizer since the last update.
  struct use {
    const void* optimizer;
    bool unscaled = false, stepped = false, finite = true;
  };

  static void check_scale(double scale);
  use& use_of(const void* optimizer);

  grad_scaler_options options_;
  double scale_;
  index_t good_updates_ = 0;
  std::vector<use> uses_;
};

#if SINTER_DEFINES

SINTER_SHARED grad_scaler::grad_scaler(const grad_scaler_options& options)
    : options_(options), scale_(options.init_scale) {
  check_scale(scale_);
  if (!(options.growth_factor >= 1) || !(options.backoff_factor > 0 && options.backoff_factor <= 1) ||
      options.growth_interval < 1)
    sinter::detail::refuse<value_error>(
        {"grad_scaler: growth_factor must be at least 1, backoff_factor in (0, 1] and growth_interval 1 or more, "
         "not ",
         options.growth_factor, ", ", options.backoff_factor, " and ", options.growth_interval});
}

SINTER_SHARED void grad_scaler::update() {
  if (!options_.enabled) return;
  if (uses_.empty()) throw value_error("grad_scaler: update() without a step() or unscale() before it");
  bool finite = true;
  for (const use& u : uses_) finite = finite && u.finite;
  uses_.clear();
  good_updates_ = finite ? good_updates_ + 1 : 0;
  if (!finite) {
    scale_ *= options_.backoff_factor;
  } else if (good_updates_ == options_.growth_interval) {
    if (std::isfinite(static_cast<float>(scale_ * options_.growth_factor))) scale_ *= options_.growth_factor;
    good_updates_ = 0;
  }
}

SINTER_SHARED void grad_scaler::update(double new_scale) {
  check_scale(new_scale);
  uses_.clear();
  scale_ = new_scale;
}

SINTER_SHARED grad_scaler::state_type grad_scaler::state() const {
  if (!uses_.empty())
    throw value_error("grad_scaler: there was a step() or unscale() since the last update(); call it first");
  return {scale_, good_updates_};
}

SINTER_SHARED void grad_scaler::set_state(const state_type& s) {
  check_state(s);
  scale_ = s.scale;
  good_updates_ = s.good_updates;
  uses_.clear();
}

SINTER_SHARED void grad_scaler::check_state(const state_type& s) const {
  check_scale(s.scale);
  if (s.good_updates < 0 || s.good_updates >= options_.growth_interval)
    sinter::detail::refuse<value_error>({"grad_scaler: ", s.good_updates, " updates since the scale changed, of ",
                                         options_.growth_interval, " after which it grows"});
}

SINTER_SHARED void grad_scaler::check_scale(double scale) {
  if (!(scale > 0) || !std::isfinite(scale))
    sinter::detail::refuse<value_error>({"grad_scaler: the scale must be positive and finite, but is ", scale});
}

SINTER_SHARED grad_scaler::use& grad_scaler::use_of(const void* optimizer) {
  for (use& u : uses_)
    if (u.optimizer == optimizer) return u;
  return uses_.emplace_back(use{optimizer});
}

#endif  // SINTER_DEFINES

}  // namespace sinter::optim
