// sinter/optim/optimizer.hpp: what all optimizers share: a list of parameters of any rank, type and device, each with
// the state of its update.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/expr/independent.hpp"
#include "sinter/optim/rate.hpp"
#include "sinter/optim/source.hpp"
#include "sinter/optim/update.hpp"

namespace sinter {

// Names in messages.
struct copy_of_an_optimizer_which_would_count_steps_of_its_own;
struct take_a_reference_or_std_move_it;
struct number_in_place_of_options;
struct name_the_setting_in_braces_such_as_dot_lr;
struct settings_of_a_group_that_would_reset_those_it_does_not_name;
struct give_a_function_that_changes_those_of_the_optimizer_such_as_auto_ref_o;

}  // namespace sinter

namespace sinter::optim {

namespace detail {

template <class Rule>
concept has_options = requires(const typename Rule::options& options) {
  { options.lr } -> std::convertible_to<double>;
  Rule::validate(options);
};
struct ignore_member {
  template <class X>
  void operator()(const char*, X&) const {}
};
template <class Rule, class T, class D>
concept has_saved_state =
    requires(typename Rule::template state<T, D> state, const ignore_member& f) { state.each_saved(f); };
template <class Rule, class T, class D>
concept has_state = requires(typename Rule::template state<T, D> state, const typename Rule::options& options,
                             const flat_parameter<T, D>& parameter) {
  state.reserve(index_t{1}, options);
  state.update(parameter, options, 0.1, 1.0);
};

template <class Rule>
concept steps_rows = requires(const typename Rule::options& options) { Rule::validate_rows(options); };
[[noreturn]] SINTER_SHARED_COLD void refuse_rows(const std::string& label);
[[noreturn]] SINTER_SHARED_COLD void refuse_no_parameters(bool chosen);
#if SINTER_DEFINES
[[noreturn]] SINTER_SHARED_COLD void refuse_rows(const std::string& label) {
  sinter::detail::refuse<value_error>(
      {"optimizer: the gradient of ", label,
       " is held by rows, which sgd and adagrad step; use one of them for it, or a table that is not row-sparse"});
}
[[noreturn]] SINTER_SHARED_COLD void refuse_no_parameters(bool chosen) {
  throw value_error(chosen ? "optimizer: the choice of optim::only() is empty; it must be true for a tracked parameter"
                           : "optimizer: no tracked parameters to optimise");
}
#endif  // SINTER_DEFINES

/// True; for a class that is no optimizer rule, an error that names what is missing.
template <class Rule>
constexpr bool check_optimizer_rule() {
  constexpr bool options = has_options<Rule>, state = has_state<Rule, float, cpu>;
  static_assert(options,
                "sinter: an optimizer rule needs a type 'options' with a member 'lr', and 'validate(options)'");
  static_assert(state,
                "sinter: an optimizer rule needs a template 'state<T, D>' with 'reserve(numel, options)' and "
                "'update(parameter, options, lr, gradient_scale)'");
  return true;
}

/// What the items of an optimizer keep. `Members` is a parameter so that only files which call it compile its
/// functions.
template <class Items, class Members = std::vector<saved_member>>
Members list_saved(const Items& items) {
  Members all;
  for (std::size_t i = 0; i < items.size(); ++i) items[i]->list_saved(i, all);
  return all;
}

}  // namespace detail

/// What an optimizer does to its parameters.
template <class Rule>
concept optimizer_rule =
    // options: the settings, among them the learning rate lr; validate(options) throws value_error for senseless ones.
    detail::has_options<Rule> &&
    // state<T, D>, of one parameter of elements T on D: reserve(numel, options) allocates; update(parameter, options,
    // lr, gradient_scale) is one pass over memory. Where steps are numbered, it has count(options, lr), which comes
    // before. Where room depends on more than the size, it has reserve_for(parameter). For row_sparse() tables a rule
    // has validate_rows(options), and a state reserve_rows(gradient) and update_rows(parameter, gradient, options, lr,
    // gradient_scale). A rule that does not step all shapes has validate_matrix(extents, label). For checkpoints it has
    // each_saved(f), which calls f(name, member) for the members that last from step to step: running<T, D> and
    // numbers.
    detail::has_state<Rule, float, cpu>;

/// An optimizer by its Rule.
template <class Rule>
class rule_optimizer : public optimizer {
  static_assert(detail::check_optimizer_rule<Rule>());

 public:
  using options_type = typename Rule::options;

