// sinter/parallel/pipeline_step.hpp: the stages of a pipeline in one step, in their types, and what goes between them.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sinter/core/gpu_only.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/parallel/copy_worker.hpp"
#include "sinter/parallel/parts.hpp"
#include "sinter/parallel/schedule_run.hpp"
#include "sinter/random/distribution.hpp"

namespace sinter::nn::detail {

using sinter::detail::access;

/// Microbatch j of m of n samples; the first n % m have one more, as of torch.tensor_split.
inline sinter::detail::sample_range samples_of_microbatch(index_t n, index_t m, index_t j) {
  const auto begin = [&](index_t k) { return k * (n / m) + std::min(k, n % m); };
  return {begin(j), begin(j + 1), true};
}

/// Tensors on their way to a stage, one for each microbatch. The device's copy worker brings them.
template <class Tensor>
class transit {
  using D = device_of<Tensor>;

 public:
  void expect(index_t microbatches) { coming_.resize(static_cast<std::size_t>(microbatches)); }
  /// An undefined tensor arrives as one.
  template <class From>
  void post(index_t j, const From& from) {
    one& c = at(j);
    c.value = std::make_shared<Tensor>();
    if (from.defined())
      c.job = sinter::detail::copy_worker_of<D>().post([to = c.value, from] { *to = from.template to<D>(); });
  }
  Tensor take(index_t j) {
    one c = std::exchange(at(j), one{});
    if (c.job) sinter::detail::copy_worker_of<D>().wait(c.job);
    return std::move(*c.value);
  }
  /// Waits for all that nobody has taken.
  void drain() noexcept {
    for (one& c : coming_) {
      if (!c.job) continue;
      try {
        sinter::detail::copy_worker_of<D>().wait(c.job);
      } catch (...) {  // nobody needs it
      }
      c = {};
    }
  }

 private:
  struct one {
    std::shared_ptr<Tensor> value;
    sinter::detail::copy_worker::job job;
  };
  one& at(index_t j) { return coming_[static_cast<std::size_t>(j)]; }
  std::vector<one> coming_;
};

template <class M, class X>
using given_by = sinter::detail::evaluated<decltype(std::declval<const M&>()(std::declval<const X&>()))>;
template <class X>
using value_of = decltype(stored_value(std::declval<const X&>()));

/// What stage P is fed with where the first one is fed with an X: a variable if stage P - 1 gives one.
template <std::size_t P, class X, class... M>
struct stage_input {
  using before = typename stage_input<P - 1, X, M...>::type;
  using type = sinter::detail::moved_type<given_by<sinter::detail::type_of_part<P - 1, M...>, before>,
                                          device_of<sinter::detail::type_of_part<P, M...>>>;
};
template <class X, class... M>
struct stage_input<0, X, M...> {
  using type = X;
};

/// The types of a step, and what its stages share.
template <class Index, class X, class Labels, class Loss, class... M>
struct step_state;
template <std::size_t... I, class X, class Labels, class Loss, class... M>
struct step_state<std::index_sequence<I...>, X, Labels, Loss, M...> {
  static constexpr std::size_t count = sizeof...(M), last = count - 1;
  template <std::size_t P>
  using module_at = sinter::detail::type_of_part<P, M...>;
  template <std::size_t P>
  using input = typename stage_input<P, X, M...>::type;
  template <std::size_t P>
  using output = given_by<module_at<P>, input<P>>;
  using output_device = device_of<module_at<last>>;
  using labels_there = sinter::detail::moved_type<Labels, output_device>;

  X x;
  const Loss& loss;
  index_t samples, microbatches;
  sinter::detail::sample_numbers numbers = sinter::detail::current_samples();
  sinter::detail::draw_source* draws = sinter::detail::current_draws();
  double total = 0;  ///< the loss so far
  transit<labels_there> labels{};
  sinter::detail::parts<transit<value_of<input<I>>>...> ahead{};  ///< into stage I from the one before
  sinter::detail::parts<transit<value_of<output<I>>>...> back{};  ///< gradients into stage I from the one behind

  template <template <class, std::size_t> class Stage>
  using stages = sinter::detail::parts<std::optional<Stage<step_state, I>>...>;

