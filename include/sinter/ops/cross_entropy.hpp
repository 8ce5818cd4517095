// sinter/ops/cross_entropy.hpp: the cross-entropy of scores against class labels.
#pragma once

#include "sinter/core/reduction.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/indices.hpp"
#include "sinter/ops/mean.hpp"

namespace sinter {

template <class...>
struct logits_and_labels_with_elements_of_type;
template <int, int>
struct logits_and_labels_of_ranks;
struct use_floating_logits_and_integer_labels;
struct use_labels_of_the_shape_of_the_logits_without_axis_1;

namespace detail {

template <class E, class L>
constexpr auto find_classification_mistake() {
  if constexpr (!expression<E> || !expression<L>) return no_operands<E, L>{};
  else if constexpr (!same_device<E, L>)
    return mistake<operands_on_different_devices<device_of<E>, device_of<L>>, copy_one_operand_with_dot_to>{};
  else if constexpr (!floating_element<element_of<E>> || !integer_element<element_of<L>>)
    return mistake<logits_and_labels_with_elements_of_type<element_of<E>, element_of<L>>,
                   use_floating_logits_and_integer_labels>{};
  else if constexpr (rank_of<E> < 1 || rank_of<L> != rank_of<E> - 1)
    return mistake<logits_and_labels_of_ranks<rank_of<E>, rank_of<L>>,
                   use_labels_of_the_shape_of_the_logits_without_axis_1>{};
  else return fitting<element_of<E>>{};
}
template <class E, class L>
using classification_mistake = decltype(find_classification_mistake<bare<E>, bare<L>>());
/// (N,C) against (N,): one kernel.
template <class E, class L>
concept classifies_rows = is_fitting<classification_mistake<E, L>> && rank_of<E> == 2;

}  // namespace detail

namespace ops {

/// The loss of each row of x (N,C): logsumexp(x) - x[label].
struct cross_entropy_op : kernel_op {
  static constexpr const char* name = "cross_entropy";
  static constexpr unsigned grad_uses[1] = {uses::first | uses::second};
  static constexpr bool has_variants = true;
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int operand) { return operand == 0 ? take::formula : take::dense; }
  static constexpr int rank(int, int) { return 1; }
  /// Of each row its shift and the logarithm of the rest: logsumexp(x) is their sum.
  template <class T, device D>
  using saves = tensor<compute_type<T>, 1, D>;

  extents<1> shape(const extents<2>& x, const extents<1>& labels) const {
    if (labels[0] != x[0])
      sinter::detail::refuse<shape_error>({name, ": ", labels[0], " labels for logits of shape ", x});
    return labels;
  }
  template <class X, class Labels>
  static constexpr auto mistake() {
    return sinter::detail::classification_mistake<X, Labels>{};
  }
};

}  // namespace ops

namespace detail {

/// Labels as row-major int64.
template <class L>
auto int64_labels(const L& labels) {
  if constexpr (std::is_same_v<element_of<L>, std::int64_t>) return eval(labels).contiguous();
  else return eval(cast<std::int64_t>(labels)).contiguous();
}

template <class E>
using cross_entropy_of = kernel_of<ops::cross_entropy_op, E, tensor<std::int64_t, 1, device_of<E>>>;

template <class E, class L>
cross_entropy_of<E> make_cross_entropy(E&& logits, const L& labels) {
  check_defined("cross_entropy", labels);
  auto losses = make_kernel(ops::cross_entropy_op(), std::forward<E>(logits), int64_labels(labels));
  // A GPU looks at them where the losses are computed only.
  if constexpr (is_cpu_v<device_of<E>>)
    check_indices({"cross_entropy", "label"}, losses.operands.template get<1>(),
                  losses.operands.template get<0>().shape()[1]);
  return losses;
}

}  // namespace detail

/// Mean over the batch of -log softmax(logits)[label]: logits (N,C), labels (N,) of any integer type => scalar. With
/// reduction::sum the sum, with reduction::none the N losses. Rows are read once, with the elementwise work that
/// produces them; backward recomputes the probabilities from the kept logits.
/// Derivative: (softmax(logits) - onehot(labels)) g / N. Errors: shape_error when the batches differ, index_error for a
/// label outside [0, C), on a GPU where the host next waits for it.
///
///     variable loss = cross_entropy(model(x), labels);
template <class E, class L>
  requires detail::classifies_rows<E, L>
auto cross_entropy(E&& logits, const L& labels, reduction::mean_t = {})
    -> decltype(mean(std::declval<detail::cross_entropy_of<E>>())) {
  return mean(detail::make_cross_entropy(std::forward<E>(logits), labels));
}
template <class E, class L>
  requires detail::classifies_rows<E, L>
auto cross_entropy(E&& logits, const L& labels, reduction::sum_t)
    -> decltype(sum(std::declval<detail::cross_entropy_of<E>>())) {
  return sum(detail::make_cross_entropy(std::forward<E>(logits), labels));
}
template <class E, class L>
  requires detail::classifies_rows<E, L>
detail::cross_entropy_of<E> cross_entropy(E&& logits, const L& labels, reduction::none_t) {
  return detail::make_cross_entropy(std::forward<E>(logits), labels);
}
template <class E, class L, class Reduction = reduction::mean_t,
          class Problem = typename detail::classification_mistake<E, L>::problem,
          class Fix = typename detail::classification_mistake<E, L>::fix>
  requires(!floating_element<element_of<L>>)
void cross_entropy(E&&, L&&, Reduction = {}) = delete;

}  // namespace sinter
