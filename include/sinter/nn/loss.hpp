// sinter/nn/loss.hpp: losses: mse_loss, nll_loss, bce_with_logits; cross_entropy is in ops/.
#pragma once

#include "sinter/ops/cast.hpp"
#include "sinter/ops/gather.hpp"
#include "sinter/ops/log_sigmoid.hpp"
#include "sinter/ops/mean.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/negate.hpp"
#include "sinter/ops/square.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/weighted_cross_entropy.hpp"

namespace sinter {

namespace detail {

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
    refuse<shape_error>({op, ": prediction of shape ", prediction.shape(), " and target of shape ", target.shape(),
                         " differ; reshape one"});
}

}  // namespace detail

template <int, int>
struct prediction_and_target_of_ranks;

namespace detail {

template <class A, class B>
constexpr auto find_loss_mistake() {
  if constexpr (!expression<A> || !expression<B>) return no_operands<A, B>{};
  else if constexpr (!fits<ops::subtract_op, A, B>) return mistake_of<ops::subtract_op, A, B>{};
  else if constexpr (!floating_element<element_of<A>>)
    return mistake<element_type_without_this_op<element_of<A>>, use_another_element_type_or_cast>{};
  else if constexpr (rank_of<A> != rank_of<B>)
    return mistake<prediction_and_target_of_ranks<rank_of<A>, rank_of<B>>, use_reshape_squeeze_or_unsqueeze>{};
  else return fitting<element_of<A>>{};
}
template <class A, class B>
using loss_mistake = decltype(find_loss_mistake<bare<A>, bare<B>>());

}  // namespace detail

/// (prediction - target)^2 of equal shapes, its mean, or with reduction::sum or reduction::none their sum or all of
/// them. Errors: shape_error when the shapes differ.
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto mse_loss(A&& prediction, B&& target, R = {}) {
  detail::check_loss_shapes("mse_loss", prediction, target);
  return detail::reduced<R>(square(std::forward<A>(prediction) - std::forward<B>(target)));
}
template <class A, class B, class R = reduction::mean_t, class Problem = typename detail::loss_mistake<A, B>::problem,
          class Fix = typename detail::loss_mistake<A, B>::fix>
void mse_loss(A&&, B&&, R = {}) = delete;

/// -(t log p + (1 - t) log(1 - p)) with p = sigmoid(logits), from the logits: (1 - t) x - log_sigmoid(x), without
/// overflow. Reductions and errors as mse_loss.
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto bce_with_logits(A&& logits, B&& target, R = {}) {
  detail::check_loss_shapes("bce_with_logits", logits, target);
  return detail::reduced<R>((1 - std::forward<B>(target)) * logits - log_sigmoid(logits));
}
template <class A, class B, class R = reduction::mean_t, class Problem = typename detail::loss_mistake<A, B>::problem,
          class Fix = typename detail::loss_mistake<A, B>::fix>
void bce_with_logits(A&&, B&&, R = {}) = delete;

/// -scores[i, labels[i]] for log-probabilities (N,C,…) and labels (N,…) of any integer type; the mean, the sum, or a
/// loss for each label. cross_entropy is this of log_softmax, in one pass. Runs at once. Errors: shape_error when the
/// shapes do not fit, index_error for a label outside [0, C).
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::classification_mistake<A, B>>)
detail::loss_value<A, R, rank_of<B>> nll_loss(A&& scores, const B& labels, R = {}) {
  return detail::loss_over_axes<R>("nll_loss", std::forward<A>(scores), labels, [](const auto& rows, const auto& y) {
    detail::check_indices({"nll_loss", "label"}, y, rows.shape()[1]);
    const auto picked = eval(detail::make_kernel(ops::gather_op("nll_loss", 1), rows, y.unsqueeze(1))).squeeze(1);
    return eval(detail::reduced<R>(-picked));
  });
}
template <class A, class B, class R = reduction::mean_t,
          class Problem = typename detail::classification_mistake<A, B>::problem,
          class Fix = typename detail::classification_mistake<A, B>::fix>
void nll_loss(A&&, B&&, R = {}) = delete;

}  // namespace sinter
