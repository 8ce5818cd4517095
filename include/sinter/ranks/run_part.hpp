// sinter/ranks/run_part.hpp: what a run_checkpoint saves of each kind of object, and how it is put back.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sinter/data/loader.hpp"
#include "sinter/io/run_file.hpp"
#include "sinter/nn/state.hpp"
#include "sinter/optim/mixed_precision.hpp"
#include "sinter/optim/schedule.hpp"

namespace sinter::detail {

/// What is left to do to an object when nothing can fail any more. Schedules set a rate, which an optimizer of the same
/// file then replaces by its own.
struct run_commit {
  int turn;
  std::function<void()> write;
};

/// One number for each group of parameters: "lr", "lr.1" and so on.
template <class F>
void put_rates(run_part& to, const std::string& key, std::size_t groups, const F& rate) {
  to.put(key, rate(std::size_t{0}));
  for (std::size_t i = 1; i < groups; ++i) to.put(joined({key, ".", i}), rate(i));
}
/// Errors: value_error for another number of groups, or a senseless rate.
SINTER_COLD inline std::vector<double> rates_at(const run_part& from, const std::string& key, std::size_t groups) {
  std::vector<double> rates{from.number<double>(key)};
  while (from.has(joined({key, ".", rates.size()})))
    rates.push_back(from.number<double>(joined({key, ".", rates.size()})));
  if (rates.size() != groups)
    from.misfit({"has ", rates.size(), " groups of parameters, and the object ", groups,
                 "; call add_param_group as before the save"});
  return rates;
}

/// kind; save(object, part); plan(object, part), which checks that the part fits the object, and changes nothing.
/// Errors of plan: value_error for a part that does not fit, io_error for one that lacks something.
template <class X>
struct run_part_of {};

template <class X>
concept saved_object = requires { run_part_of<X>::kind; };

/// Seed and offset are all there is of a generator.
inline void put_generator(run_part& to, const std::string& key, const generator& g) {
  to.put(key + "seed", g.seed());
  to.put(key + "offset", g.offset());
}
inline generator generator_at(const run_part& from, const std::string& key) {
  return generator(from.number<std::uint64_t>(key + "seed"), from.number<std::uint64_t>(key + "offset"));
}

/// Parameters, buffers, and the generators among the settings.
template <nn::is_module M>
struct run_part_of<M> {
  static constexpr const char* kind = "module";

  static void save(const M& model, run_part& to) {
    to.tensors = nn::state(model);
    index_t count = 0;
    nn::detail::for_each_generator(model, [&](const nn::detail::member_name& name, const generator& g) {
      const std::string key = joined({"generator.", count++, '.'});
      to.put(key + "name", name.text());
      put_generator(to, key, g);
    });
    to.put("generators", count);
  }

  static run_commit plan(M& model, const run_part& from) {
    struct work {
      std::vector<nn::detail::stored_member> members;
      std::vector<named_tensor> entries;
      std::vector<nn::detail::assignment> assignments;
      std::vector<std::pair<generator*, generator>> generators;
    };
    const auto w = std::make_shared<work>();
    w->members = nn::detail::stored_members(model);
    w->entries = from.tensors;
    w->assignments = nn::detail::plan_assignments(from.place(), w->members, w->entries, {});
    const auto count = from.number<index_t>("generators");
    index_t met = 0;
    nn::detail::for_each_generator(model, [&](const nn::detail::member_name& name, generator& g) {
      const std::string key = joined({"generator.", met++, '.'});
      if (met > count) return;
      if (const std::string& saved = from.text(key + "name"); saved != name.text())
        from.misfit({"generator ", met, " is ", quoted_name(saved), " in the file and ", quoted_name(name.text()),
                     " in the model"});
      w->generators.emplace_back(&g, generator_at(from, key));
    });
    if (met != count) from.misfit({"has ", count, " generators, but the model has ", met});
    return {1, [w] {
              nn::detail::write(w->assignments);
              for (const auto& [to, value] : w->generators) *to = value;
            }};
  }
};

/// The learning rate of each group and what the rule keeps for each parameter, in the order of the parameters.
/// Optimizer is a rule_optimizer, or sharded.
template <class Optimizer>
struct optimizer_part {
  static constexpr const char* kind = "optimizer";

