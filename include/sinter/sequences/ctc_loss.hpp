// sinter/sequences/ctc_loss.hpp: the loss of sequences of scores against labels without alignment.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/grad/with_gradient.hpp"
#include "sinter/nn/loss.hpp"
#include "sinter/ops/clamp_min.hpp"
#include "sinter/ops/exp.hpp"
#include "sinter/sequences/packed_sequence.hpp"

namespace sinter {

template <class>
struct ctc_loss_on_device;
template <class, class>
struct log_probabilities_and_labels_with_elements_of_type;
template <int, int>
struct log_probabilities_and_labels_of_ranks;
struct copy_the_operands_to_the_host_with_dot_to_cpu;
struct use_float_or_double_log_probabilities_and_integer_labels;
struct use_steps_samples_classes_and_labels_of_rank_1_or_2;

/// What ctc_loss takes into account.
struct ctc_options {
  index_t blank = 0;           ///< the class that stands for no label
  bool zero_infinity = false;  ///< a sample with fewer steps than its labels need has loss and gradient 0
};

namespace detail {

template <class X, class L>
constexpr auto find_ctc_mistake() {
  if constexpr (!is_fitting<beside_mistake<X, L>>) return beside_mistake<X, L>{};
  else if constexpr (!is_cpu_v<device_of<X>>)
    return mistake<ctc_loss_on_device<device_of<X>>, copy_the_operands_to_the_host_with_dot_to_cpu>{};
  else if constexpr (!(std::is_same_v<element_of<X>, float> || std::is_same_v<element_of<X>, double>) ||
                     !integer_element<element_of<L>>)
    return mistake<log_probabilities_and_labels_with_elements_of_type<element_of<X>, element_of<L>>,
                   use_float_or_double_log_probabilities_and_integer_labels>{};
  else if constexpr ((rank_of<X> != 3 && rank_of<X> != 2) || rank_of<L> < 1 || rank_of<L> > rank_of<X> - 1)
    return mistake<log_probabilities_and_labels_of_ranks<rank_of<X>, rank_of<L>>,
                   use_steps_samples_classes_and_labels_of_rank_1_or_2>{};
  else return fitting<element_of<X>>{};
}
template <class X, class L>
using ctc_mistake = decltype(find_ctc_mistake<bare<X>, bare<L>>());

/// The states of the samples: blank, label, blank, label, ..., blank, of which a path goes through all labels. It
/// starts in the first or second, stays, goes on by one, or by two where that skips a blank between other labels, and
/// ends in one of the last two.
struct ctc_states {
  struct sample {
    index_t steps, count;   ///< how many steps and states it has
    std::size_t state, at;  ///< its first in `label`, and in an array of all steps' states
  };
  std::vector<sample> samples;
  std::vector<index_t> label;  ///< the class of each state
  std::vector<char> skips;     ///< whether it can follow the state two before
  std::size_t size = 0;        ///< of an array of all steps' states
};
/// Labels of sample n stand from n row_size on, or where row_size is 0 behind those of the sample before. Errors:
/// index_error for a label outside [0, classes), value_error for one that is the blank, or a blank that is no class.
SINTER_SHARED ctc_states make_ctc_states(const std::int64_t* labels, index_t row_size,
                                         const std::vector<index_t>& steps, const std::vector<index_t>& lengths,
                                         index_t classes, index_t blank);
/// Errors: shape_error unless there are as many labels as all lengths together.
SINTER_SHARED void check_ctc_labels(const std::vector<index_t>& lengths, index_t labels);
#if SINTER_DEFINES
SINTER_SHARED ctc_states make_ctc_states(const std::int64_t* labels, index_t row_size,
                                         const std::vector<index_t>& steps, const std::vector<index_t>& lengths,
                                         index_t classes, index_t blank) {
  if (blank < 0 || blank >= classes) refuse<value_error>({"ctc_loss: the blank is class ", blank, " of ", classes});
  ctc_states s;
  index_t place = 0;
  for (std::size_t n = 0; n < steps.size(); ++n) {
    if (row_size > 0) place = static_cast<index_t>(n) * row_size;
    s.samples.push_back({steps[n], 2 * lengths[n] + 1, s.label.size(), s.size});
    s.size += static_cast<std::size_t>(steps[n] * s.samples.back().count);
    index_t before = blank;
    for (index_t i = 0; i < lengths[n]; ++i, ++place) {
      const index_t one = labels[place];
      if (one < 0 || one >= classes) refuse_index({"ctc_loss", "label"}, one, place, classes);
      if (one == blank)
        refuse<value_error>({"ctc_loss: label ", i, " of sample ", static_cast<index_t>(n), " is the blank, class ",
                             blank, "; blanks are not written"});
      s.label.push_back(blank);
      s.skips.push_back(0);
      s.label.push_back(one);
      s.skips.push_back(i > 0 && one != before ? 1 : 0);
      before = one;
    }
    s.label.push_back(blank);
    s.skips.push_back(0);
  }
  return s;
}
SINTER_SHARED void check_ctc_labels(const std::vector<index_t>& lengths, index_t labels) {
  index_t all = 0;
  for (const index_t n : lengths) all += n;
  if (all != labels)
    refuse<shape_error>({"ctc_loss: ", labels, " labels of all samples, whose lengths are ", all, " together"});
}
#endif  // SINTER_DEFINES

template <class T>
inline constexpr T never = -std::numeric_limits<T>::infinity();

/// log(e^a + e^b + e^c)
template <class T>
T log_sum(T a, T b, T c) {
  const T low = b > a ? b : a, most = c > low ? c : low;
  if (most == never<T>) return a + b + c;
  return most + std::log(std::exp(a - most) + std::exp(b - most) + std::exp(c - most));
}

/// The loss of a sample, and in `alpha` the logarithms of the probabilities to be in each state after each step. Only
/// states from which the last ones can be reached are looked at, the others have the probability 0.
template <class T>
T run_ctc(const ctc_states& states, const ctc_states::sample& of, const T* x, const index_t* strides, T* alpha) {
  const index_t* const label = states.label.data() + of.state;
  const char* const skips = states.skips.data() + of.state;
  if (of.steps == 0) return of.count == 1 ? T(0) : -never<T>;
  const index_t n = of.count;
  for (index_t t = 0; t < of.steps; ++t, x += strides[0]) {
    T* const now = alpha + t * n;
    const T* const before = now - n;
    std::fill_n(now, n, never<T>);
    const index_t first = std::max<index_t>(0, n - 2 * (of.steps - t)), end = std::min(n, 2 * (t + 1));
    for (index_t s = first; s < end; ++s) {
      const T here = x[label[s] * strides[2]];
      if (t == 0) now[s] = here;
      else now[s] = here + log_sum(before[s], s > 0 ? before[s - 1] : never<T>, skips[s] ? before[s - 2] : never<T>);
    }
  }
  const T* const last = alpha + (of.steps - 1) * n;
  return -log_sum(last[n - 1], n > 1 ? last[n - 2] : never<T>, never<T>);
}

/// dx -= g times the probability of each class in each step, given the labels. `beta`: room for two of each state.
template <class T>
void reverse_ctc(const ctc_states& states, const ctc_states::sample& of, const T* x, const index_t* strides,
                 const T* alpha, T loss, T g, T* dx, const index_t* dx_strides, T* beta) {
  const index_t* const label = states.label.data() + of.state;
  const char* const skips = states.skips.data() + of.state;
  const index_t n = of.count;
  T* const after = beta + n;  // of the step behind: that of the state and all that follows
  for (index_t t = of.steps - 1; t >= 0; --t) {
    for (index_t s = 0; s < n; ++s) {
      if (t == of.steps - 1) beta[s] = s + 2 < n ? never<T> : T(0);
      else
        beta[s] =
            log_sum(after[s], s + 1 < n ? after[s + 1] : never<T>, s + 2 < n && skips[s + 2] ? after[s + 2] : never<T>);
      const T both = alpha[t * n + s] + beta[s];
      if (both != never<T>) dx[t * dx_strides[0] + label[s] * dx_strides[2]] -= g * std::exp(both + loss);
    }
    for (index_t s = 0; s < n; ++s) after[s] = beta[s] + x[t * strides[0] + label[s] * strides[2]];
  }
}

template <class T>
struct ctc_work {
  std::shared_ptr<const ctc_states> states;
  std::vector<T> alpha, losses;
};

/// log-probabilities (T,N,C) => the losses (N), and what backward asks for.
template <class T, device D>
std::shared_ptr<const ctc_work<T>> ctc_forward(const tensor<T, 3, D>& x, std::shared_ptr<const ctc_states> states) {
  const auto w = std::make_shared<ctc_work<T>>();
  w->alpha.resize(states->size);
  w->losses.resize(states->samples.size());
  backend<D>::pool().parallel_for(x.shape()[1], [&](index_t n) {
    const ctc_states::sample& of = states->samples[static_cast<std::size_t>(n)];
    w->losses[static_cast<std::size_t>(n)] =
        run_ctc(*states, of, x.data() + n * x.strides()[1], x.strides().data(), w->alpha.data() + of.at);
  });
  w->states = std::move(states);
  return w;
}
template <class T, device D>
tensor<T, 3, D> ctc_backward(const tensor<T, 1, D>& g, const tensor<T, 3, D>& x, const ctc_work<T>& w,
                             bool zero_infinity) {
  const tensor<T, 3, D> dx = exp(x) * g.unsqueeze(1);
  const auto& strides = dx.strides();
  backend<D>::pool().parallel_for(x.shape()[1], [&](index_t n) {
    const ctc_states::sample& of = w.states->samples[static_cast<std::size_t>(n)];
    const T loss = w.losses[static_cast<std::size_t>(n)], by = g(n);
    const bool is_infinite = loss == -never<T>;
    T* const to = dx.data() + n * strides[1];
    for (index_t t = is_infinite ? 0 : of.steps; t < x.shape()[0]; ++t)
      for (index_t c = 0; c < x.shape()[2]; ++c)
        to[t * strides[0] + c * strides[2]] =
            t < of.steps && !zero_infinity ? std::numeric_limits<T>::quiet_NaN() : T(0);
    if (is_infinite) return;
    std::vector<T> room(static_cast<std::size_t>(2 * of.count));
    reverse_ctc(*w.states, of, x.data() + n * x.strides()[1], x.strides().data(), w.alpha.data() + of.at, loss, by, to,
                strides.data(), room.data());
  });
  return dx;
}

/// The losses (N) of samples that are not reduced.
template <class X, class L>
auto ctc_losses(const X& log_probs, const L& targets, std::vector<index_t> steps, const std::vector<index_t>& lengths,
                const ctc_options& o) {
  using T = element_of<X>;
  using D = device_of<X>;
  const auto labels = int64_labels(targets);
  index_t row_size = 0;
  if constexpr (L::rank == 2) row_size = labels.shape()[1];
  const auto states = std::make_shared<const ctc_states>(
      make_ctc_states(labels.data(), row_size, steps, lengths, log_probs.shape()[2], o.blank));
  const bool zero_infinity = o.zero_infinity;
  return with_gradient(
      [states, zero_infinity](const tensor<T, 3, D>& x) {
        const auto work = ctc_forward(x, states);
        const auto losses = from_data<T, D>(work->losses, {x.shape()[1]});
        if (zero_infinity)
          for (T& loss : losses)
            if (loss == -never<T>) loss = 0;
        return with_saved(losses, x, work);
      },
      [zero_infinity](const tensor<T, 1, D>& g, const tensor<T, 3, D>& x,
                      const std::shared_ptr<const ctc_work<T>>& work) {
        return ctc_backward(g, x, *work, zero_infinity);
      },
      "ctc_loss")(log_probs);
}

template <class R, class X, class L>
auto ctc_loss_of(const X& log_probs, const L& targets, std::vector<index_t> steps, std::vector<index_t> lengths,
                 const ctc_options& o) {
  if constexpr (std::is_same_v<R, reduction::mean_t>) {
    tensor<element_of<X>, 1, device_of<X>> counts = empty<element_of<X>, device_of<X>>({log_probs.shape()[1]});
    for (std::size_t n = 0; n < lengths.size(); ++n)
      counts(static_cast<index_t>(n)) = static_cast<element_of<X>>(std::max<index_t>(lengths[n], 1));
    return eval(mean(ctc_losses(log_probs, targets, std::move(steps), lengths, o) / counts));
  } else {
    return eval(reduced<R>(ctc_losses(log_probs, targets, std::move(steps), lengths, o)));
  }
}

}  // namespace detail

/// Connectionist temporal classification: -ln of the probability that classes drawn in each step spell the labels, once
/// repeated ones and then blanks are left out. log_probs (T,N,C) are those of a log_softmax, of T steps of N samples.
/// targets are labels (N,S) of any integer type, of which sample n has the first target_lengths[n], or (S), those of
/// all samples one after the other; none is the blank. Sample n has the first input_lengths[n] steps. Lengths are lists
/// or tensors of integers. One sample may be given as (T,C) and (S). Float and double on host devices; threads take a
/// sample each. Runs at once. The mean is that over samples of the loss by its number of labels, or by 1 if it has
/// none; with reduction::sum the sum, with reduction::none the N losses. With fewer steps than the labels need the loss
/// is infinite, unless zero_infinity. As torch.nn.functional.ctc_loss.
///
/// Derivative: exp(log_probs) less the probability of each class given the labels, which is the derivative in the
/// scores before the log_softmax, and goes through that unchanged: PyTorch's too. It is NaN where the loss is infinite.
/// Graves et al., "Connectionist temporal classification: labelling unsegmented sequence data with recurrent neural
/// networks", 2006. Errors: shape_error for targets or lengths that do not fit, value_error for a length that is too
/// large, a blank that is no class, or a label that is the blank, index_error for a label outside [0, C). On a GPU it
/// does not compile; copy to the host.
///
///     variable loss = ctc_loss(log_softmax(scores, 2), texts, steps, lengths, {.zero_infinity = true});
template <class X, class L, class Steps = std::vector<index_t>, class Lengths = std::vector<index_t>,
          detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::ctc_mistake<X, L>>)
