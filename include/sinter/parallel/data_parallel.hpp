// sinter/parallel/data_parallel.hpp: a module whose batch is cut over devices, each with a replica.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/parallel/replica_set.hpp"
#include "sinter/parallel/shards.hpp"

namespace sinter {

// Names in messages.
template <class>
struct module_that_cannot_be_replicated;
template <class...>
struct replicas_without_devices;
struct name_the_devices_in_angle_brackets;
template <class...>
struct shards_of_other_devices_than_the_replicas;
struct list_the_devices_of_the_replicas;
template <class>
struct backward_of_a_batch_that_is_no_tensor;
struct pass_a_tensor_or_shards_and_of_a_variable_its_dot_value;

namespace nn {

namespace detail {

template <class M, class X>
using result_of = sinter::detail::evaluated<decltype(std::declval<const M&>()(std::declval<const X&>()))>;
/// What one replica is fed with and gives, from forward until its graph is released.
template <class X, class Y>
struct replica_run {
  using input = X;
  std::optional<X> x;
  std::optional<Y> y;
};

/// A call of all replicas with an X.
template <class M, class X, class... D>
struct replica_runs {
  using input = X;
  using output = moved_type<result_of<M, X>, device_of<M>>;
  parts<replica_run<moved_type<X, D>, result_of<twin_on<M, D>, moved_type<X, D>>>...> each;
  sample_range cut[sizeof...(D)];
};

/// The tape entry of a call: the graphs of the replicas, which it walks at the same time.
template <class Set, class Runs>
struct replicated_backward final : sinter::detail::tape_entry {
  using X = typename Runs::input;
  using Y = typename Runs::output;
  template <class V>
  using state_of = sinter::detail::typed_state<element_of<V>, rank_of<V>, device_of<V>>;

  replicated_backward(std::shared_ptr<Set> set, std::shared_ptr<Runs> runs, state_ptr x)
      : set_(std::move(set)), runs_(std::move(runs)), inputs_(set_->states()) {
    name = "data_parallel";
    inputs_.push_back(std::move(x));
  }
  const state_ptr* inputs(int& count) const override {
    count = static_cast<int>(inputs_.size());
    return inputs_.data();
  }
  void release() override { runs_.reset(); }

  void backward(sinter::detail::grad_state& y) override {
    const auto& dy = static_cast<state_of<Y>&>(y).grad;
    const bool retain = sinter::detail::graph_is_retained();
    const auto turn = set_->take_turn();
    set_->gather_gradients([&] {
      set_->run("backward of data_parallel", runs_->cut, [&](auto part) {
        const auto& run = runs_->each.template at<part()>();
        if (!access::state_of(*run.y)) return;
        using D = device_of<decltype(*run.y)>;
        const sample_range cut = runs_->cut[part()];
        run.y->backward(dy.slice(0, cut.begin, cut.end).template to<D>(), {.retain_graph = retain});
      });
    });
    if constexpr (is_variable<X>)
      if (inputs_.back()) gather_input();
  }

 private:
  void gather_input() {
    auto& to = static_cast<state_of<X>&>(*inputs_.back());
    bool add = false;
    to.gradient(add);
    sinter::detail::each_part<Set::count>([&](auto part) {
      const auto& run = runs_->each.template at<part()>();
      const sample_range cut = runs_->cut[part()];
      if (cut.size() == 0) return;
      const auto place = to.grad.slice(0, cut.begin, cut.end);
      if (run.x->has_grad()) {
        sinter::detail::write_or_add(run.x->grad().template to<device_of<X>>(), place, add);
        run.x->zero_grad();
      } else if (!add) {
        place.in_place() = element_of<X>(0);
      }
    });
  }

