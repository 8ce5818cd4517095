// sinter/metrics/operands.hpp: what metrics are given, on any device, as numbers of the host.
#pragma once

#include <limits>
#include <vector>

#include "sinter/core/host_tensor.hpp"
#include "sinter/expr/evaluate.hpp"
#include "sinter/grad/variable.hpp"

namespace sinter {

// Names in messages.
template <class, int>
struct labels_of_elements_and_rank;
struct pass_integers_of_shape_n;
template <class, int>
struct predictions_of_elements_and_rank;
struct pass_floating_point_scores_n_c_or_integer_classes_n;
struct pass_floating_point_scores_n_c;
struct pass_floating_point_scores_n_or_n_c;
struct pass_numbers_of_shape_n_or_n_outputs;

// Names in messages.
struct write_add;
struct write_value;
struct values_given_when_it_is_made;
struct make_one_then_call_add_and_value;
// torchmetrics' names of members.
#define SINTER_METRIC_NAMED_OTHERWISE              \
  SINTER_MEMBER_NAMED_OTHERWISE(update, write_add) \
  SINTER_MEMBER_NAMED_OTHERWISE(compute, write_value)

namespace detail {

template <class E>
inline constexpr bool is_label = !floating_element<element_of<E>> && rank_of<E> == 1;

enum class scores_of { classes, one_or_classes, classes_or_predicted };

template <scores_of Kind, class S, class L>
constexpr auto find_metric_mistake() {
  if constexpr (!expression<S>) return no_operands<S>{};
  else if constexpr (!expression<L>) return no_operands<L>{};
  else if constexpr (!is_label<L>)
    return mistake<labels_of_elements_and_rank<element_of<L>, rank_of<L>>, pass_integers_of_shape_n>{};
  else {
    constexpr bool scores = floating_element<element_of<S>>;
    constexpr int rank = rank_of<S>;
    using what = predictions_of_elements_and_rank<element_of<S>, rank>;
    if constexpr (scores && rank == 2) return fitting<S>{};
    else if constexpr (Kind == scores_of::one_or_classes) {
      if constexpr (scores && rank == 1) return fitting<S>{};
      else return mistake<what, pass_floating_point_scores_n_or_n_c>{};
    } else if constexpr (Kind == scores_of::classes_or_predicted) {
      if constexpr (!scores && rank == 1) return fitting<S>{};
      else return mistake<what, pass_floating_point_scores_n_c_or_integer_classes_n>{};
    } else return mistake<what, pass_floating_point_scores_n_c>{};
  }
}
template <scores_of Kind, class S, class L>
using metric_mistake = decltype(find_metric_mistake<Kind, bare<S>, bare<L>>());

/// The value of an expression on the host; nothing is recorded.
template <expression E>
host_tensor metric_operand(const char* metric, const E& e) {
  check_defined(metric, e);
  if constexpr (is_tensor<E>) {
    return e;
  } else if constexpr (is_variable<E>) {
    return e.detach();
  } else {
    const no_grad guard;
    return metric_operand(metric, eval(e));
  }
}

/// Rows of numbers (N, C), or (N,) as N rows of one, each as doubles.
class metric_rows {
 public:
  explicit metric_rows(const host_tensor& x);

  index_t size() const { return size_; }
  index_t columns() const { return columns_; }
  /// Row i; valid until the next call.
  const double* operator[](index_t i);

 private:
  const host_tensor& x_;
  index_t size_, columns_;
  std::vector<double> row_;
};

/// The integers of a tensor (N,). Errors: shape_error if they are not `count`; index_error for one that is neither in
/// [0, classes) nor `ignored`, or with `labels` for one outside
/// [0, classes) whose label is not `ignored`.
SINTER_SHARED_COLD std::vector<std::int64_t> metric_classes(const char* metric, const char* what, const host_tensor& x,
                                                            index_t count, index_t classes, std::int64_t ignored,
                                                            const std::vector<std::int64_t>* labels = nullptr);

/// True if a score is above another one. NaN is above all numbers, as for argmax.
inline bool is_above(double a, double b) { return a > b || (a != a && b == b); }

[[noreturn]] SINTER_SHARED_COLD void refuse_no_samples(const char* metric);

#if SINTER_DEFINES

SINTER_SHARED_COLD metric_rows::metric_rows(const host_tensor& x)
    : x_(x), size_(x.shape[0]), columns_(x.shape.size() > 1 ? x.shape[1] : 1) {
  row_.resize(static_cast<std::size_t>(columns_));
}
SINTER_SHARED const double* metric_rows::operator[](index_t i) {
  const std::size_t bytes = row_.size() * element_size(x_.element);
  with_element(x_.element, [&](auto from) {
    convert_elements<decltype(from)>(x_.bytes.data() + static_cast<std::size_t>(i) * bytes, row_.size(), row_.data());
  });
  return row_.data();
}

SINTER_SHARED_COLD std::vector<std::int64_t> metric_classes(const char* metric, const char* what, const host_tensor& x,
                                                            index_t count, index_t classes, std::int64_t ignored,
                                                            const std::vector<std::int64_t>* labels) {
  if (x.shape[0] != count)
    refuse<shape_error>({metric, ": ", x.shape[0], " ", what, "s for ", count, " samples; there must be one for each"});
  std::vector<std::int64_t> all(static_cast<std::size_t>(count));
  with_element(x.element, [&](auto from) { convert_elements<decltype(from)>(x.bytes.data(), all.size(), all.data()); });
  for (std::size_t i = 0; i < all.size(); ++i) {
    if ((labels != nullptr ? (*labels)[i] : all[i]) == ignored || (all[i] >= 0 && all[i] < classes)) continue;
    if (classes == std::numeric_limits<index_t>::max())
      refuse<index_error>({metric, ": ", what, " ", all[i], " of sample ", i, " is negative"});
    refuse<index_error>({metric, ": ", what, " ", all[i], " of sample ", i, " is outside [0, ", classes, ")"});
  }
  return all;
}

[[noreturn]] SINTER_SHARED_COLD void refuse_no_samples(const char* metric) {
  refuse<value_error>({metric, ": there are no samples; call add() before value()"});
}

#endif  // SINTER_DEFINES

}  // namespace detail
}  // namespace sinter
