// sinter/optim/mixed_precision.hpp: training of half and bfloat16 parameters as one policy: float masters and loss
// scaling.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "sinter/optim/clip.hpp"
#include "sinter/optim/grad_scaler.hpp"
#include "sinter/optim/on_masters.hpp"

namespace sinter::optim {

namespace detail {

/// The same optimizer with float masters; for other types there is none.
template <class Optimizer>
struct with_masters {};
template <class Rule>
struct with_masters<rule_optimizer<Rule>> {
  using type = rule_optimizer<on_masters<Rule>>;
};

/// Where the parameters of a source of an optimizer are: in itself, or in the model of an nn::distributed.
template <class Source>
const auto& parameters_of(const Source& source) {
  if constexpr (requires { source.model(); } && !nn::is_module<Source>) return source.model();
  else return source;
}

}  // namespace detail

/// Stands for what is no such optimizer.
template <class Optimizer>
class mixed_precision {
  static_assert(!std::is_same_v<Optimizer, Optimizer>,
                "sinter: optim::mixed_precision<...> takes a rule_optimizer, such as optim::adam or optim::sgd, or "
                "optim::sharded of one");
};

/// An optimizer for models of half and bfloat16, with all that goes with them: it keeps a float copy of each such
/// parameter, its master, steps that, and rounds it back, so that steps that are too small for 8 or 11 bits add up. For
/// half it scales the loss, by the rules of grad_scaler, so that small gradients do not round to 0; a step whose
/// gradients are infinite or NaN is left out. It is `Optimizer` in all else: its options, groups of parameters,
/// schedules, checkpoints. Parameters of float and double are stepped as by `Optimizer`.
///
///     optim::mixed_precision<optim::adam> policy(model, {.lr = 1e-3});
///     for (auto& [x, y] : loader) {
///       policy.zero_grad();
///       policy.backward(cross_entropy(model(x), y));
///       policy.clip_grad_norm(model, 1.0);  // where it is wanted
///       policy.step();
///     }
///
/// A parameter that something else changes, such as nn::load(), counts with its new value. Masters take 4 bytes a
/// parameter, and a step as many again while it runs. `Optimizer` is any rule_optimizer, or optim::sharded of one,
/// whose ranks keep the masters of their parameters alone; then backward is `ranks.backward(policy.scale(loss), n)`.
/// Errors: those of `Optimizer` and grad_scaler. P. Micikevicius et al., "Mixed precision training", ICLR 2018.
template <class Optimizer>
  requires requires { typename detail::with_masters<Optimizer>::type; }
class mixed_precision<Optimizer> : public detail::with_masters<Optimizer>::type {
  using base = typename detail::with_masters<Optimizer>::type;

 public:
  using options_type = typename base::options_type;

  /// The source that `Optimizer` takes, and its options. Losses are scaled where a parameter is half.
  template <class Source>
    requires(!std::is_same_v<std::remove_cvref_t<Source>, mixed_precision>)
  explicit mixed_precision(Source&& source, const options_type& options = {}) : base(source, options) {
    note(source);
  }
  /// The same with rules for the scale, which hold whatever the parameters are.
  template <class Source>
  mixed_precision(Source&& source, const options_type& options, const grad_scaler_options& scaling)
      : base(source, options), scaler_(scaling), is_chosen_(true) {}
  mixed_precision(const mixed_precision&) = delete;
  template <class Problem = copy_of_an_optimizer_which_would_count_steps_of_its_own,
            class Fix = take_a_reference_or_std_move_it>
  mixed_precision(mixed_precision&) = delete;
  mixed_precision(mixed_precision&&) noexcept = default;
  mixed_precision& operator=(const mixed_precision&) = delete;
  mixed_precision& operator=(mixed_precision&&) noexcept = default;
  ~mixed_precision() = default;

  /// Those of `Optimizer`.
  template <class Source>
  void add(const Source& source) {
    base::add(source);
    note(source);
  }
  template <class Source, class F>
  void add_param_group(const Source& source, const F& change) {
    base::add_param_group(source, change);
    note(source);
  }

  /// The loss times the scale, a variable of float where the loss is half or bfloat16; for a backward pass that is not
  /// backward(), as that of an nn::distributed.
  template <expression E>
    requires floating_element<element_of<E>>
  auto scale(const E& loss) const {
    return eval(scaler_.scale(loss));
  }
  /// loss.backward(), scaled: gradients of parameters are scaler().get_scale() times too large until step().
  template <expression E>
    requires floating_element<element_of<E>>
  void backward(const E& loss, backward_options options = {}) const {
    scale(loss).backward(options);
  }

  /// optim::clip_grad_norm of scaled gradients: max_norm and the norm that it returns are without the scale.
  template <class Source>
  gradient_norm clip_grad_norm(const Source& source, double max_norm) const {
    const double by = scaler_.get_scale();
    const gradient_norm scaled = optim::clip_grad_norm(source, max_norm * by);
    return gradient_norm([scaled, by] { return scaled.item() / by; });
  }

  /// A step of the masters, rounded into the parameters, or none where a gradient is infinite or NaN; then the scale is
  /// adapted. Whether it was taken. Errors: those of the step of `Optimizer`, after which the scale is as before.
  bool step() {
    const grad_scaler::state_type before = scaler_.state();
    try {
      const bool taken = scaler_.step(static_cast<base&>(*this));
      scaler_.update();
      return taken;
    } catch (...) {
      scaler_.set_state(before);
      throw;
    }
  }

  /// Its scale, which may be set by update(scale).
  const grad_scaler& scaler() const { return scaler_; }
  grad_scaler& scaler() { return scaler_; }

 private:
  /// Leaves the loss as it is, and steps that are not finite out.
  static constexpr grad_scaler_options unscaled{.init_scale = 1, .growth_factor = 1, .backoff_factor = 1};

  /// Scales from now on if the source has a parameter of half.
  template <class Source>
  void note(const Source& source) {
    const auto& parameters = detail::parameters_of(source);
    if constexpr (detail::is_fitting<detail::source_mistake<decltype(parameters)>>) {
      if (is_chosen_) return;
      detail::visit_variables(parameters, [this](const std::string&, const auto& v) {
        is_chosen_ = is_chosen_ || std::is_same_v<element_of<decltype(v)>, half>;
      });
      if (is_chosen_) scaler_ = grad_scaler();
    }
  }

  grad_scaler scaler_{unscaled};
  bool is_chosen_ = false;  ///< the scale is that of the caller, or of half
};

}  // namespace sinter::optim
