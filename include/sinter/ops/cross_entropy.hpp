// sinter/ops/cross_entropy.hpp: the cross-entropy of scores against class labels.
#pragma once

#include "sinter/core/reduction.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/mean.hpp"

namespace sinter {

namespace detail {

template <class E>
struct cross_entropy_backward final : one_input_backward {
  using T = element_of<E>;
  using D = device_of<E>;
  versioned_expression<decltype(untrack(std::declval<const E&>()))> logits;
  tensor<std::int64_t, 1, D> labels;
  std::uint64_t labels_version = 0;
  tensor<compute_type<T>, 1, D> lse;

  void release() override {
    logits.drop();
    labels = {};
    lse = {};
  }
  void backward(grad_state& result) override {
    auto& to = static_cast<typed_state<T, 2, D>&>(*source);
    const auto& x = logits.get("backward of", name);
    if (access::storage_of(labels)->version.load(std::memory_order_relaxed) != labels_version)
      throw autograd_error(
          "backward of 'cross_entropy': its labels were modified in place after the statement; use a copy");
    if constexpr (is_cpu_v<D>)
      backend<D>::check_range("backward of 'cross_entropy'", "label", access::data(labels), labels.numel(),
                              x.shape()[1]);
    bool add = false;
    to.gradient(add);
    const auto& g = static_cast<typed_state<T, 1, D>&>(result).grad;
    if (to.grad.is_contiguous()) return backend<D>::reverse_cross_entropy(x, labels, lse, g, to.grad, add);
    const auto dx = tensor<T, 2, D>::uninitialized(to.shape);
    backend<D>::reverse_cross_entropy(x, labels, lse, g, dx, false);
    write_or_add(dx, to.grad, add);
  }
};

}  // namespace detail

/// The loss of each row; see cross_entropy.
template <class E>
struct [[nodiscard]] cross_entropy_expr
    : detail::point_base<cross_entropy_expr<E>, element_of<E>, 1, device_of<E>, E::order> {
  using T = element_of<E>;
  using D = device_of<E>;
  static constexpr int points = 1;
  static constexpr bool takes_epilogue = false;
  static constexpr bool has_variants = !narrow_element<T>;
  static constexpr const char* explained_as() { return "cross_entropy"; }

  cross_entropy_expr(E x, tensor<std::int64_t, 1, D> y) : e(std::move(x)), labels(std::move(y)) {
    this->shape_[0] = e.shape()[0];
  }

  void compute_into(const tensor<T, 1, D>& to, const typename detail::backend<D>::epilogue*) const {
    // On the host they may have changed since the expression was made; a GPU looks at them here only.
    detail::backend<D>::check_range("cross_entropy", "label", detail::access::data(labels), labels.numel(),
                                    e.shape()[1]);
    lse_ = tensor<compute_type<T>, 1, D>::uninitialized({{2 * to.numel()}});
    detail::backend<D>::cross_entropy(e, labels, to, lse_);
  }

  auto record(const tensor<T, 1, D>& value) const {
    const detail::state_ptr source = detail::recording() ? detail::prologue_state(e) : detail::state_ptr();
    if (!source) return detail::unrecorded<1>(value);
    auto node = std::make_unique<detail::cross_entropy_backward<E>>();
    node->name = "cross_entropy";
    node->logits.keep(detail::untrack(e));
    node->labels = labels;
    node->labels_version = detail::access::storage_of(labels)->version.load(std::memory_order_relaxed);
    node->lse = lse_;
    node->source = source;
    return detail::produced<1>(value, std::move(node));
  }

  E e;
  tensor<std::int64_t, 1, D> labels;

 private:
  mutable tensor<compute_type<T>, 1, D> lse_;
};

namespace detail {

/// Labels as row-major int64.
template <class L>
auto int64_labels(const L& labels) {
  if constexpr (std::is_same_v<element_of<L>, std::int64_t>) return eval(labels).contiguous();
  else return eval(cast<std::int64_t>(labels)).contiguous();
}

template <class E, class L>
cross_entropy_expr<prologue_of<E>> make_cross_entropy(E&& logits, const L& labels) {
  check_defined("cross_entropy", logits);
  check_defined("cross_entropy", labels);
  if (labels.shape()[0] != logits.shape()[0])
    refuse<shape_error>({"cross_entropy: ", labels.shape()[0], " labels for logits of shape ", logits.shape()});
  const auto y = int64_labels(labels);
  if constexpr (is_cpu_v<device_of<E>>)
    backend<device_of<E>>::check_range("cross_entropy", "label", access::data(y), y.numel(), logits.shape()[1]);
  return cross_entropy_expr<prologue_of<E>>(prologue(std::forward<E>(logits)), y);
}

template <class E>
using cross_entropy_of = cross_entropy_expr<prologue_of<E>>;

}  // namespace detail

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