  std::shared_ptr<Set> set_;
  std::shared_ptr<Runs> runs_;
  std::vector<state_ptr> inputs_;
};

template <class M, class... D>
constexpr auto find_replication_mistake() {
  using sinter::detail::mistake;
  if constexpr (!is_module<M>) return sinter::detail::not_operands{};
  else if constexpr (sizeof...(D) == 0)
    return mistake<replicas_without_devices<M>, name_the_devices_in_angle_brackets>{};
  else if constexpr (!sinter::detail::all_different<D...>)
    return mistake<a_device_is_listed_twice_in<D...>, name_each_device_once>{};
  else if constexpr (!(has_twin_on<M, D> && ...) || !on_one_device<M>)
    return mistake<module_that_cannot_be_replicated<M>, declare_it_template_device_D_class_Kind_or_give_it_a_rebind>{};
  else return sinter::detail::fitting<void>{};
}
template <class M, class... D>
using replication_mistake = decltype(find_replication_mistake<bare<M>, D...>());

template <class X>
inline constexpr bool is_shards = false;
template <class X, class... D>
inline constexpr bool is_shards<shards<X, D...>> = true;

/// What is wrong with an X as batch, or as targets, of backward() with a module on H.
template <bool Targets, class X, class H, class... D>
struct batch_mistake {
  static constexpr auto find() {
    using sinter::detail::mistake;
    if constexpr (!sinter::detail::is_tensor<X>)
      return mistake<backward_of_a_batch_that_is_no_tensor<X>,
                     pass_a_tensor_or_shards_and_of_a_variable_its_dot_value>{};
    else if constexpr (std::is_same_v<device_of<X>, H>) return sinter::detail::fitting<void>{};
    else if constexpr (Targets)
      return mistake<operands_on_different_devices<H, device_of<X>>, copy_one_operand_with_dot_to>{};
    else return mistake<module_fed_from_another_device<device_of<X>, H>, copy_the_input_with_dot_to>{};
  }
};
template <bool Targets, class X, class... Of, class H, class... D>
struct batch_mistake<Targets, shards<X, Of...>, H, D...> {
  static constexpr auto find() {
    if constexpr (std::is_same_v<shards<X, Of...>, shards<X, D...>>) return sinter::detail::fitting<void>{};
    else
      return sinter::detail::mistake<shards_of_other_devices_than_the_replicas<shards<X, Of...>, D...>,
                                     list_the_devices_of_the_replicas>{};
  }
};
template <class X, class Y, class H, class... D>
constexpr auto find_backward_mistake() {
  constexpr auto of_batch = batch_mistake<false, X, H, D...>::find();
  if constexpr (!sinter::detail::is_fitting<bare<decltype(of_batch)>>) return of_batch;
  else return batch_mistake<true, Y, H, D...>::find();
}
template <class X, class Y, class H, class... D>
using backward_mistake = decltype(find_backward_mistake<X, Y, H, D...>());

}  // namespace detail

/// What data_parallel() returns: a module that takes and gives what its M does. See there.
template <is_module M, device... D>
struct data_parallel_over : module<data_parallel_over<M, D...>> {
  using device_type = device_of<M>;
  using kind = typename M::kind;
  static constexpr bool runs_copies = true;  ///< of its members, in their stead
  template <class To, class K>
  using rebind = data_parallel_over<typename detail::rebound<M, To, K>::type, D...>;

  data_parallel_over() = default;
  explicit data_parallel_over(M m) : module(std::move(m)) {}

  M module;
  nn::mode mode;

  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    f("module", s.module...);
    f("mode", s.mode...);
  }

  /// module(x), each replica with its samples. Errors: those of module, with the name of the device; shape_error where
  /// module does not give one result for each sample.
  template <class E>
  auto forward(const E& input) const {
    using X = sinter::detail::evaluated<E>;
    using Runs = detail::replica_runs<M, X, D...>;
    using Y = typename Runs::output;
    static_assert(rank_of<X> >= 1 && rank_of<Y> >= 1,
                  "sinter: data_parallel cuts its input and joins its results along axis 0, which a number lacks");
    const X x = sinter::detail::eval_to_read(input);
    const std::shared_ptr<set> shared = replicas_.of(module);
    set& replicas = *shared;
    const auto turn = replicas.take_turn();
    replicas.refresh(module, mode.training);
    const auto runs = std::make_shared<Runs>();
    const index_t n = x.extent(0);
    cut(runs->cut, n);
    if (!replicas.output_is_known && set::is_even(runs->cut)) try_output<Runs>(replicas, x, runs->cut[0].size());
    replicas.run("data_parallel", runs->cut, [&](auto part) {
      auto& to = runs->each.template at<part()>();
      const detail::sample_range own = runs->cut[part()];
      to.x.emplace(part_of<typename std::remove_cvref_t<decltype(to)>::input>(x, own));
      to.y.emplace(eval(replicas.template replica<part()>()(*to.x)));
      check_results(to.y->extent(0), own.size());
    });
    if (runs->cut[set::count > 1 ? 1 : 0].size() > 0) replicas.output_is_known = true;
    if (mode.training) replicas.merge(module, runs->cut, n);
    const auto value = joined<Y>(*runs, n);
    if constexpr (detail::is_variable<Y>) {
      if (!sinter::detail::recording()) return sinter::detail::unrecorded<1>(value);
      sinter::detail::state_ptr of_x;
      if constexpr (detail::is_variable<X>) of_x = sinter::detail::access::state_of(x);
      return sinter::detail::produced<1>(
          value, sinter::detail::make_owned<detail::replicated_backward<set, Runs>>(shared, runs, of_x));
    } else {
      return value;
    }
  }

