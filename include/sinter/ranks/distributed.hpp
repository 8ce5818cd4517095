// sinter/ranks/distributed.hpp: a model that several ranks train together, each with samples of its own.
#pragma once

#include <exception>
#include <tuple>
#include <vector>

#include "sinter/random/distribution.hpp"
#include "sinter/ranks/gradient_exchange.hpp"
#include "sinter/ranks/rank_buffers.hpp"
#include "sinter/ranks/rank_generators.hpp"

namespace sinter {

// Names in messages.
template <class>
struct loss_that_is_no_variable;
struct return_the_loss_as_the_model_gives_it;
template <class>
struct what_is_distributed_is_no_module;
template <class>
struct the_ranks_are_no_communicator;
struct write_distributed_of_a_model_and_a_communicator;
template <class>
struct a_model_that_ends_with_this_statement;
struct keep_the_model_in_a_variable;

namespace nn {

/// What run() returns, the same on all ranks.
struct distributed_run {
  index_t steps = 0;
  index_t samples = 0;   ///< of all ranks
  double mean_loss = 0;  ///< over all these samples
  bool stopped = false;  ///< by ask_to_stop() of any rank
};

namespace detail {

/// Sees the members of a model for communicators C.
template <class... C>
struct reached_members {
  template <class X>
    requires(sinter::detail::is_fitting<reach_mistake<X, C...>>)
  static void admit(const X&) {}
  template <class X, class Problem = typename reach_mistake<X, C...>::problem,
            class Fix = typename reach_mistake<X, C...>::fix>
  static void admit(const X&) = delete;
};

template <class M, class C>
constexpr auto find_distributed_mistake() {
  using sinter::detail::mistake;
  if constexpr (!is_module<M>)
    return mistake<what_is_distributed_is_no_module<M>, write_distributed_of_a_model_and_a_communicator>{};
  else if constexpr (!communicator<C>)
    return mistake<the_ranks_are_no_communicator<C>, write_distributed_of_a_model_and_a_communicator>{};
  else return mistake<communicator_does_not_reach<cpu>, pass_a_communicator_that_reaches_it_as_well>{};
}
template <class M, class C>
using distributed_mistake = decltype(find_distributed_mistake<M, C>());

/// What is wrong with the result L of a function that gives a loss. An expression is evaluated first.
template <class L>
constexpr auto find_loss_mistake() {
  if constexpr (requires { requires bare<L>::order > 0; }) return sinter::detail::fitting<L>{};
  else return sinter::detail::mistake<loss_that_is_no_variable<L>, return_the_loss_as_the_model_gives_it>{};
}
template <class Loader, class Loss>
using loss_mistake =
    decltype(find_loss_mistake<bare<decltype(std::declval<const Loss&>()(*std::begin(std::declval<Loader&>())))>>());

}  // namespace detail

/// Stands for arguments that distributed does not take; its constructor says why.
template <class M, class C, class... More>
class distributed {
 public:
  template <class Model, class Problem = typename detail::distributed_mistake<M, C>::problem,
            class Fix = typename detail::distributed_mistake<M, C>::fix>
  distributed(Model&&, const C&, const More&..., distributed_options = {}) = delete;
};

/// Trains a model on several ranks, each of which has a copy and samples of its own. It is made after the model, by all
/// ranks at the same time: they compare their lists of parameters and buffers, and take over the values of rank 0.
/// After backward(loss, n), for the mean loss of n samples, each parameter has the gradient of the mean loss of all
/// samples of the step: gradients count n times, and are divided by the sum of n. That holds for gradients of earlier
/// passes, too: plain loss.backward() adds to the gradients of this rank alone, and the next backward(loss, n) sums
/// what has been gathered. So one optimizer on each rank keeps all copies equal.
///
///     socket_communicator world(socket_options::from_environment());
///     nn::distributed ranks(model, world);
///     optim::adam optimizer(model);
///     for (auto& [x, y] : loader) {
///       optimizer.zero_grad();
///       ranks.backward(cross_entropy(model(x), y), x.extent(0));
///       optimizer.step();
///     }
///
/// Gradients lie in buckets of about 25 MiB, each of one element type on one device. A bucket is summed as soon as the
/// pass has made the last gradient of it, while the pass goes on. After the first step they are put together anew, in
/// the order in which gradients are complete. A tensor from grad() shows the gradients of later steps, too.
///
/// A rank may have no samples (n = 0), and use other parameters than the others do: a parameter that any rank has used
/// has its gradient on all of them, one that none has used has none. Of modules in an `offloaded` only those that a
/// rank has used are summed. Buffers, as the statistics of batch norms, become the mean of the ranks' values by their
/// numbers of samples; integers become the largest. As in data_parallel(), a batch norm works on each rank's own
/// samples. Generators in the model, as those of dropouts, make as many draws on a rank without samples as elsewhere.
///
/// Parameters may be on several devices: give a communicator for each kind, the first of which reaches the host.
/// The model and the communicators must outlive it. All calls come from one thread. Do not replace a parameter
/// meanwhile. With `.compress`, float gradients are rounded to bfloat16 before and after they are added, which changes
/// each sum by at most 2^-7 of the sum of magnitudes.
///
/// Errors of the constructor, on all ranks: value_error that names a rank and a parameter where models differ. Errors
/// of calls: communication_error; whatever a call throws, the other ranks are told, no gradient is left, and all
/// later calls throw. Source: Li et al., "PyTorch Distributed: experiences on accelerating data parallel training",
/// VLDB 2020.
template <is_module M, communicator C, communicator... More>
  requires communicator_on<C, cpu>
class distributed<M, C, More...> {
 public:
  distributed(M& model, const C& world, const More&... more, distributed_options options = {})
    requires(sinter::detail::is_fitting<detail::model_mistake<M, C, More...>>)
      : model_(model), ranks_(world, more...), options_(options), exchange_(std::get<0>(ranks_), options) {
    guarded([&] {
      over_all([&](auto& first, auto&... rest) {
        detail::require_same_model(first, model_);
        detail::spread_state(model_, first, rest...);
        detail::spread_generators(model_, first);
        detail::each_with_task(model_, [&](const detail::member_name& name, const auto& x, int task) {
          using X = detail::bare<decltype(x)>;
          detail::reached_members<C, More...>::admit(x);
          if constexpr (sinter::detail::is_fitting<detail::reach_mistake<X, C, More...>>) {
            auto& ranks = detail::communicator_for<device_of<X>>(first, rest...);
            if constexpr (detail::is_buffer<X>) buffers_.add(name.text(), x, ranks);
            else if constexpr (detail::is_variable<X>) {
              parameters_.push_back(sinter::detail::access::state_of(x).get());
              exchange_.add(name.text(), x, ranks, task);
            }
          }
        });
        exchange_.make_buckets();
      });
    });
  }
  template <class M0 = M, class Problem = typename detail::model_mistake<M0, C, More...>::problem,
            class Fix = typename detail::model_mistake<M0, C, More...>::fix>
  distributed(M&, const C&, const More&..., distributed_options = {}) = delete;
  template <class Problem = a_model_that_ends_with_this_statement<M>, class Fix = keep_the_model_in_a_variable>
  distributed(M&&, const C&, const More&..., distributed_options = {}) = delete;
  distributed(const distributed&) = delete;
  distributed& operator=(const distributed&) = delete;