  static void save(const Optimizer& o, run_part& to) {
    put_rates(to, "lr", o.groups(), [&o](std::size_t group) { return o.lr(group); });
    to.put("parameters", o.size());
    for (std::size_t i = 0; i < o.size(); ++i) {
      to.put(joined({"parameter.", i}), o.label(i));
      if (o.group_of(i) != 0) to.put(joined({"group.", i}), o.group_of(i));
    }
    const auto members = o.saved_members();
    to.put("keeps", kept_names(members));
    for (const auto& m : members)
      if (auto value = o.saved_value(m)) to.tensors.emplace_back(m.name, std::move(*value));
  }

  static run_commit plan(Optimizer& o, const run_part& from) {
    const std::vector<double> rates = rates_at(from, "lr", o.groups());
    for (const double lr : rates) optim::detail::check_setting(from.place().c_str(), "the learning rate", lr);
    const auto members = o.saved_members();
    if (const std::string& saved = from.text("keeps"); saved != kept_names(members))
      from.misfit({"keeps ", quoted_name(saved), " for each parameter, and the optimizer ",
                   quoted_name(kept_names(members)), "; use the optimizer that was saved"});
    if (const auto n = from.number<std::size_t>("parameters"); n != o.size())
      from.misfit({"has ", n, " parameters, and the optimizer ", o.size()});
    for (std::size_t i = 0; i < o.size(); ++i) {
      if (const std::string& saved = from.text(joined({"parameter.", i})); saved != o.label(i))
        from.misfit({"parameter ", i, " is ", quoted_name(saved), " in the file and ", quoted_name(o.label(i)),
                     " in the optimizer"});
      const std::string key = joined({"group.", i});
      if (const std::size_t saved = from.has(key) ? from.number<std::size_t>(key) : 0; saved != o.group_of(i))
        from.misfit({"parameter ", i, " is in group ", saved, " in the file and ", o.group_of(i), " in the optimizer"});
    }
    const auto staged = std::make_shared<optim::detail::staged_state>(optim::detail::staged(
        from.place(), members, from.tensors, [&o](const optim::detail::saved_member& m) { return o.keeps(m); }));
    return {1, [&o, rates, staged] {
              staged->write();
              for (std::size_t group = 0; group < rates.size(); ++group) o.set_lr(rates[group], group);
              if constexpr (requires { o.forget_gathered(); }) o.forget_gathered();
            }};
  }

 private:
  /// The names in the rule, those of parameter 0.
  static std::string kept_names(const std::vector<optim::detail::saved_member>& members) {
    std::string all;
    for (const auto& m : members)
      if (m.name.starts_with("0.")) all += (all.empty() ? "" : " ") + m.name.substr(2);
    return all;
  }
};

template <class Rule>
struct run_part_of<optim::rule_optimizer<Rule>> : optimizer_part<optim::rule_optimizer<Rule>> {};

template <class S>
struct run_part_of<optim::lr_scheduler<S>> {
  using scheduler = optim::lr_scheduler<S>;
  static constexpr const char* kind = "lr_scheduler";

  static void save(const scheduler& s, run_part& to) {
    put_rates(to, "base_lr", s.groups(), [&s](std::size_t group) { return s.base_lr(group); });
    to.put("epoch", s.epoch());
  }
  static run_commit plan(scheduler& s, const run_part& from) {
    const std::vector<double> base = rates_at(from, "base_lr", s.groups());
    const auto epoch = from.number<index_t>("epoch");
    for (const double one : base)
      optim::detail::check_setting(from.place().c_str(), "the learning rate", s.rate(one, epoch));
    return {0, [&s, base, epoch] { s.restore(base, epoch); }};
  }
};

template <>
struct run_part_of<optim::grad_scaler> {
  static constexpr const char* kind = "grad_scaler";

