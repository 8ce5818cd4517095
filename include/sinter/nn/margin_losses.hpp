// sinter/nn/margin_losses.hpp: losses that ask one score or distance to exceed another by a margin.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/nn/loss.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/any.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/less.hpp"
#include "sinter/ops/less_equal.hpp"
#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/logical_not.hpp"
#include "sinter/ops/logical_or.hpp"
#include "sinter/ops/minimum.hpp"
#include "sinter/ops/norm.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/relu.hpp"
#include "sinter/ops/sqrt.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {

struct use_vectors_or_rows_and_a_target_without_the_last_axis;
struct use_rows_of_scores_and_of_labels;

/// What triplet_margin_loss takes into account.
struct triplet_margin_options {
  double margin = 1;
  double eps = 1e-6;  ///< added to each difference
  bool swap = false;  ///< takes the distance of positive and negative where it is the smaller one
};
/// What multi_margin_loss takes into account.
template <class T, device D>
struct multi_margin_options {
  int p = 1;  ///< the power of what is missing, 1 or 2
  double margin = 1;
  tensor<T, 1, D> weight = {};  ///< of each class, (C,); none: all 1
};

namespace detail {

template <class A, class B, class C>
constexpr auto find_triple_mistake() {
  if constexpr (!is_fitting<loss_mistake<A, B>>) return loss_mistake<A, B>{};
  else return loss_mistake<A, C>{};
}
/// Of three operands of one shape.
template <class A, class B, class C>
using triple_mistake = decltype(find_triple_mistake<bare<A>, bare<B>, bare<C>>());

template <class A, class B, class C>
constexpr auto find_pairs_mistake() {
  if constexpr (!is_fitting<loss_mistake<A, B>>) return loss_mistake<A, B>{};
  else if constexpr (!expression<C>) return no_operands<C>{};
  else if constexpr (!fits<ops::subtract_op, A, C>) return mistake_of<ops::subtract_op, A, C>{};
  else if constexpr (rank_of<A> < 1 || rank_of<C> != rank_of<A> - 1)
    return mistake<prediction_and_target_of_ranks<rank_of<A>, rank_of<C>>,
                   use_vectors_or_rows_and_a_target_without_the_last_axis>{};
  else return fitting<element_of<A>>{};
}
/// Of two lists of vectors, and a number for each pair.
template <class A, class B, class C>
using pairs_mistake = decltype(find_pairs_mistake<bare<A>, bare<B>, bare<C>>());

template <class E, class L>
constexpr auto find_label_lists_mistake() {
  if constexpr (!expression<E> || !expression<L>) return no_operands<E, L>{};
  else if constexpr (!same_device<E, L>)
    return mistake<operands_on_different_devices<device_of<E>, device_of<L>>, copy_one_operand_with_dot_to>{};
  else if constexpr (!floating_element<element_of<E>> || !integer_element<element_of<L>>)
    return mistake<logits_and_labels_with_elements_of_type<element_of<E>, element_of<L>>,
                   use_floating_logits_and_integer_labels>{};
  else if constexpr (rank_of<E> < 1 || rank_of<E> > 2 || rank_of<L> != rank_of<E>)
    return mistake<logits_and_labels_of_ranks<rank_of<E>, rank_of<L>>, use_rows_of_scores_and_of_labels>{};
  else return fitting<element_of<E>>{};
}
/// Of rows of scores, and of labels.
template <class E, class L>
using label_lists_mistake = decltype(find_label_lists_mistake<bare<E>, bare<L>>());

/// max(0, x), with the derivative of x at 0 too.
template <class E>
auto not_below_zero(const E& x) {
  return where(x < 0, 0, x);
}

/// Of each row the distance of a and b.
template <class A, class B>
auto row_distance(const A& a, const B& b, double eps) {
  return eval(norm(a - b + eps, -1));
}

/// The cosine of the angle of the rows of a and b.
template <class A, class B>
auto row_cosine(const A& a, const B& b) {
  constexpr double eps = 1e-12;
  return eval(sum(a * b, -1) / (sqrt(sum(a * a, -1) + eps) * sqrt(sum(b * b, -1) + eps)));
}

template <class C, class E>
auto cosine_losses(const C& cosine, const E& target, double margin) {
  return where(target == 1, 1 - cosine, 0) + where(target == -1, not_below_zero(cosine - margin), 0);
}
/// Rows have one target each.
template <class A, class B>
void check_row_targets(const char* op, const A& rows, const B& target) {
  check_defined(op, target);
  bool fits = true;
  for (int d = 0; d < rank_of<B>; ++d) fits = fits && target.shape()[d] == rows.shape()[d];
  if (!fits)
    refuse<shape_error>(
        {op, ": target of shape ", target.shape(), " for rows of shape ", rows.shape(), "; each row has one"});
}

/// A row (C,) as a list of one.
template <class E>
auto as_rows(const E& x) {
  if constexpr (E::rank == 1) return x.unsqueeze(0);
  else return x;
}

/// sum over the labels l of a row, and the other classes c, of max(0, 1 - x[l] + x[c]), over C. Of rows (M,C).
template <class E, device D>
auto label_list_losses(const E& rows, const tensor<std::int64_t, 2, D>& labels) {
  const index_t classes = rows.shape()[1];
  const auto columns = arange<std::int64_t, D>(classes);
  // A label counts unless a negative one stands there or before.
  const auto counts = eval(!any(labels.unsqueeze(1) < 0 && columns <= columns.reshape({classes, 1}),
                                2));  // (M, label, before) => (M, label)
  const auto safe = eval(where(counts, labels, 0));
  check_indices({"multilabel_margin_loss", "label"}, safe, classes);
  // Of each class whether it is among them.
  const auto asked =
      eval(any(safe.unsqueeze(2) == columns && counts.unsqueeze(2), 1));  // (M, label, class) => (M, class)
  const auto scores = eval(make_kernel(ops::gather_op("multilabel_margin_loss", 1), rows, safe));
  const auto missing = relu(1 - scores.unsqueeze(2) + rows.unsqueeze(1));
  const index_t both[2] = {1, 2};
  return eval(sum(where(counts.unsqueeze(2) && !asked.unsqueeze(1), missing, 0), both) / static_cast<double>(classes));
}

}  // namespace detail