  /// The parameters of a module, a variable, or a range of either; see add for more. Errors: value_error for a setting
  /// that makes no sense and for a source without tracked parameters.
  template <class Source>
    requires(detail::is_fitting<detail::source_mistake<Source>>)
  explicit rule_optimizer(const Source& source, const options_type& options = {})
      : rule_optimizer(no_parameters{}, options) {
    add(source);
  }
  /// Variables of one type in braces.
  template <class V>
    requires(detail::is_variable<V>)
  explicit rule_optimizer(std::initializer_list<V> variables, const options_type& options = {})
      : rule_optimizer(no_parameters{}, options) {
    add(variables);
  }
  template <class Source, class Problem = typename detail::source_mistake<Source>::problem,
            class Fix = typename detail::source_mistake<Source>::fix>
  explicit rule_optimizer(const Source&, const options_type& = {}) = delete;
  template <class Source, class Number, class Problem = number_in_place_of_options,
            class Fix = name_the_setting_in_braces_such_as_dot_lr>
    requires(std::is_arithmetic_v<Number>)
  rule_optimizer(const Source&, Number) = delete;
  // The state of an update belongs to one optimizer: two that step the same parameters would each count their own.
  rule_optimizer(const rule_optimizer&) = delete;
  template <class Problem = copy_of_an_optimizer_which_would_count_steps_of_its_own,
            class Fix = take_a_reference_or_std_move_it>
  rule_optimizer(rule_optimizer&) = delete;
  rule_optimizer(rule_optimizer&&) noexcept;
  rule_optimizer& operator=(const rule_optimizer&) = delete;
  rule_optimizer& operator=(rule_optimizer&&) noexcept;
  ~rule_optimizer();

  /// More parameters of the first group, of any rank and on any device. One that is there already, such as a tied
  /// weight, counts once. Errors: those of the constructor; nothing is then changed.
  template <class Source>
    requires(detail::is_fitting<detail::source_mistake<Source>>)
  void add(const Source& source) {
    const std::size_t before = items_.size();
    try {
      add_to(source, 0);
    } catch (...) {
      drop_items(before);
      throw;
    }
  }

  /// A group of parameters with settings of their own: those of the optimizer, as change(options&) leaves them.
  /// Parameters that the optimizer has already move there, with what it keeps for them; others are added. Errors:
  /// value_error for a setting that makes no sense and for a source without tracked parameters; nothing is then
  /// changed.
  ///
  ///     optimizer.add_param_group(model.head, [](auto& o) { o.lr = 1e-2; });
  template <class Source, std::invocable<options_type&> F>
    requires(detail::is_fitting<detail::source_mistake<Source>>)
  void add_param_group(const Source& source, const F& change) {
    options_type options = options_.first();
    change(options);
    begin_group(options);
    const std::size_t before = items_.size();
    try {
      add_to(source, groups() - 1);
    } catch (...) {
      drop_items(before);
      options_.drop_last();
      drop_group();
      throw;
    }
    end_group();
  }
  template <class Source, class Problem = typename detail::source_mistake<Source>::problem,
            class Fix = typename detail::source_mistake<Source>::fix, std::invocable<options_type&> F>
  void add_param_group(const Source&, const F&) = delete;
  template <class Source, class Problem = settings_of_a_group_that_would_reset_those_it_does_not_name,
            class Fix = give_a_function_that_changes_those_of_the_optimizer_such_as_auto_ref_o>
  void add_param_group(const Source&, const options_type&) = delete;

  /// Updates every parameter that has a gradient, on a GPU all of one element type in few kernels; gradients count
  /// gradient_scale times, multiplied in the precision of the update.
  void step(double gradient_scale = 1);
  /// The same for the parameters with those numbers for which of_these(number) is true. Others keep no state.
  template <class F>
  void step_those(const F& of_these, double gradient_scale = 1) {
    const auto each = [this, &of_these](const auto& f) {
      for (std::size_t i = 0; i < items_.size(); ++i)
        if (of_these(i)) f(*items_[i]);
    };
    try {
      each([this](item& i) { i.reserve(options(i.group)); });  // what may fail, before anything has changed
    } catch (...) {
      each([](item& i) { i.reserved(false); });
      throw;
    }
    each([](item& i) { i.reserved(true); });
    const sinter::detail::logged_work work("update", {"parameters"}, nullptr, 0);
    in_few_kernels([&] { each([this](item& i) { i.count(options(i.group), lr(i.group)); }); });
    in_few_kernels(
        [&] { each([this, gradient_scale](item& i) { i.step(options(i.group), lr(i.group), gradient_scale); }); });
    sinter::detail::undo_scope::keep_all();  // what comes later must not undo a part of the step
  }