  int rank() const { return std::get<0>(ranks_).rank(); }
  int size() const { return std::get<0>(ranks_).size(); }
  M& model() const { return model_; }

  /// f(world, more...), for other calls of all ranks between steps. What it throws ends the work of all ranks.
  template <class F>
  void with_communicators(const F& f) {
    guarded([&] { over_all(f); });
  }

  /// Tells the other ranks how many samples this one has in the step that begins. Called before the forward pass it
  /// costs no time; where it was not called backward() does. Errors: value_error for a negative number.
  void begin(index_t samples) {
    guarded([&] { exchange_.begin(samples, false); });
  }
  /// The samples of all ranks in the step that begin() began; waits for the others.
  index_t samples_of_step() {
    return guarded([&] { return exchange_.agreed().samples; });
  }

  /// The backward pass of a mean loss over `samples` samples of this rank, and the sums over the ranks; see above. For
  /// 0 samples the pass changes no gradient here; it runs because modules in it may wait for other ranks. All ranks
  /// call it, or sum_gradients(). Errors: shape_error for a loss that is not one number; value_error where no rank has
  /// samples, where begin() was told another number, and where a parameter was replaced; those of variable::backward;
  /// communication_error.
  template <class T, auto S, device D, int Order>
  void backward(const variable<T, S, D, Order>& loss, index_t samples, backward_options options = {}) {
    guarded([&] {
      require_one_number(loss);
      open_step(samples);
      answer([&](gradient_listener& listener) {
        const auto weight = static_cast<compute_type<T>>(exchange_.weight());
        const tensor<T, S, D> seed = full<T, D>(loss.shape(), static_cast<T>(weight));
        loss.backward(seed, listener, options);
      });
    });
  }
  template <class L, class Problem = loss_that_is_no_variable<L>, class Fix = return_the_loss_as_the_model_gives_it>
  void backward(const L&, index_t, backward_options = {}) = delete;