  /// Forward and backward of a mean loss without joining the results in between: loss(module(x), y) of each replica's
  /// samples, its gradient weighed by n_i / N. Adds to the gradients of the parameters and returns the loss of all
  /// samples. x and y are tensors on the module's device, or shards on the replicas'. Errors: as forward; value_error
  /// for no samples, or different numbers of them in x and y.
  ///
  ///     double loss = model.backward(x, y, [](const auto& scores, const auto& labels) {
  ///       return cross_entropy(scores, labels);
  ///     });
  template <class X, class Y, class Loss>
    requires(std::is_same_v<kind, tracked> &&
             sinter::detail::is_fitting<detail::backward_mistake<X, Y, device_type, D...>>)
  double backward(const X& x, const Y& y, const Loss& loss) const {
    const index_t n = samples_in(x);
    if (n == 0) throw value_error("data_parallel: backward of an empty batch, which has no mean loss");
    if (n != samples_in(y))
      sinter::detail::refuse<value_error>(
          {"data_parallel: ", n, " samples and ", samples_in(y), " targets; there must be one for each sample"});
    detail::sample_range own[sizeof...(D)];
    cut(own, n);
    double total[sizeof...(D)] = {};
    const std::shared_ptr<set> shared = replicas_.of(module);
    set& replicas = *shared;
    const auto turn = replicas.take_turn();
    replicas.refresh(module, mode.training);
    sinter::detail::undo_scope changes;
    const std::vector<detail::state_ptr> states = replicas.states();
    try {
      replicas.gather_gradients([&] {
        replicas.run("data_parallel", own, [&](auto part) {
          auto& replica = replicas.template replica<part()>();
          if (own[part()].size() == 0) return;
          const variable of_part = loss(replica(shard_at<part()>(x, own[part()])), shard_at<part()>(y, own[part()]));
          using V = std::remove_cvref_t<decltype(of_part)>;
          const double weight = set::share_of(own[part()], n);
          const typename V::tensor_type seed = full<element_of<V>, device_of<V>>(of_part.shape(), weight);
          total[part()] = weight * static_cast<double>(of_part.item());
          of_part.backward(seed);
        });
      });
      if (mode.training) replicas.merge(module, own, n);
      for (const auto& state : states)
        if (state->has_grad) sinter::detail::note_before_keeping(*state);
    } catch (...) {
      for (const auto& state : states) state->drop_gradient();
      throw;
    }
    for (const auto& state : states) {
      if (!state->has_grad) continue;
      state->add_to_kept();
      state->keep_gradient();
    }
    changes.keep();
    double sum = 0;
    for (const double t : total) sum += t;
    return sum;
  }
  template <class X, class Y, class Loss,
            class Problem = typename detail::backward_mistake<X, Y, device_type, D...>::problem,
            class Fix = typename detail::backward_mistake<X, Y, device_type, D...>::fix>
  void backward(const X&, const Y&, const Loss&) const = delete;

 private:
  using set = detail::replica_set<M, D...>;

