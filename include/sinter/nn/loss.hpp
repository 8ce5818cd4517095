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
  else if constexpr (std::is_same_v<R, reduction::batchmean_t>)
    return sum(losses) / static_cast<double>(rank_of<E> > 0 ? losses.shape()[0] : 1);
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

/// Weights of the losses of a loss, which broadcast to their shape: a tensor of their rank R, or of fewer axes, which
/// are the last ones.
template <class T, int R, device D>
class loss_weights {
 public:
  loss_weights() = default;
  template <auto Shape>
    requires(tensor<T, Shape, D>::rank <= R)
  loss_weights(const tensor<T, Shape, D>& w) {  // NOLINT: implicit on purpose
    constexpr int N = tensor<T, Shape, D>::rank;
    if (!w.defined()) return;
    extents<R> shape = ones_extents<R>();
    for (int d = 0; d < N; ++d) shape[R - N + d] = w.shape()[d];
    value_ = w.reshape(shape);
  }
  bool defined() const { return value_.defined(); }
  /// They, for losses of a shape.
  const tensor<T, R, D>& of(const char* op, const char* what, const extents<R>& losses) const {
    for (int d = 0; d < R; ++d)
      if (value_.shape()[d] != losses[d] && value_.shape()[d] != 1)
        refuse<shape_error>({op, ": ", what, " of shape ", value_.shape(), " for losses of shape ", losses,
                             "; each axis has their extent or 1"});
    return value_;
  }

 private:
  tensor<T, R, D> value_;
};

/// losses by their weights, if there are such, and reduced.
template <class R, class E>
auto weighted(const char* op, const E& losses, const loss_weights<element_of<E>, rank_of<E>, device_of<E>>& weight) {
  if (!weight.defined()) return eval(reduced<R>(losses));
  return eval(reduced<R>(losses * weight.of(op, "weight", losses.shape())));
}

}  // namespace detail

/// What binary_cross_entropy and multilabel_soft_margin_loss take into account.
template <class T, int R, device D>
struct loss_options {
  detail::loss_weights<T, R, D> weight = {};  ///< of each loss; none: all 1
};
/// What bce_with_logits takes into account.
template <class T, int R, device D>
struct bce_with_logits_options {
  detail::loss_weights<T, R, D> weight = {};      ///< of each loss; none: all 1
  detail::loss_weights<T, R, D> pos_weight = {};  ///< of the part that grows with the target; none: all 1
};
/// What nll_loss takes into account.
template <class T, device D>
struct nll_loss_options {
  tensor<T, 1, D> weight = {};       ///< of each class, (C,); none: all 1
  std::int64_t ignore_index = -100;  ///< a label that counts as no sample
};

namespace detail {

template <class E>
using loss_options_for = loss_options<element_of<E>, rank_of<E>, device_of<E>>;
template <class E>
using bce_with_logits_options_for = bce_with_logits_options<element_of<E>, rank_of<E>, device_of<E>>;
template <class E>
using nll_loss_options_for = nll_loss_options<element_of<E>, device_of<E>>;

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
SINTER_TEXT_REJECTION(mse_loss)
SINTER_LOSS_IN_BRACES(mse_loss)

/// -(t log p + (1 - t) log(1 - p)) with p = sigmoid(logits), from the logits: (1 - t) x - log_sigmoid(x), without
/// overflow. Reductions and errors as mse_loss.
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto bce_with_logits(A&& logits, B&& target, R = {}) {
  detail::check_loss_shapes("bce_with_logits", logits, target);
  return detail::reduced<R>((1 - std::forward<B>(target)) * logits - log_sigmoid(logits));
}
/// The same with weights: each loss times `weight`, and in it t log p times `pos_weight`, which may stand for how rare
/// a class is. Both broadcast to the losses. Runs at once. Errors: shape_error for weights that do not fit.
///
///     variable loss = bce_with_logits(x, target, {.pos_weight = rare});
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto bce_with_logits(A&& logits, B&& target, const detail::bce_with_logits_options_for<A>& options, R = {}) {
  detail::check_loss_shapes("bce_with_logits", logits, target);
  const auto losses = [&] {
    if (!options.pos_weight.defined()) return eval((1 - target) * logits - log_sigmoid(logits));
    const auto& more = options.pos_weight.of("bce_with_logits", "pos_weight", logits.shape());
    return eval((1 - target) * logits - ((more - 1) * target + 1) * log_sigmoid(logits));
  }();
  return detail::weighted<R>("bce_with_logits", losses, options.weight);
}
template <class A, class B, class R = reduction::mean_t, class Problem = typename detail::loss_mistake<A, B>::problem,
          class Fix = typename detail::loss_mistake<A, B>::fix>
void bce_with_logits(A&&, B&&, R = {}) = delete;
SINTER_TEXT_REJECTION(bce_with_logits)
/// bce_with_logits.
///
///     variable loss = binary_cross_entropy_with_logits(x, target);
template <class A, class B, class... More>
auto binary_cross_entropy_with_logits(A&& logits, B&& target, const More&... more) {
  return bce_with_logits(std::forward<A>(logits), std::forward<B>(target), more...);
}
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto binary_cross_entropy_with_logits(A&& logits, B&& target, const detail::bce_with_logits_options_for<A>& options,
                                      R reduce = {}) {
  return bce_with_logits(std::forward<A>(logits), std::forward<B>(target), options, reduce);
}

/// -scores[i, labels[i]] for log-probabilities (N,C,…) and labels (N,…) of any integer type; the mean, the sum, or a
/// loss for each label. cross_entropy is this of log_softmax, in one pass. Runs at once. Errors: shape_error when the
/// shapes do not fit, index_error for a label outside [0, C).
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::classification_mistake<A, B>>)
detail::loss_value<A, R, rank_of<B>> nll_loss(A&& scores, const B& labels, R = {}) {
  return detail::loss_over_axes<R>("nll_loss", std::forward<A>(scores), labels, [](const auto& rows, const auto& y) {
    return eval(detail::reduced<R>(-detail::scores_at("nll_loss", rows, y)));
  });
}
/// The same with class weights and an ignored label; the mean is that of the samples that count, by the weights of
/// their classes. Errors: shape_error for weights that are not one for each class, index_error for labels outside
/// [0, C) that are not ignored.
///
///     auto loss = nll_loss(log_p, labels, {.weight = rare, .ignore_index = -1});
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::classification_mistake<A, B>>)
detail::loss_value<A, R, rank_of<B>> nll_loss(A&& scores, const B& labels,
                                              const detail::nll_loss_options_for<A>& options, R = {}) {
  return detail::loss_over_axes<R>("nll_loss", std::forward<A>(scores), labels, [&](const auto& rows, const auto& y) {
    const auto samples = detail::weigh_samples("nll_loss", rows, y, options.weight, options.ignore_index);
    return detail::reduce_losses<R>(samples.losses, eval(sum(samples.counts)));
  });
}
template <class A, class B, class R = reduction::mean_t,
          class Problem = typename detail::classification_mistake<A, B>::problem,
          class Fix = typename detail::classification_mistake<A, B>::fix>
void nll_loss(A&&, B&&, R = {}) = delete;

}  // namespace sinter