  void zero_grad() const;
  template <std::same_as<bool> Flag, class Problem = sinter::flag_that_is_not_named, class Fix = leave_it_out>
  void zero_grad(Flag) const = delete;

  /// Multiplies all gradients by a factor; whether all of them are finite.
  bool scale_gradients(double factor);

  /// Those given to the constructor, and those of another group. Errors: index_error.
  const options_type& options() const { return options_.first(); }
  const options_type& options(std::size_t group) const { return options_[group]; }
  /// Number of parameters.
  std::size_t size() const { return items_.size(); }
  /// The group of a parameter.
  std::size_t group_of(std::size_t parameter) const { return items_[parameter]->group; }
  /// Whether all parameters of a source are there.
  template <class Source>
  bool has(const Source& source) const {
    bool all = true;
    detail::visit_variables(
        source, [this, &all](const std::string&, const auto& v) { all = find(detail::identity(v)) != nullptr && all; });
    return all;
  }

  // For checkpoints.
  static constexpr bool can_be_saved = detail::has_saved_state<Rule, float, cpu>;
  /// What it keeps from step to step for each parameter.
  std::vector<detail::saved_member> saved_members() const;
  /// Its value on the host; nothing before the first step.
  std::optional<host_tensor> saved_value(const detail::saved_member& m) const { return m.actions->read(m.object); }
  /// Whether it is updated, and so put back, here.
  bool keeps(const detail::saved_member&) const { return true; }
  /// Name, shape and order in memory of a parameter.
  const std::string& label(std::size_t parameter) const { return items_[parameter]->label; }

 private:
  struct item {
    virtual ~item() = default;
    virtual void reserve(const options_type& options) = 0;
    /// All have reserved, or one has failed: then the state is as before.
    virtual void reserved(bool well) = 0;
    virtual void count(const options_type& options, double lr) = 0;
    virtual void step(const options_type& options, double lr, double gradient_scale) = 0;
    virtual void zero_grad() const = 0;
    virtual void scale_gradient(double factor) = 0;
    virtual bool finite() const = 0;  ///< the gradient that was scaled last
    virtual void list_saved(std::size_t number, std::vector<detail::saved_member>& to) = 0;
    std::string label;
    const void* identity = nullptr;
    std::size_t group = 0;
    bool moves = false;  ///< to the group that is being added
  };
  template <class T, device D>
  struct typed_item final : item {
    using state_type = typename Rule::template state<T, D>;
    typed_item(const detail::flat_parameter<T, D>& p, std::string name) : parameter(p) {
      this->label = std::move(name);
    }
    void reserve(const options_type& options) override {
      if (!parameter.has_grad()) return;
      if constexpr (std::is_copy_assignable_v<state_type>) {
        if (!has_state) before.emplace(state);  // handles
      }
      state.reserve(parameter.numel(), options);
      const auto* const rows = parameter.row_grad();
      if constexpr (detail::steps_rows<Rule>)
        if (rows != nullptr) state.reserve_rows(*rows);
      if constexpr (requires { state.reserve_for(parameter); })
        if (rows == nullptr) state.reserve_for(parameter);
    }
    void reserved(bool well) override {
      if constexpr (std::is_copy_assignable_v<state_type>) {
        if (!before) return;
        if (well) has_state = true;
        else state = *before;
        before.reset();
      }
    }
    void count(const options_type& options, double lr) override {
      if constexpr (requires { state.count(options, lr); }) {
        if (parameter.has_grad()) state.count(options, lr);
      }
    }
    void step(const options_type& options, double lr, double gradient_scale) override {
      if (!parameter.has_grad()) return;
      const auto* const rows = parameter.row_grad();
      if constexpr (detail::steps_rows<Rule>)
        if (rows != nullptr) state.update_rows(parameter, *rows, options, lr, gradient_scale);
      if (rows == nullptr) state.update(parameter, options, lr, gradient_scale);
      parameter.changed();
    }
    void zero_grad() const override { parameter.zero_grad(); }
    void scale_gradient(double factor) override { scaled.scale(parameter, factor); }
    bool finite() const override { return scaled.finite(); }
    void list_saved(std::size_t number, std::vector<detail::saved_member>& to) override {
      if constexpr (can_be_saved)
        state.each_saved([&]<class X>(const char* name, X& x) {
          to.push_back(
              {std::to_string(number) + '.' + name, &x, &detail::saved_type<X>::actions, parameter.numel(), number});
        });
    }

