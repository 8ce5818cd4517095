// sinter/ops/weighted_cross_entropy.hpp: cross-entropy over more axes, with class weights, ignored labels, smoothing,
// and against probabilities.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/ops/cross_entropy.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/gather.hpp"
#include "sinter/ops/log_softmax.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/negate.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {

/// What cross_entropy takes into account, as torch.nn.functional.cross_entropy.
template <class T, device D>
struct cross_entropy_options {
  tensor<T, 1, D> weight = {};       ///< of each class, (C,); none: all 1
  std::int64_t ignore_index = -100;  ///< a label that counts as no sample
  double label_smoothing = 0;        ///< the part of a target that all classes share, in [0, 1]
};

namespace detail {

template <class R>
concept loss_reduction = is_one_of<R, reduction::none_t, reduction::sum_t, reduction::mean_t>;

/// The type of a loss of E over labels of rank R, or of its mean or sum.
template <class E, class R, int Rank>
using loss_value = typename result_of_point<element_of<E>, std::is_same_v<R, reduction::none_t> ? Rank : 0,
                                            device_of<E>, bare<E>::order>::type;

/// (N,C,…) => (N…,C), or (C) => (1,C).
template <class X>
auto class_rows(const X& x) {
  constexpr int R = X::rank;
  if constexpr (R == 2) {
    return x;
  } else {
    const index_t classes = x.shape()[R == 1 ? 0 : 1];
    index_t rows = 1, axes[std::size_t{R}] = {};
    for (int d = 0; d < R; ++d) {
      if (R == 1 || d != 1) rows *= R == 1 ? 1 : x.shape()[d];
      axes[d] = d == 0 ? 0 : d + 1 < R ? d + 1 : 1;
    }
    if constexpr (R == 1) return x.reshape({rows, classes});
    else return x.permute(axes).reshape({rows, classes});
  }
}

/// Labels have the shape of the logits without axis 1.
template <int R>
void check_label_shape(const char* op, const extents<R>& logits, const extents<R - 1>& labels) {
  bool fits = true;
  for (int d = 0, from = 0; d < R - 1; ++d, ++from) {
    if (from == 1) ++from;
    fits = fits && labels[d] == logits[from];
  }
  if (!fits)
    refuse<shape_error>({op, ": labels of shape ", labels, " for logits of shape ", logits,
                         "; labels have the shape of the logits without axis 1"});
}

/// losses, or their sum, or that divided by `count`.
template <class R, class Losses, class Count>
auto reduce_losses(const Losses& losses, const Count& count) {
  if constexpr (std::is_same_v<R, reduction::mean_t>) return eval(sum(losses) / count);
  else if constexpr (std::is_same_v<R, reduction::sum_t>) return eval(sum(losses));
  else return eval(losses);
}

/// Each class has a weight, or none has.
template <class T, device D>
void check_class_weights(const char* op, const tensor<T, 1, D>& weight, index_t classes) {
  if (weight.defined() && weight.shape()[0] != classes)
    refuse<shape_error>({op, ": weights of shape ", weight.shape(), " for ", classes, " classes; each class has one"});
}
template <class T, device D>
void check_options(const cross_entropy_options<T, D>& o, index_t classes) {
  if (!(o.label_smoothing >= 0 && o.label_smoothing <= 1))
    refuse<value_error>({"cross_entropy: label_smoothing is ", o.label_smoothing, "; it must be in [0, 1]"});
  check_class_weights("cross_entropy", o.weight, classes);
}

/// The score of each label (M,) in rows of scores (M,C).
template <class E, device D>
auto scores_at(const char* op, const E& rows, const tensor<std::int64_t, 1, D>& labels) {
  check_indices({op, "label"}, labels, rows.shape()[1]);
  return eval(make_kernel(ops::gather_op(op, 1), rows, labels.unsqueeze(1))).squeeze(1);
}

template <class Losses, class Counts>
struct weighted_samples {
  Losses losses;  ///< the score of each label without its sign, times `counts`
  Counts counts;  ///< the weight of its class; an ignored one is 0, and so is its loss
};
/// Of rows of scores (M,C) and labels (M,).
template <class E, class T, device D>
auto weigh_samples(const char* op, const E& rows, const tensor<std::int64_t, 1, D>& labels,
                   const tensor<T, 1, D>& weight, std::int64_t ignored) {
  check_class_weights(op, weight, rows.shape()[1]);
  const auto present = eval(labels != ignored);
  const auto safe = eval(where(present, labels, 0));
  const auto scores = scores_at(op, rows, safe);
  tensor<T, 1, D> counts = cast<T>(present);
  if (weight.defined()) counts = counts * index_select(weight, 0, safe);
  const auto losses = eval(where(present, -scores * counts, 0));
  return weighted_samples<std::remove_const_t<decltype(losses)>, tensor<T, 1, D>>{losses, counts};
}

/// Of rows of scores (M,C) and labels (M,).
template <class R, class E, class T, device D>
auto cross_entropy_of_rows(const E& rows, const tensor<std::int64_t, 1, D>& labels,
                           const cross_entropy_options<T, D>& o) {
  const index_t classes = rows.shape()[1];
  check_options(o, classes);
  const auto log_p = eval(log_softmax(rows, 1));
  const auto samples = weigh_samples("cross_entropy", log_p, labels, o.weight, o.ignore_index);
  const auto count = eval(sum(samples.counts));
  if (o.label_smoothing == 0) return reduce_losses<R>(samples.losses, count);
  const double each = o.label_smoothing / static_cast<double>(classes);
  const auto present = eval(cast<T>(labels != o.ignore_index) * each);
  const auto all_classes = [&] {
    if (o.weight.defined()) return eval(sum(log_p * o.weight, 1));
    return eval(sum(log_p, 1));
  }();
  return reduce_losses<R>(samples.losses * (1 - o.label_smoothing) - all_classes * present, count);
}

/// make(rows, labels) of logits, or other scores, and labels of any rank.
template <class R, class E, class L, class Make>
loss_value<E, R, bare<L>::rank> loss_over_axes(const char* op, E&& logits, const L& labels, const Make& make) {
  check_defined(op, logits);
  check_defined(op, labels);
  check_label_shape(op, logits.shape(), labels.shape());
  const auto rows = class_rows(eval_to_read(std::forward<E>(logits)));
  const auto loss = make(rows, int64_labels(labels).reshape({labels.shape().numel()}));
  if constexpr (!std::is_same_v<R, reduction::none_t> || bare<L>::rank == 1) return loss;
  else if constexpr (bare<L>::rank == 0) return loss.select(0, 0);
  else return loss.reshape(labels.shape().values);
}

template <class E, class P>
constexpr auto find_distribution_mistake() {
  if constexpr (!expression<E> || !expression<P>) return no_operands<E, P>{};
  else if constexpr (!floating_element<element_of<E>> || !floating_element<element_of<P>>) return not_operands{};
  else if constexpr (!is_fitting<operand_check<E, P>>) return operand_check<E, P>{};
  else if constexpr (rank_of<E> < 1 || rank_of<P> != rank_of<E>)
    return mistake<logits_and_labels_of_ranks<rank_of<E>, rank_of<P>>, use_reshape_squeeze_or_unsqueeze>{};
  else return fitting<element_of<E>>{};
}
template <class E, class P>
using distribution_mistake = decltype(find_distribution_mistake<bare<E>, bare<P>>());
template <class E, class P>
concept compares_distributions = is_fitting<distribution_mistake<E, P>>;

template <class E>
using cross_entropy_options_for = cross_entropy_options<element_of<E>, device_of<E>>;

}  // namespace detail

