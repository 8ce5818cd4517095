// sinter/parallel/pipeline.hpp: a model cut into stages, each on its own device, that work on microbatches at once.
#pragma once

#include <functional>
#include <vector>

#include "sinter/nn/sequential.hpp"
#include "sinter/parallel/pipeline_report.hpp"
#include "sinter/parallel/pipeline_step.hpp"
#include "sinter/parallel/step_guard.hpp"
#include "sinter/parallel/team.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct two_stages_on_one_device;
struct move_one_with_dot_to_or_join_them_in_a_sequential;
template <class>
struct stage_without_a_device;
struct join_it_to_a_stage_in_a_sequential;
template <class...>
struct stage_on_several_devices;
struct make_each_part_a_stage;
template <class>
struct pipeline_step_of_a_tracked_input;
struct pass_its_dot_value;

namespace nn {

struct pipeline_options {
  index_t microbatches = 8;  ///< into which a batch is cut: at most as many as it has samples
  std::function<nn::schedule(int stages, index_t microbatches)> schedule = nn::schedule::one_f_one_b;
};

namespace detail {

/// Present only where a pipeline spans devices.
template <class First, class Last>
struct pipeline_output {
  using output_device = Last;
};
template <class D>
struct pipeline_output<D, D> {};

template <class... M>
constexpr auto find_pipeline_mistake() {
  using sinter::detail::mistake;
  constexpr int n = sizeof...(M);
  constexpr auto first_where = [](const bool(&is)[std::size_t{n}]) {
    int i = 0;
    while (i < n && !is[i]) ++i;
    return i;
  };
  constexpr int placeless = first_where({std::is_same_v<device_of<M>, any_device>...});
  constexpr int spread = first_where({!on_one_device<M>...});
  constexpr int again = first_where({(sinter::detail::times_listed<device_of<M>, device_of<M>...> > 1)...});
  if constexpr (placeless < n)
    return mistake<stage_without_a_device<typename nth<placeless, M...>::type>, join_it_to_a_stage_in_a_sequential>{};
  else if constexpr (spread < n)
    return mistake<stage_on_several_devices<device_of<typename nth<spread, M...>::type>,
                                            typename output_device<typename nth<spread, M...>::type>::type>,
                   make_each_part_a_stage>{};
  else if constexpr (again < n)
    return mistake<two_stages_on_one_device<device_of<typename nth<again, M...>::type>>,
                   move_one_with_dot_to_or_join_them_in_a_sequential>{};
  else return sinter::detail::fitting<void>{};
}
template <class... M>
using pipeline_mistake = decltype(find_pipeline_mistake<M...>());

template <class X, class D>
constexpr auto find_step_mistake() {
  using sinter::detail::mistake;
  if constexpr (is_variable<X>) return mistake<pipeline_step_of_a_tracked_input<X>, pass_its_dot_value>{};
  else if constexpr (!is_tensor<X>) return sinter::detail::not_operands{};
  else if constexpr (!std::is_same_v<device_of<X>, D>)
    return mistake<module_fed_from_another_device<device_of<X>, D>, copy_the_input_with_dot_to>{};
  else return sinter::detail::fitting<void>{};
}
template <class X, class D>
using step_mistake = decltype(find_step_mistake<X, D>());

}  // namespace detail

/// A model cut into stages, each a module on a device of its own. step() trains it: the batch is cut into microbatches,
/// and while one stage works on one of them the stages behind work on those before it. Called, it is the chain of its
/// stages: the value of each is copied to the next one's device; backward through it works, too.
///
/// A stage has a thread from the first step on, which works with the threads of its device. The stages are handles to
/// the modules that they were made of, named "0.weight", "1.weight", ..., so any optimizer of a pipeline or of its
/// stages trains them.
///
///     const nn::pipeline pipe{nn::linear(64, 32, gen).to<numa<0>>(), nn::linear(32, 10, gen).to<numa<1>>()};
///     const auto loss = [](const auto& scores, const auto& labels) { return cross_entropy(scores, labels); };
///     optim::sgd optimizer(pipe, {.lr = 0.1});
///     const nn::pipeline_report r = pipe.step(images, labels, loss, {.microbatches = 8});
///     optimizer.step();
template <is_module... M>
  requires(sizeof...(M) > 0)
class pipeline : public module<pipeline<M...>>,
                 public detail::pipeline_output<device_of<typename detail::nth<0, M...>::type>,
                                                device_of<typename detail::nth<sizeof...(M) - 1, M...>::type>> {
  static constexpr int count = sizeof...(M);

 public:
  using device_type = device_of<typename detail::nth<0, M...>::type>;
  using kind = std::conditional_t<(std::is_same_v<typename M::kind, tracked> || ...), tracked, plain>;
  template <class K>
  using as = pipeline<typename detail::kind_changed<M, K>::type...>;

  pipeline() : threads_({node_of<device_of<M>>()...}) {}
  explicit pipeline(M... m)
    requires(sinter::detail::is_fitting<detail::pipeline_mistake<M...>>)
      : stages_(std::move(m)...), threads_({node_of<device_of<M>>()...}) {}
  template <class Mistake = detail::pipeline_mistake<M...>, class Problem = typename Mistake::problem,
            class Fix = typename Mistake::fix>
  explicit pipeline(M...) = delete;

  /// Forward and backward of a mean loss: loss(model(x), y) of each microbatch, its gradient weighed by n_j / N, so the
  /// gradients that are added to the parameters' are those of the whole batch, and so is the loss in the report. Draws
  /// such as dropout's are those of the whole batch. Batch norms in training see one microbatch after the other.
  ///
  /// x is a tensor on the first stage's device. y may be on any: it is copied to the last one's, where loss gets it.
  /// Both are cut along axis 0. Neither may be written to meanwhile.
  ///
  /// After an error all stages have ended; it names the stage, its device, and the microbatch. Parameters, gradients,
  /// buffers and generators are as before, and the next step works. Errors: those of stages, loss and copies;
  /// value_error for no samples, different numbers of them, less than 1 microbatch, and a schedule of other
  /// numbers; shape_error for a loss of more than one number; autograd_error under no_grad.
  ///
  ///     pipe.step(x, y, loss, {.microbatches = 16, .schedule = nn::schedule::gpipe});
  template <class X, class Y, class Loss>
    requires(sinter::detail::is_fitting<detail::step_mistake<X, device_type>> && sinter::detail::is_tensor<Y> &&
             std::is_same_v<kind, tracked>)
  pipeline_report step(const X& x, const Y& y, const Loss& loss, const pipeline_options& options = {}) const {
    static_assert(X::rank >= 1 && Y::rank >= 1, "sinter: pipeline cuts x and y along axis 0, which a number lacks");
    using State = detail::step_state<std::make_index_sequence<sizeof...(M)>, decltype(x.slice(0, 0, 0)),
                                     decltype(y.slice(0, 0, 0)), Loss, M...>;
    const index_t n = x.extent(0);
    check_step(n, y.extent(0), options.microbatches);
    const nn::schedule plan = options.schedule(count, std::min(options.microbatches, n));
    check_plan(plan, std::min(options.microbatches, n));
    sinter::detail::undo_scope changes;
    detail::step_guard before;
    State state{x, loss, n, plan.microbatches()};
    state.expect_all();
    typename State::template stages<detail::stage_of_step> work;
    std::vector<sinter::detail::stage_work*> all;
    sinter::detail::each_part<count>([&](auto part) {
      before.add(get<part()>());
      auto& one = work.template at<part()>();
      one.emplace(state, get<part()>());
      all.push_back(&*one);
    });
    sinter::detail::schedule_run run(plan, std::move(all));
    state.labels.post(0, y);
    run.run(threads_);
    if (run.failure) {
      state.drain();
      rethrow(run);
    }
    pipeline_report r;
    r.loss = state.total;
    r.samples = n;
    sinter::detail::each_part<count>([&](auto part) {
      stage_report& s = r.stages.emplace_back();
      s.device = names()[part()];
      s.in_flight = work.template at<part()>()->in_flight;
    });
    detail::fill_times(r, plan, run);
    before.settle();
    changes.keep();
    return r;
  }
  template <class X, class Y, class Loss, class Problem = typename detail::step_mistake<X, device_type>::problem,
            class Fix = typename detail::step_mistake<X, device_type>::fix>
  void step(const X&, const Y&, const Loss&, const pipeline_options& = {}) const = delete;

  template <class X>
  auto forward(const X& x) const {
    return through<0>(x);
  }

  /// Stage number N.
  template <std::size_t N>
  auto& get() {
    return stages_.template at<N>();
  }
  template <std::size_t N>
  const auto& get() const {
    return stages_.template at<N>();
  }
  static constexpr std::size_t size() { return sizeof...(M); }

  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    sinter::detail::each_part<count>(
        [&](auto part) { f(sinter::detail::joined({part()}), s.template get<part()>()...); });
  }