// name(a, b, target, margin, reduction), whose margin is 0 where it is not given, of a formula.
#define SINTER_LOSS_OF_PAIRS(name, judged, shapes, ...)                              \
  template <class A, class B, class C, detail::loss_reduction R = reduction::mean_t> \
    requires(detail::is_fitting<detail::judged<A, B, C>>)                            \
  auto name(const A& a, const B& b, const C& target, double margin, R = {}) {        \
    detail::check_loss_shapes(#name, a, b);                                          \
    shapes;                                                                          \
    return eval(detail::reduced<R>(__VA_ARGS__));                                    \
  }                                                                                  \
  template <class A, class B, class C, detail::loss_reduction R = reduction::mean_t> \
    requires(detail::is_fitting<detail::judged<A, B, C>>)                            \
  auto name(const A& a, const B& b, const C& target, R reduce = {}) {                \
    return name(a, b, target, 0, reduce);                                            \
  }                                                                                  \
  SINTER_REJECTIONS_OF_THREE(name, detail::judged)

/// max(0, margin - target (a - b)), of scores a that should exceed scores b where the target is 1, and b those of a
/// where it is -1. All have one shape. Runs at once. Reductions and errors as mse_loss.
///
///     variable loss = margin_ranking_loss(better, worse, ones_like(worse), 0.5);
SINTER_LOSS_OF_PAIRS(margin_ranking_loss, triple_mistake, detail::check_loss_shapes("margin_ranking_loss", a, target),
                     detail::not_below_zero(margin - target * (a - b)))

/// 1 - cos(a, b) where the target is 1, max(0, cos(a, b) - margin) where it is -1, otherwise 0: of two vectors (C,), or
/// of the rows of (N,C) with targets (N,). Runs at once. Reductions as mse_loss. Errors: shape_error.
///
///     variable loss = cosine_embedding_loss(left, right, same, 0.1);
SINTER_LOSS_OF_PAIRS(cosine_embedding_loss, pairs_mistake,
                     detail::check_row_targets("cosine_embedding_loss", a, target),
                     detail::cosine_losses(detail::row_cosine(a, b), target, margin))

/// max(0, |anchor - positive| - |anchor - negative| + margin), of vectors along the last axis, all of one shape:
/// anchors that should be nearer to the positive than to the negative. Distances are Euclidean, of differences to which
/// eps is added. Runs at once. Reductions and errors as mse_loss. Balntas et al., "Learning shallow convolutional
/// feature descriptors with triplet losses", 2016.
///
///     variable loss = triplet_margin_loss(anchor, same, other, {.margin = 0.2});
template <class A, class B, class C, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::triple_mistake<A, B, C>> && rank_of<A> >= 1)
auto triplet_margin_loss(const A& anchor, const B& positive, const C& negative, const triplet_margin_options& o = {},
                         R = {}) {
  detail::check_loss_shapes("triplet_margin_loss", anchor, positive);
  detail::check_loss_shapes("triplet_margin_loss", anchor, negative);
  const auto to_same = detail::row_distance(anchor, positive, o.eps);
  const auto to_other = detail::row_distance(anchor, negative, o.eps);
  if (!o.swap) return eval(detail::reduced<R>(detail::not_below_zero(to_same - to_other + o.margin)));
  const auto between = detail::row_distance(positive, negative, o.eps);
  return eval(detail::reduced<R>(detail::not_below_zero(to_same - minimum(to_other, between) + o.margin)));
}
SINTER_REJECTIONS_OF_THREE(triplet_margin_loss, detail::triple_mistake)

