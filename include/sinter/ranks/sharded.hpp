// sinter/ranks/sharded.hpp: an optimizer whose state is spread over the ranks that train a model.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sinter/optim/grad_scaler.hpp"
#include "sinter/optim/sgd.hpp"
#include "sinter/ranks/run_part.hpp"
#include "sinter/ranks/shard_ranks.hpp"

namespace sinter {

// Names in messages.
template <class>
struct sharding_over_what_is_not_distributed;
struct pass_the_nn_distributed_of_the_model;

}  // namespace sinter

namespace sinter::optim {

/// The optimizer of a model that several ranks train (ZeRO, stage 1): each rank keeps the optimizer's state of a part
/// of the parameters, and updates these; then it sends their new values to the others. The state takes 1/R of its
/// memory on each of R ranks. Parameters are what they would be with `Optimizer` on each rank, bit for bit.
///
///     nn::distributed ranks(model, world);
///     optim::sharded<optim::adam> optimizer(ranks, {.lr = 1e-3});
///     for (auto& [x, y] : loader) {
///       optimizer.zero_grad();
///       ranks.backward(cross_entropy(model(x), y), x.extent(0));
///       optimizer.step();
///     }
///
/// `Optimizer` is any rule_optimizer: sgd, adam, adamw, rmsprop or one of a rule of your own; options are its. Whole
/// parameters are dealt out, the largest first, each to the rank with the fewest bytes so far; so one that is larger
/// than all others together limits what is saved. lr_scheduler, clip_grad_norm and grad_scaler work as without ranks:
/// every rank has all gradients, so all see the same norm, and all leave out the same steps.
///
/// All ranks call step(), after the backward() of `ranks`. Parameters without a gradient are neither updated nor sent.
/// A parameter of 1 MiB or more is sent from its own memory; smaller ones are put together, by owner, element type and
/// device, in memory that is freed after the step.
///
/// For a run_checkpoint all ranks call gather_state(), then rank 0 saves. Any number of ranks loads the file, and so
/// does `Optimizer` itself. The distributed must outlive it. Errors: those of `Optimizer`; communication_error.
/// Source: Rajbhandari et al., "ZeRO: memory optimizations toward training trillion parameter models", SC 2020;
/// parameters are dealt out as by torch.distributed.optim.ZeroRedundancyOptimizer.
template <class Optimizer>
class sharded {
  static_assert(!std::is_same_v<Optimizer, Optimizer>,
                "sinter: optim::sharded<...> takes a rule_optimizer, such as optim::adam or optim::sgd");
};

template <class Rule>
class sharded<rule_optimizer<Rule>> : public optimizer {
 public:
  using options_type = typename Rule::options;

  /// The parameters of the model of `ranks`. All ranks give the same options. Errors: value_error for a setting that
  /// makes no sense and for a model without tracked parameters.
  template <nn::is_module M, communicator C, communicator... More>
  explicit sharded(nn::distributed<M, C, More...>& ranks, const options_type& options = {})
      : optimizer(options.lr),
        inner_(ranks.model(), options),
        ranks_(std::make_unique<detail::typed_shard_ranks<nn::distributed<M, C, More...>>>(ranks)) {}
  template <class X, class Problem = sharding_over_what_is_not_distributed<X>,
            class Fix = pass_the_nn_distributed_of_the_model>
  explicit sharded(X&, const options_type& = {}) = delete;
  sharded(const sharded&) = delete;
  template <class Problem = copy_of_an_optimizer_which_would_count_steps_of_its_own,
            class Fix = take_a_reference_or_std_move_it>
  sharded(sharded&) = delete;
  sharded(sharded&&) noexcept = default;
  sharded& operator=(const sharded&) = delete;
  sharded& operator=(sharded&&) noexcept = default;

  /// Updates every parameter that has a gradient, on the rank that owns it, and spreads the new values. All ranks call
  /// it. Errors, which end the work of all ranks: those of rule_optimizer::step; communication_error.
  void step(double gradient_scale = 1) {
    ranks_->guarded([&] {
      forget_gathered();
      for (std::size_t group = 0; group < groups(); ++group) inner_.set_lr(lr(group), group);
      inner_.step_those([this](std::size_t i) { return owner(i) == ranks_->rank(); }, gradient_scale);
      ranks_->spread();
    });
  }
  /// As that of rule_optimizer, for parameters of the model; all ranks call it alike. Errors: also value_error for a
  /// parameter that is not the model's.
  template <class Source, std::invocable<options_type&> F>
    requires(detail::is_fitting<detail::source_mistake<Source>>)
  void add_param_group(const Source& source, const F& change) {
    if (!inner_.has(source))
      throw value_error("sharded: a group takes parameters of the model that the optimizer was made for");
    inner_.add_param_group(source, change);
    add_group(inner_.lr(groups()));
  }
  void zero_grad() const { inner_.zero_grad(); }
  /// Multiplies all gradients by a factor; whether all of them are finite.
  bool scale_gradients(double factor) { return inner_.scale_gradients(factor); }