/// cross_entropy of logits (N,C,…) against labels (N,…), or of (C,) against one label: the mean over all labels, their
/// sum, or a loss for each. Runs at once. Errors: as of (N,C) against (N,).
///
///     variable loss = cross_entropy(scores, classes);  // (N,C,H,W) against (N,H,W)
template <class E, class L, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::classification_mistake<E, L>> && rank_of<E> != 2)
detail::loss_value<E, R, rank_of<L>> cross_entropy(E&& logits, const L& labels, R = {}) {
  return detail::loss_over_axes<R>("cross_entropy", std::forward<E>(logits), labels,
                                   [](const auto& rows, const auto& y) { return eval(cross_entropy(rows, y, R{})); });
}

/// The same with class weights, an ignored label, and label smoothing s: the target of a sample with label y is
/// 1 - s + s / C for y and s / C for the others. The mean is that of the samples that count, by the weights of their
/// classes. As torch.nn.functional.cross_entropy; without options, a label outside [0, C) is an error. Runs at once.
/// Szegedy et al., "Rethinking the Inception architecture", 2016. Errors: shape_error for weights that are not one for
/// each class, value_error for a smoothing outside [0, 1], index_error for labels outside [0, C) that are not ignored.
///
///     auto loss = cross_entropy(logits, labels, {.weight = rare, .label_smoothing = 0.1});
template <class E, class L, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::classification_mistake<E, L>>)
detail::loss_value<E, R, rank_of<L>> cross_entropy(E&& logits, const L& labels,
                                                   const detail::cross_entropy_options_for<E>& options, R = {}) {
  return detail::loss_over_axes<R>(
      "cross_entropy", std::forward<E>(logits), labels,
      [&](const auto& rows, const auto& y) { return detail::cross_entropy_of_rows<R>(rows, y, options); });
}