 private:
  template <device D>
  static constexpr int node_of() {
    if constexpr (is_cpu_v<D> && !std::is_same_v<D, cpu>) return device_ordinal_v<D>;
    else return -1;
  }
  static std::vector<std::string> names() { return {device_name<device_of<M>>()...}; }

  static void check_step(index_t n, index_t targets, index_t microbatches) {
    if (!sinter::detail::recording())
      sinter::detail::refuse<autograd_error>(
          {"pipeline: step() under no_grad, where nothing can go backward; call the pipeline itself for values"});
    if (n != targets)
      sinter::detail::refuse<value_error>(
          {"pipeline: x has ", n, " samples along axis 0, and y has ", targets, "; pass one row of y for each sample"});
    if (n == 0) sinter::detail::refuse<value_error>({"pipeline: x has no samples; step() takes 1 or more"});
    if (microbatches < 1)
      sinter::detail::refuse<value_error>({"pipeline: .microbatches is ", microbatches, "; set it to 1 or more"});
  }
  static void check_plan(const nn::schedule& plan, index_t microbatches) {
    if (plan.stages() != count)
      sinter::detail::refuse<value_error>({"pipeline: the schedule is for ", plan.stages(),
                                           " stages, but the pipeline has ", count,
                                           "; make it for the number that .schedule gets as its first argument"});
    if (plan.microbatches() != microbatches)
      sinter::detail::refuse<value_error>({"pipeline: the schedule is for ", plan.microbatches(),
                                           " microbatches, but this step cuts its batch into ", microbatches,
                                           "; make it for the number that .schedule gets as its second argument"});
  }
  [[noreturn]] SINTER_COLD static void rethrow(const sinter::detail::schedule_run& run) {
    const auto stage = static_cast<std::size_t>(run.failed_stage);
    const bool forward = run.failed_action.way == direction::forward;
    sinter::detail::rethrow_with(
        run.failure, sinter::detail::joined({"pipeline: stage ", stage, " on ", names()[stage], ", microbatch ",
                                             run.failed_action.microbatch, forward ? " forward" : " backward"}));
  }

  template <std::size_t P, class X>
  auto through(const X& x) const {
    if constexpr (P + 1 == sizeof...(M)) {
      return get<P>()(x);
    } else {
      using next = device_of<sinter::detail::type_of_part<P + 1, M...>>;
      return through<P + 1>(sinter::eval(get<P>()(x)).template to<next>());
    }
  }

  sinter::detail::parts<M...> stages_;
  mutable cpu_impl::stage_threads threads_;
};
template <class... M>
pipeline(M...) -> pipeline<M...>;

}  // namespace nn
}  // namespace sinter