  static void cut(detail::sample_range (&to)[sizeof...(D)], index_t n) {
    for (int i = 0; i < set::count; ++i) to[i] = sinter::detail::samples_of_part(n, set::count, i);
  }
  static void check_results(index_t results, index_t samples) {
    if (results != samples)
      sinter::detail::refuse<shape_error>(
          {"the module gave ", results, " results for ", samples, " samples; it must give one for each, along axis 0"});
  }
  /// A module that does not give a result for each sample, such as mean(fc(x), 0), may give as many as there are by
  /// chance. So a copy of a replica runs a few samples, another number than all replicas get.
  template <class Runs, class X>
  static void try_output(set& replicas, const X& x, index_t samples) {
    const index_t others = samples == 2 ? 3 : 2;
    index_t results = others;
    try {
      const no_grad guard;
      sinter::detail::draw_log log;
      const sinter::detail::draw_source draws(log, sinter::detail::draw_source::role::writes, nullptr);
      auto copy = detail::replica_of<sinter::detail::type_of_part<0, D...>>(replicas.template replica<0>());
      copy.eval();
      using input = typename std::remove_cvref_t<decltype(Runs().each.template at<0>())>::input;
      results = eval(copy(part_of<input>(x, {0, others, true}))).extent(0);
    } catch (...) {  // it does not take so few; what is wrong with all of them the call tells
    }
    try {
      check_results(results, others);
    } catch (const shape_error& e) {
      throw shape_error(std::string("data_parallel: ") + e.what());
    }
  }
  template <class X>
  static index_t samples_in(const X& x) {
    if constexpr (detail::is_shards<X>) return x.size();
    else return x.extent(0);
  }
  template <std::size_t P, class X>
  static auto shard_at(const X& x, const detail::sample_range& own) {
    if constexpr (detail::is_shards<X>) {
      return x.template at<P>();
    } else {
      return x.slice(0, own.begin, own.end).template to<sinter::detail::type_of_part<P, D...>>();
    }
  }
  /// The samples of one part on its device: a leaf where x is tracked.
  template <class XP, class X>
  static XP part_of(const X& x, const detail::sample_range& own) {
    const auto value = detail::stored_value(x).slice(0, own.begin, own.end).template to<device_of<XP>>();
    if constexpr (detail::is_variable<X>)
      if (!sinter::detail::access::state_of(x)) return sinter::detail::unrecorded<1>(value);
    return XP(value);
  }
  template <class Y, class Runs>
  static auto joined(Runs& runs, index_t n) {
    constexpr int R = rank_of<Y>;
    const auto first = detail::stored_value(*runs.each.template at<0>().y);
    extents<R> shape = first.shape();
    shape[0] = n;
    const auto strides = sinter::detail::dense_strides_like(shape, first.strides());
    const auto all = tensor<element_of<Y>, R, device_type>::uninitialized(shape, strides);
    sinter::detail::each_part<set::count>([&](auto part) {
      const detail::sample_range own = runs.cut[part()];
      if (own.size() == 0) return;
      const auto value = detail::stored_value(*runs.each.template at<part()>().y);
      all.slice(0, own.begin, own.end).in_place() = value.template to<device_type>();
    });
    return all;
  }

  detail::replica_place<set> replicas_;
};

/// The module over devices D: its batch is cut along axis 0 into N / G samples for each of G devices, and one more for
/// the first N % G, replicas run at the same time, and their results are joined on the module's device. Backward walks
/// the replicas' graphs at the same time and adds their gradients to those of the module's parameters, in the order of
/// the devices. So it stands between other modules, and any optimizer of the module trains it.
///
/// Replicas persist; a parameter is copied to them after it was written to. On the module's own device they share its
/// memory. Values and gradients are those of one device to rounding: draws such as dropout's are those of the whole
/// batch. Batch norms in training see the samples of their replica; running moments become the mean of the replicas',
/// by their samples.
///
/// The module gives one result for each sample, which depends on no other sample. A result of another number is a
/// shape_error; where all replicas get as many samples, a few of them run twice in the first call to make sure.
///
///     auto model = nn::data_parallel<numa<0>, numa<1>>(nn::linear(64, 10, gen));
///     variable loss = cross_entropy(model(images), labels);
template <device... D, class M>
  requires(sinter::detail::is_fitting<detail::replication_mistake<M, D...>>)
data_parallel_over<M, D...> data_parallel(const M& model) {
  return data_parallel_over<M, D...>(model);
}
template <device... D, class M, class Problem = typename detail::replication_mistake<M, D...>::problem,
          class Fix = typename detail::replication_mistake<M, D...>::fix>
void data_parallel(const M&) = delete;

}  // namespace nn
}  // namespace sinter