  /// The sums alone, of gradients that something else has gathered for the mean loss of `samples` samples: a pipeline's
  /// step(), backward() of data_parallel, or plain passes. Errors: as backward.
  void sum_gradients(index_t samples) {
    guarded([&] {
      open_step(samples);
      answer(nullptr);
    });
  }

  /// Trains on all batches of a loader. For each batch: begin(batch.size()), backward of loss(batch), a mean, then
  /// step(). Ranks may have different numbers of batches: one that has run out takes part with no samples, and calls
  /// step(), until all have. The samples of rank r count as number r, r + size(), ... of the step, as a
  /// distributed_sampler gives them, so that dropout draws as if one rank had the whole batch. An exception on one rank
  /// ends the others with "aborted by rank r: its text". Errors: those of loader, loss and step; communication_error.
  ///
  ///     const auto epoch = ranks.run(
  ///         loader, [&](const auto& batch) { return cross_entropy(model(batch.inputs), batch.targets); },
  ///         [&] {
  ///           optimizer.step();
  ///           optimizer.zero_grad();
  ///         });
  ///     std::cout << epoch.mean_loss << '\n';
  template <class Loader, class Loss, class Step>
    requires(sinter::detail::is_fitting<detail::loss_mistake<Loader, Loss>>)
  distributed_run run(Loader&& loader, const Loss& loss, const Step& step) {
    return guarded([&] {
      distributed_run seen;
      double sum_of_losses = 0;
      // Forward and backward of a step; null: of a rank without samples.
      const auto take = [&]<class Pass>(index_t n, bool finished, const Pass& pass) {
        constexpr bool has_pass = !std::is_null_pointer_v<Pass>;
        exchange_.begin(n, finished);
        if constexpr (has_pass) pass();
        const detail::step_word word = exchange_.agreed();
        if (word.samples == 0) {
          exchange_.skip();
          seen.stopped = word.stopping > 0;
          return word.finished < size() && !seen.stopped;
        }
        if constexpr (!has_pass) answer(nullptr);
        const auto start = sinter::detail::communication_clock::now();
        step();
        exchange_.trace().optimizer = sinter::detail::seconds_since(start);
        ++seen.steps;
        seen.samples += word.samples;
        seen.stopped = word.stopping > 0;
        return !seen.stopped;
      };
      bool goes_on = true;
      for (auto&& batch : loader) {
        const index_t n = batch.size();
        const auto pass = [&] {
          const samples_from own(rank(), size());
          const variable l = loss(batch);
          require_one_number(l);
          sum_of_losses += static_cast<double>(n) * static_cast<double>(l.item());
          backward(l, n);
        };
        goes_on = n > 0 ? take(n, false, pass) : take(0, false, nullptr);
        if (!goes_on) break;
      }
      while (goes_on) goes_on = take(0, true, nullptr);
      if (seen.stopped) exchange_.ask_to_stop(false);
      const tensor<double, 1> sums =
          std::get<0>(ranks_).all_reduce(tensor<double, 1>{sum_of_losses}, reduction::sum, "loss").get();
      if (seen.samples > 0) seen.mean_loss = sums(0) / static_cast<double>(seen.samples);
      return seen;
    });
  }
  template <class Loader, class Loss, class Step, class Problem = typename detail::loss_mistake<Loader, Loss>::problem,
            class Fix = typename detail::loss_mistake<Loader, Loss>::fix>
  distributed_run run(Loader&&, const Loss&, const Step&) = delete;