  static void save(const optim::grad_scaler& s, run_part& to) {
    const auto state = s.state();
    to.put("scale", state.scale);
    to.put("good_updates", state.good_updates);
  }
  static run_commit plan(optim::grad_scaler& s, const run_part& from) {
    const optim::grad_scaler::state_type state{from.number<double>("scale"), from.number<index_t>("good_updates")};
    try {
      s.check_state(state);
    } catch (const value_error& e) {
      from.misfit({e.what()});
    }
    return {1, [&s, state] { s.set_state(state); }};
  }
};

/// Its optimizer with the masters, and its scaler.
template <class Optimizer>
struct run_part_of<optim::mixed_precision<Optimizer>> {
  using policy = optim::mixed_precision<Optimizer>;
  using scaler_part = run_part_of<optim::grad_scaler>;
  static constexpr const char* kind = "mixed_precision";

  static void save(const policy& p, run_part& to) {
    optimizer_part<policy>::save(p, to);
    scaler_part::save(p.scaler(), to);
  }
  static run_commit plan(policy& p, const run_part& from) {
    const run_commit optimizer = optimizer_part<policy>::plan(p, from), scaler = scaler_part::plan(p.scaler(), from);
    return {1, [optimizer, scaler] {
              optimizer.write();
              scaler.write();
            }};
  }
};

template <>
struct run_part_of<generator> {
  static constexpr const char* kind = "generator";

  static void save(const generator& g, run_part& to) { put_generator(to, "", g); }
  static run_commit plan(generator& g, const run_part& from) {
    return {1, [&g, saved = generator_at(from, "")] { g = saved; }};
  }
};

/// The position in samples of all ranks, and what fixes their order.
template <class Set>
struct run_part_of<data_loader<Set>> {
  static constexpr const char* kind = "data_loader";

  static void save(const data_loader<Set>& loader, run_part& to) {
    const loader_position at = loader.position();
    to.put("epoch", at.epoch);
    to.put("samples", at.samples);
    to.put("size", index_t{loader.dataset().size()});
    to.put("seed", loader.options().seed);
    to.put("shuffle", loader.options().shuffle ? 1 : 0);
  }
  static run_commit plan(data_loader<Set>& loader, const run_part& from) {
    const loader_position at{from.number<index_t>("epoch"), from.number<index_t>("samples")};
    const auto same = [&](const char* what, std::uint64_t saved, std::uint64_t here) {
      if (saved != here)
        from.misfit({"has ", what, " ", saved, ", and the loader ", here, ", so its samples come in another order"});
    };
    same("a dataset of size", from.number<std::uint64_t>("size"), static_cast<std::uint64_t>(loader.dataset().size()));
    same("shuffle", from.number<std::uint64_t>("shuffle"), loader.options().shuffle ? 1 : 0);
    if (loader.options().shuffle) same("the seed", from.number<std::uint64_t>("seed"), loader.options().seed);
    if (at.epoch < 0 || at.samples < 0 || at.samples > loader.dataset().size())
      from.misfit({"has a position behind ", at.samples, " samples of epoch ", at.epoch});
    return {1, [&loader, at] { loader.set_position(at); }};
  }
};

/// A number of the program, such as the best accuracy.
template <element X>
struct run_part_of<X> {
  static constexpr const char* kind = "number";

  static void save(const X& x, run_part& to) { to.tensors.emplace_back("value", full<X>(extents<0>{}, x)); }
  static run_commit plan(X& x, const run_part& from) {
    if (from.tensors.size() != 1) from.misfit({"has ", from.tensors.size(), " values, not 1"});
    try {
      const X saved = optim::detail::saved_values<X>(from.tensors[0].value, -1)(0);
      return {1, [&x, saved] { x = saved; }};
    } catch (const value_error& e) {
      from.misfit({e.what()});
    }
  }
};

}  // namespace sinter::detail