/// sum over the classes c other than the label y of max(0, margin - x[y] + x[c])^p over the number of classes, for
/// scores x (N,C) and labels (N,), or (C,) and one label. With `weight` times that of class y. Runs at once. Reductions
/// as mse_loss. Errors: shape_error, index_error for a label outside [0, C), value_error for a p other than 1 and 2.
///
///     variable loss = multi_margin_loss(scores, labels);
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::classification_mistake<A, B>>)
detail::loss_value<A, R, rank_of<B>> multi_margin_loss(A&& scores, const B& labels,
                                                       const multi_margin_options<element_of<A>, device_of<A>>& o = {},
                                                       R = {}) {
  if (o.p != 1 && o.p != 2) detail::refuse<value_error>({"multi_margin_loss: p is ", o.p, "; it must be 1 or 2"});
  return detail::loss_over_axes<R>(
      "multi_margin_loss", std::forward<A>(scores), labels, [&](const auto& rows, const auto& y) {
        const index_t classes = rows.shape()[1];
        detail::check_class_weights("multi_margin_loss", o.weight, classes);
        const auto asked = detail::scores_at("multi_margin_loss", rows, y).unsqueeze(1);
        const auto others = arange<std::int64_t, device_of<A>>(classes) != y.unsqueeze(1);
        const auto missing = eval(where(others, relu(o.margin - asked + rows), 0));
        const auto total = o.p == 1 ? eval(sum(missing, 1)) : eval(sum(missing * missing, 1));
        const auto losses = eval(total / static_cast<double>(classes));
        if (!o.weight.defined()) return eval(detail::reduced<R>(losses));
        return eval(detail::reduced<R>(losses * index_select(o.weight, 0, y)));
      });
}
SINTER_REJECTIONS_OF_TWO(multi_margin_loss, detail::classification_mistake)

/// sum over the labels l of a sample, and the classes c that are none of them, of max(0, 1 - x[l] + x[c]), over the
/// number of classes C: of scores (N,C) and as many labels (N,C), which end where a negative one stands, or of (C,) and
/// (C,). Runs at once. Reductions as mse_loss. Errors: shape_error, index_error for a label of C or more.
///
///     variable loss = multilabel_margin_loss(scores, tensor<int, 2>{{3, 0, -1, -1}});
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::label_lists_mistake<A, B>>)
detail::loss_value<A, R, rank_of<B> - 1> multilabel_margin_loss(A&& scores, const B& labels, R = {}) {
  detail::check_loss_shapes("multilabel_margin_loss", scores, labels);
  const auto rows = detail::as_rows(detail::eval_to_read(std::forward<A>(scores)));
  const auto losses = detail::label_list_losses(rows, detail::as_rows(detail::int64_labels(labels)));
  if constexpr (std::is_same_v<R, reduction::none_t> && rank_of<B> == 1) return losses.select(0, 0);
  else return eval(detail::reduced<R>(losses));
}
SINTER_REJECTIONS_OF_TWO(multilabel_margin_loss, detail::label_lists_mistake)

/// The mean over the last axis of bce_with_logits, whose target may be 1 for several classes: (…,C) and (…,C) => (…),
/// and of these the mean, or as reduced. `weight` of each loss broadcasts to (…,C). Runs at once. Errors as
/// bce_with_logits.
///
///     variable loss = multilabel_soft_margin_loss(scores, tags);
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>> && rank_of<A> >= 1)
auto multilabel_soft_margin_loss(const A& logits, const B& target, const detail::loss_options_for<A>& o = {}, R = {}) {
  const auto losses = bce_with_logits(logits, target, {.weight = o.weight}, reduction::none);
  return eval(detail::reduced<R>(mean(losses, -1)));
}
SINTER_REJECTIONS_OF_TWO(multilabel_soft_margin_loss, detail::loss_mistake)

#undef SINTER_LOSS_OF_PAIRS

}  // namespace sinter