    detail::flat_parameter<T, D> parameter;
    state_type state;
    std::optional<state_type> before;  ///< while all reserve for the first time
    bool has_state = false;
    detail::scaled_gradient<T, D> scaled;
  };

  struct no_parameters {};
  rule_optimizer(no_parameters, const options_type& options);

  template <class Source>
  void add_to(const Source& source, std::size_t group) {
    bool any = false;
    detail::visit_variables(source, [this, group, &any](const std::string& name, const auto& v) {
      using V = detail::bare<decltype(v)>;
      any = true;
      const detail::flat_parameter<element_of<V>, device_of<V>> one(name, v);
      this->add_item(one, detail::parameter_label(name, v.shape().data(), v.value().strides().data(), V::rank),
                     detail::identity(v), group);
    });
    if (!any) detail::refuse_no_parameters(detail::is_selection<detail::bare<Source>>);
  }

  /// Unless it is there already; `identity` tells. Then it moves if the group is not the first.
  template <class T, device D>
  void add_item(const detail::flat_parameter<T, D>& parameter, std::string name, const void* identity,
                std::size_t group);
  item* find(const void* identity) const;
  void begin_group(const options_type& options);
  void end_group();
  void drop_items(std::size_t before);

  template <class F>
  static void in_few_kernels(const F& passes) {
    sinter::detail::independent_passes gathered;
    passes();
    gathered.run();
  }

  detail::of_groups<options_type> options_;
  std::vector<sinter::detail::owned_ptr<item>> items_;
  sinter::detail::addresses seen_;
};

// The members of common optimizers are in sinter::compiled; those that stand in the class a file would compile, too.

template <class Rule>
rule_optimizer<Rule>::rule_optimizer(no_parameters, const options_type& options)
    : optimizer(options.lr), options_(options) {
  Rule::validate(options);
}
template <class Rule>
rule_optimizer<Rule>::rule_optimizer(rule_optimizer&&) noexcept = default;
template <class Rule>
rule_optimizer<Rule>& rule_optimizer<Rule>::operator=(rule_optimizer&&) noexcept = default;
template <class Rule>
rule_optimizer<Rule>::~rule_optimizer() = default;

template <class Rule>
template <class T, device D>
void rule_optimizer<Rule>::add_item(const detail::flat_parameter<T, D>& parameter, std::string name,
                                    const void* identity, std::size_t group) {
  if (parameter.is_row_sparse()) {
    if constexpr (detail::steps_rows<Rule>) Rule::validate_rows(options(group));
    else detail::refuse_rows(name);
  }
  if constexpr (requires { Rule::validate_matrix(parameter.matrix(), name); })
    Rule::validate_matrix(parameter.matrix(), name);
  auto one = sinter::detail::make_owned<typed_item<T, D>>(parameter, std::move(name));
  one->identity = identity;
  one->group = group;
  if (seen_.add(identity)) items_.push_back(std::move(one));
  else if (group != 0) find(identity)->moves = true;
}

template <class Rule>
typename rule_optimizer<Rule>::item* rule_optimizer<Rule>::find(const void* identity) const {
  for (const auto& i : items_)
    if (i->identity == identity) return i.get();
  return nullptr;
}

template <class Rule>
void rule_optimizer<Rule>::begin_group(const options_type& options) {
  Rule::validate(options);
  detail::check_setting("optimizer", "the learning rate", options.lr);
  options_.reserve();
  add_group(options.lr);
  options_.add(options);
}

template <class Rule>
void rule_optimizer<Rule>::end_group() {
  for (const auto& i : items_)
    if (std::exchange(i->moves, false)) i->group = groups() - 1;
}

/// Of the items, the first `before` stay, where they are.
template <class Rule>
void rule_optimizer<Rule>::drop_items(std::size_t before) {
  items_.resize(before);
  seen_.clear();
  for (const auto& i : items_) {
    i->moves = false;
    seen_.add(i->identity);
  }
}

template <class Rule>
void rule_optimizer<Rule>::step(double gradient_scale) {
  step_those([](std::size_t) { return true; }, gradient_scale);
}

template <class Rule>
void rule_optimizer<Rule>::zero_grad() const {
  for (const auto& i : items_) i->zero_grad();
}

template <class Rule>
bool rule_optimizer<Rule>::scale_gradients(double factor) {
  for (const auto& i : items_) i->scale_gradient(factor);
  bool finite = true;
  for (const auto& i : items_) finite = i->finite() && finite;
  return finite;
}

template <class Rule>
std::vector<detail::saved_member> rule_optimizer<Rule>::saved_members() const {
  return detail::list_saved(items_);
}

}  // namespace sinter::optim
