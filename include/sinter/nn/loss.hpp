// sinter/nn/loss.hpp: losses: mse_loss, nll_loss, bce_with_logits; cross_entropy is in ops/.
#pragma once

#include "sinter/ops/cast.hpp"
#include "sinter/ops/cross_entropy.hpp"
#include "sinter/ops/gather.hpp"
#include "sinter/ops/log_sigmoid.hpp"
#include "sinter/ops/mean.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/negate.hpp"
#include "sinter/ops/square.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter {

namespace detail {

template <class R>
concept loss_reduction = is_one_of<R, reduction::none_t, reduction::sum_t, reduction::mean_t>;

template <class R, class E>
auto reduced(E&& losses) {
  if constexpr (std::is_same_v<R, reduction::mean_t>) return mean(std::forward<E>(losses));
  else if constexpr (std::is_same_v<R, reduction::sum_t>) return sum(std::forward<E>(losses));
  else return bare<E>(std::forward<E>(losses));
}

/// Losses do not broadcast: a (N,1) prediction against (N) targets would silently compare all pairs.
template <class A, class B>
void check_loss_shapes(const char* op, const A& prediction, const B& target) {
  check_defined(op, prediction);
  check_defined(op, target);
  if (!(prediction.shape() == target.shape()))
    throw shape_error(std::string(op) + ": prediction of shape " + shape_text(prediction.shape()) + " and target of shape " +
                      shape_text(target.shape()) + " differ; reshape one");
}

template <class A, class B>
concept prediction_and_target = expression<A> && expression<B> && floating_element<element_of<A>> && same_device<A, B> &&
                                std::is_same_v<element_of<A>, element_of<B>> && rank_of<A> == rank_of<B>;

/// Labels as int64 on their device, each in [0, classes).
template <class L>
auto checked_labels(const char* op, const L& labels, index_t classes) {
  const auto y = [&] {
    if constexpr (std::is_same_v<element_of<L>, std::int64_t>) return eval(labels).contiguous();
    else return eval(cast<std::int64_t>(labels));
  }();
  backend<device_of<L>>::check_range(op, "label", access::data(y), y.numel(), classes);
  return y;
}

}  // namespace detail

// A loss against targets or labels on another device.
#define SINTER_LOSS_REJECTION(name)                                                                                           \
  template <expression A, expression B, class Problem = operands_on_different_devices<device_of<A>, device_of<B>>,            \
            class Fix = copy_one_operand_with_dot_to, class R = reduction::mean_t>                                            \
    requires(!same_device<A, B>)                                                                                              \
  void name(const A&, const B&, R = {}) = delete;

/// (prediction - target)^2 of equal shapes, its mean, or with reduction::sum or reduction::none their sum or all of
/// them. Errors: shape_error when the shapes differ.
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires detail::prediction_and_target<A, B>
auto mse_loss(A&& prediction, B&& target, R = {}) {
  detail::check_loss_shapes("mse_loss", prediction, target);
  return detail::reduced<R>(square(std::forward<A>(prediction) - std::forward<B>(target)));
}
SINTER_LOSS_REJECTION(mse_loss)

/// -(t log p + (1 - t) log(1 - p)) with p = sigmoid(logits), from the logits: (1 - t) x - log_sigmoid(x), without
/// overflow. Reductions and errors as mse_loss.
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires detail::prediction_and_target<A, B>
auto bce_with_logits(A&& logits, B&& target, R = {}) {
  detail::check_loss_shapes("bce_with_logits", logits, target);
  return detail::reduced<R>((1 - std::forward<B>(target)) * logits - log_sigmoid(logits));
}
SINTER_LOSS_REJECTION(bce_with_logits)

/// -scores[i, labels[i]] for log-probabilities (N,C) and labels (N,) of any integer type; mean over the batch, sum, or
/// the N losses. cross_entropy is this of log_softmax, in one pass. Errors: shape_error when the batches differ,
/// index_error for a label outside [0, C).
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::logits_and_labels<A, B> && same_device<A, B>)
auto nll_loss(A&& scores, const B& labels, R = {}) {
  detail::check_defined("nll_loss", scores);
  detail::check_defined("nll_loss", labels);
  if (labels.shape()[0] != scores.shape()[0])
    throw shape_error("nll_loss: " + std::to_string(labels.shape()[0]) + " labels for scores of shape " + detail::shape_text(scores.shape()));
  const auto y = detail::checked_labels("nll_loss", labels, scores.shape()[1]);
  const auto picked = detail::gather_evaluated("nll_loss", eval(std::forward<A>(scores)), 1, y.unsqueeze(1));
  return detail::reduced<R>(-picked.squeeze(1));
}
SINTER_LOSS_REJECTION(nll_loss)

#undef SINTER_LOSS_REJECTION

}  // namespace sinter