auto ctc_loss(const X& log_probs, const L& targets, const Steps& input_lengths, const Lengths& target_lengths,
              const ctc_options& options, R = {}) {
  static constexpr const char* op = "ctc_loss";
  detail::check_defined(op, log_probs);
  detail::check_defined(op, targets);
  const auto x = detail::eval_to_read(log_probs);
  constexpr bool is_one = rank_of<X> == 2;
  const index_t samples = is_one ? 1 : x.shape()[1];
  auto steps = detail::checked_lengths(op, input_lengths, samples, x.shape()[0], "input length",
                                       "the steps of the log-probabilities; it is one of input_lengths");
  auto lengths = detail::checked_lengths(op, target_lengths, samples, targets.shape()[rank_of<L> - 1], "target length",
                                         "the labels; it is one of target_lengths");
  if constexpr (rank_of<L> == 2) {
    if (targets.shape()[0] != samples)
      detail::refuse<shape_error>({op, ": labels of shape ", targets.shape(), " for log-probabilities of shape ",
                                   x.shape(), "; they have a row for each of the ", samples, " samples"});
  } else if constexpr (!is_one) {
    detail::check_ctc_labels(lengths, targets.shape()[0]);
  }
  if constexpr (!is_one) {
    return detail::ctc_loss_of<R>(x, targets, std::move(steps), std::move(lengths), options);
  } else {
    const auto loss = detail::ctc_loss_of<R>(x.unsqueeze(1), targets, std::move(steps), std::move(lengths), options);
    if constexpr (std::is_same_v<R, reduction::none_t>) return loss.select(0, 0);
    else return loss;
  }
}
template <class X, class L, class Steps = std::vector<index_t>, class Lengths = std::vector<index_t>,
          detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::ctc_mistake<X, L>>)
auto ctc_loss(const X& log_probs, const L& targets, const Steps& input_lengths, const Lengths& target_lengths,
              R reduce = {}) {
  return ctc_loss(log_probs, targets, input_lengths, target_lengths, ctc_options{}, reduce);
}
// With the parameters of the functions, so that lengths and options in braces reach them.
template <class X, class L, class Steps = std::vector<index_t>, class Lengths = std::vector<index_t>,
          class R = reduction::mean_t, class Problem = typename detail::ctc_mistake<X, L>::problem,
          class Fix = typename detail::ctc_mistake<X, L>::fix>
void ctc_loss(const X&, const L&, const Steps&, const Lengths&, const ctc_options&, R = {}) = delete;
template <class X, class L, class Steps = std::vector<index_t>, class Lengths = std::vector<index_t>,
          class R = reduction::mean_t, class Problem = typename detail::ctc_mistake<X, L>::problem,
          class Fix = typename detail::ctc_mistake<X, L>::fix>
void ctc_loss(const X&, const L&, const Steps&, const Lengths&, R = {}) = delete;

}  // namespace sinter