  const options_type& options() const { return inner_.options(); }
  const options_type& options(std::size_t group) const { return inner_.options(group); }
  std::size_t group_of(std::size_t parameter) const { return inner_.group_of(parameter); }
  /// Number of parameters, those of all ranks.
  std::size_t size() const { return inner_.size(); }
  /// The rank that updates a parameter.
  int owner(std::size_t parameter) const { return ranks_->owners[parameter]; }

  /// Brings the state of all ranks to rank 0, which may then save it in a run_checkpoint; until the next step() or load
  /// rank 0 keeps it, on the host. All ranks call it. Errors: communication_error.
  ///
  ///     optimizer.gather_state();
  ///     if (ranks.rank() == 0) file.save(model, optimizer);
  void gather_state()
    requires(rule_optimizer<Rule>::can_be_saved)
  {
    ranks_->guarded([&] {
      forget_gathered();
      const auto members = inner_.saved_members();
      detail::packed_values mine;
      for (const auto& m : members)
        if (keeps(m) && ranks_->rank() > 0) mine.add(inner_.saved_value(m));
      std::vector<index_t> most(static_cast<std::size_t>(ranks_->size()));
      for (const auto& m : members)
        most[static_cast<std::size_t>(owner(m.parameter))] += detail::packed_values::most_bytes(m.numel);
      std::vector<detail::unpacked_values> all;
      for (const auto& bytes : ranks_->gather(mine.take(), most)) all.emplace_back(bytes, static_cast<int>(all.size()));
      if (ranks_->rank() == 0)
        for (const auto& m : members) {
          auto value = keeps(m) ? inner_.saved_value(m) : all[static_cast<std::size_t>(owner(m.parameter))].next();
          if (value) gathered_.emplace(m.name, std::move(*value));
        }
      for (const auto& rest : all) rest.require_end();
      is_gathered_ = true;
    });
  }

  // For checkpoints; see rule_optimizer.
  static constexpr bool can_be_saved = rule_optimizer<Rule>::can_be_saved;
  std::vector<detail::saved_member> saved_members() const { return inner_.saved_members(); }
  std::optional<host_tensor> saved_value(const detail::saved_member& m) const {
    if (!is_gathered_)
      throw value_error(
          "sharded: every rank keeps a part of the optimizer's state; call gather_state() on all ranks after the last "
          "step, then save on rank 0");
    if (ranks_->rank() > 0)
      sinter::detail::refuse<value_error>(
          {"sharded: rank ", ranks_->rank(), " does not have the state; rank 0 does, so save there"});
    const auto at = gathered_.find(m.name);
    return at == gathered_.end() ? std::nullopt : std::optional(at->second);
  }
  bool keeps(const detail::saved_member& m) const { return owner(m.parameter) == ranks_->rank(); }
  void forget_gathered() {
    gathered_.clear();
    is_gathered_ = false;
  }
  const std::string& label(std::size_t parameter) const { return inner_.label(parameter); }

 private:
  rule_optimizer<Rule> inner_;  ///< of all parameters; those of other ranks have no state
  std::unique_ptr<detail::shard_ranks> ranks_;
  std::unordered_map<std::string, host_tensor> gathered_;
  bool is_gathered_ = false;
};

namespace detail {
template <class Optimizer>
struct with_masters<sharded<Optimizer>> {
  using type = sharded<typename with_masters<Optimizer>::type>;
};
}  // namespace detail

static_assert(scaled_optimizer<rule_optimizer<detail::sgd_rule>> &&
              scaled_optimizer<sharded<rule_optimizer<detail::sgd_rule>>>);

}  // namespace sinter::optim

namespace sinter::detail {

template <class Rule>
struct run_part_of<optim::sharded<optim::rule_optimizer<Rule>>>
    : optimizer_part<optim::sharded<optim::rule_optimizer<Rule>>> {};

}  // namespace sinter::detail