  /// All ranks leave run() after the step that they begin next; a later run() takes all batches again. Not for signal
  /// handlers: set a flag there, and call this from loss or step.
  void ask_to_stop() { exchange_.ask_to_stop(true); }

  /// Merges the buffers of all ranks, which count alike; only needed with `.merge_buffers = false`. All ranks call it.
  void merge_buffers() {
    guarded([&] {
      buffers_.start(1. / size());
      buffers_.finish();
    });
  }

  distributed_report report() const {
    distributed_report r = exchange_.report();
    const auto add = [&](const auto& c) {
      if constexpr (requires { c.time_spent(); }) r.time += c.time_spent();
    };
    std::apply([&](const auto&... c) { (add(c), ...); }, ranks_);
    return r;
  }
  /// Of the last backward().
  const step_trace& trace() const { return exchange_.trace(); }

 private:
  template <class F>
  void over_all(const F& f) {
    std::apply(f, ranks_);
  }
  /// f(); what it throws ends the work of all ranks.
  template <class F>
  auto guarded(const F& f) {
    return sinter::detail::run_guarded(f, [this](const char* why) { give_up(why); });
  }
  void give_up(const char* why) noexcept {
    exchange_.drop_gradients();
    over_all([&](auto&... c) { (sinter::detail::abort_quietly(c, why), ...); });
  }

  template <class Pass>
  void answer(const Pass& pass) {
    sinter::detail::undo_scope changes;
    const double weight = exchange_.weight();
    exchange_.run(pass);
    if (exchange_.agreed().idle > 0) detail::level_generators(model_, std::get<0>(ranks_));
    if (options_.merge_buffers) {
      buffers_.start(weight);
      buffers_.finish();
      exchange_.trace().buffers = buffers_.bytes();
    }
    changes.keep();
  }

  template <class L>
  static void require_one_number(const L& loss) {
    if (!loss.defined()) sinter::detail::refuse_undefined("distributed, loss");
    if (loss.numel() != 1)
      sinter::detail::refuse<shape_error>({"distributed: a loss of shape ", loss.shape(),
                                           "; it must be one number, the mean over the samples of this rank"});
  }
  void open_step(index_t samples) {
    require_same_parameters();
    if (!exchange_.has_begun()) exchange_.begin(samples, false);
    else if (exchange_.samples() != samples)
      sinter::detail::refuse<value_error>({"distributed: begin() was told ", exchange_.samples(),
                                           " samples of this rank, and the sum of gradients ", samples});
  }
  void require_same_parameters() {
    std::size_t i = 0;
    detail::each_with_task(model_, [&](const detail::member_name& name, const auto& x, int) {
      if constexpr (detail::is_variable<detail::bare<decltype(x)>>) {
        const std::size_t number = i++;
        if (number >= parameters_.size() || parameters_[number] != sinter::detail::access::state_of(x).get())
          sinter::detail::refuse<value_error>(
              {"distributed: '", name.text(), "' of shape ", x.shape(),
               " was replaced since distributed was made; write to its value, or make distributed anew"});
      }
    });
  }

  M& model_;
  std::tuple<C, More...> ranks_;
  distributed_options options_;
  std::vector<const sinter::detail::grad_state*> parameters_;  ///< in the order of the lists, tied ones again
  detail::gradient_exchange<C> exchange_;
  detail::rank_buffers buffers_;
};

template <class M, class C>
distributed(M&&, const C&) -> distributed<std::remove_reference_t<M>, C>;
template <class M, class C>
distributed(M&&, const C&, distributed_options) -> distributed<std::remove_reference_t<M>, C>;
template <class M, class C, communicator C2>
distributed(M&&, const C&, const C2&) -> distributed<std::remove_reference_t<M>, C, C2>;
template <class M, class C, communicator C2>
distributed(M&&, const C&, const C2&, distributed_options) -> distributed<std::remove_reference_t<M>, C, C2>;

}  // namespace nn
}  // namespace sinter