/// -sum over classes of p log_softmax(logits), for probabilities p of the logits' shape (N,C,…); the mean is that over
/// samples. ignore_index has no meaning here. Runs at once. Errors: shape_error when the shapes differ.
///
///     variable loss = cross_entropy(student, softmax(teacher, 1));
template <class E, class P, detail::loss_reduction R = reduction::mean_t>
  requires detail::compares_distributions<E, P>
detail::loss_value<E, R, rank_of<P> - 1> cross_entropy(E&& logits, P&& probabilities,
                                                       const detail::cross_entropy_options_for<E>& options, R = {}) {
  detail::check_defined("cross_entropy", logits);
  detail::check_defined("cross_entropy", probabilities);
  if (!(logits.shape() == probabilities.shape()))
    detail::refuse<shape_error>({"cross_entropy: logits of shape ", logits.shape(), " and probabilities of shape ",
                                 probabilities.shape(), " differ"});
  constexpr int axis = rank_of<E> == 1 ? 0 : 1;
  const index_t classes = logits.shape()[axis];
  detail::check_options(options, classes);
  const auto log_p = eval(log_softmax(std::forward<E>(logits), axis));
  const double s = options.label_smoothing, each = s / static_cast<double>(classes);
  const auto losses = [&] {
    const auto targets = std::forward<P>(probabilities) * (1 - s) + each;
    if (!options.weight.defined()) return eval(-sum(targets * log_p, axis));
    index_t shape[std::size_t{rank_of<E>}] = {};
    for (index_t& n : shape) n = 1;
    shape[axis] = classes;
    return eval(-sum(targets * log_p * options.weight.reshape(shape), axis));
  }();
  return detail::reduce_losses<R>(losses, static_cast<double>(losses.numel()));
}
template <class E, class P, detail::loss_reduction R = reduction::mean_t>
  requires detail::compares_distributions<E, P>
detail::loss_value<E, R, rank_of<P> - 1> cross_entropy(E&& logits, P&& probabilities, R r = {}) {
  return cross_entropy(std::forward<E>(logits), std::forward<P>(probabilities), detail::cross_entropy_options_for<E>{},
                       r);
}
template <class E, class P, class R = reduction::mean_t,
          class Problem = typename detail::distribution_mistake<E, P>::problem,
          class Fix = typename detail::distribution_mistake<E, P>::fix>
  requires(floating_element<element_of<P>>)
void cross_entropy(E&&, P&&, R = {}) = delete;

SINTER_TEXT_REJECTION(cross_entropy)

}  // namespace sinter