  sinter::detail::sample_range range(index_t j) const { return samples_of_microbatch(samples, microbatches, j); }
  double share(index_t j) const { return static_cast<double>(range(j).size()) / static_cast<double>(samples); }
  void expect_all() {
    labels.expect(1);
    (ahead.template at<I>().expect(microbatches), ...);
    (back.template at<I>().expect(microbatches), ...);
  }
  void drain() noexcept {
    labels.drain();
    (ahead.template at<I>().drain(), ...);
    (back.template at<I>().drain(), ...);
  }
};

template <bool IsLast, class State, class M, class X, class Labels>
auto stage_result(const State& s, const M& m, const X& x, const Labels& labels) {
  if constexpr (IsLast) return sinter::eval(s.loss(m(x), labels));
  else return sinter::eval(m(x));
}

/// Stage P of a step.
template <class State, std::size_t P>
class stage_of_step final : public sinter::detail::stage_work {
  using M = typename State::template module_at<P>;
  using D = device_of<M>;
  using X = typename State::template input<P>;
  static constexpr bool is_last = P == State::last;

  using Y =
      decltype(stage_result<is_last>(std::declval<const State&>(), std::declval<const M&>(), std::declval<const X&>(),
                                     std::declval<const typename State::labels_there&>()));
  static_assert(!is_last || is_variable<Y>,
                "sinter: pipeline: the loss carries no graph; it must be a variable that depends on the stages");

 public:
  index_t in_flight = 0;  ///< most microbatches at once

  stage_of_step(State& state, const M& module)
      : state_(state), module_(module), runs_(static_cast<std::size_t>(state.microbatches)) {}

  void take(stage_action a) override {
    run& r = runs_[static_cast<std::size_t>(a.microbatch)];
    if (a.way == direction::backward) {
      if constexpr (!is_last && is_variable<Y>) gradient_ = state_.back.template at<P>().take(a.microbatch);
    } else {
      in_flight = std::max(in_flight, ++held_);
      if constexpr (P == 0) {
        const auto cut = state_.range(a.microbatch);
        r.x.emplace(state_.x.slice(0, cut.begin, cut.end));
      } else {
        r.x.emplace(state_.ahead.template at<P>().take(a.microbatch));
      }
      if constexpr (is_last)
        if (!labels_.defined()) labels_ = state_.labels.take(0);
    }
  }

  void compute(stage_action a) override {
    if (a.way == direction::forward) forward(a.microbatch);
    else backward(a.microbatch);
    if constexpr (is_cuda_v<D>) synchronize<D>();
  }

  void send(stage_action a) override {
    const index_t j = a.microbatch;
    if (a.way == direction::forward) {
      if constexpr (!is_last)
        state_.ahead.template at<P + 1>().post(j, stored_value(*runs_[static_cast<std::size_t>(j)].y));
    } else {
      if constexpr (sends_back) state_.back.template at<P - 1>().post(j, std::exchange(gradient_of_input_, {}));
    }
  }

 private:
  struct run {
    std::optional<X> x;
    std::optional<Y> y;
  };
  static constexpr bool sends_back = P > 0 && is_variable<X>;

  /// Draws are those of the samples of the whole batch: the first microbatch takes keys from the generators, the others
  /// repeat them.
  void forward(index_t j) {
    run& r = runs_[static_cast<std::size_t>(j)];
    const auto cut = state_.range(j);
    using role = sinter::detail::draw_source::role;
    const sinter::detail::draw_source draws(log_, std::exchange(drawn_, true) ? role::repeats : role::writes,
                                            state_.draws);
    const samples_from samples(state_.numbers.behind(cut.begin));
    if constexpr (is_last) {
      r.y.emplace(stage_result<is_last>(state_, module_, *r.x, labels_.slice(0, cut.begin, cut.end)));
      if (r.y->numel() != 1)
        sinter::detail::refuse<shape_error>({"the loss has shape ", r.y->shape(), "; it must be one number, a mean"});
      state_.total += state_.share(j) * static_cast<double>(r.y->item());
    } else {
      r.y.emplace(stage_result<is_last>(state_, module_, *r.x, labels_));
    }
  }

  void backward(index_t j) {
    run& r = runs_[static_cast<std::size_t>(j)];
    if constexpr (is_variable<Y>) {
      if (access::state_of(*r.y)) {
        if constexpr (is_last) {
          const typename Y::tensor_type seed = full<element_of<Y>, D>(r.y->shape(), state_.share(j));
          r.y->backward(seed);
        } else if (gradient_.defined()) {
          r.y->backward(std::exchange(gradient_, {}));
        }
      }
    }
    if constexpr (sends_back)
      if (r.x->has_grad()) gradient_of_input_ = r.x->grad();
    r.x.reset();
    r.y.reset();
    --held_;
  }

  State& state_;
  const M& module_;
  std::vector<run> runs_;
  typename State::labels_there labels_{};  ///< of the last stage
  value_of<Y> gradient_{};                 ///< of the microbatch that goes backward
  value_of<X> gradient_of_input_{};
  index_t held_ = 0;
  sinter::detail::draw_log log_;
  bool drawn_ = false;
};

}  // namespace sinter::nn::detail
