// sinter/metrics/accuracy.hpp: the share of samples whose class was predicted.
#pragma once

#include "sinter/metrics/operands.hpp"
#include "sinter/metrics/ranks.hpp"

namespace sinter::metrics {

struct accuracy_options {
  index_t top_k = 1;                 ///< a sample is right where its label is among that many largest scores
  std::int64_t ignore_index = -100;  ///< a label that counts as no sample
};

/// The share of samples whose label has the largest score, or with `.top_k` one of the k largest; of equal scores that
/// of the lower class counts as the larger one, as for argmax. Counted in integers. Errors: shape_error where the
/// numbers of samples differ; index_error for a label outside the classes; value_error for a top_k below 1, and of
/// value() where there are no samples.
///
///     metrics::accuracy top5({.top_k = 5});
///     for (auto& [x, y] : loader) top5.add(infer(model)(x), y);
///     std::cout << top5.value();
class accuracy {
 public:
  explicit accuracy(const accuracy_options& options = {});

  /// Scores (N, C), probabilities or not, or predicted classes (N,) of integers or bool, and labels (N,); on any
  /// device. So `scores > 0` is what a model with one score predicts.
  template <class S, class L>
    requires(sinter::detail::is_fitting<
             sinter::detail::metric_mistake<sinter::detail::scores_of::classes_or_predicted, S, L>>)
  void add(const S& predictions, const L& labels) {
    add_values(sinter::detail::metric_operand("accuracy", predictions),
               sinter::detail::metric_operand("accuracy", labels));
  }
  template <class S, class L,
            class M = sinter::detail::metric_mistake<sinter::detail::scores_of::classes_or_predicted, S, L>,
            class Problem = typename M::problem, class Fix = typename M::fix>
  void add(const S&, const L&) = delete;

  double value() const;
  std::int64_t count() const { return counts_[1]; }  ///< samples so far
  template <expression A, expression B, class Problem = sinter::values_given_when_it_is_made,
            class Fix = sinter::make_one_then_call_add_and_value>
  accuracy(const A&, const B&) = delete;
  SINTER_METRIC_NAMED_OTHERWISE
  void reset() { counts_[0] = counts_[1] = 0; }
  /// After it each rank of a communicator has what all ranks added. All ranks call it.
  template <class C>
  void all_reduce(C& ranks) {
    sinter::detail::sum_over_ranks<std::int64_t>(ranks, counts_, "accuracy");
  }

 private:
  void add_values(const host_tensor& predictions, const host_tensor& labels);

  accuracy_options options_;
  std::int64_t counts_[2] = {0, 0};  // right, all
};

#if SINTER_DEFINES

SINTER_SHARED_COLD accuracy::accuracy(const accuracy_options& options) : options_(options) {
  if (options.top_k < 1)
    sinter::detail::refuse<value_error>({"accuracy: top_k is ", options.top_k, "; it must be at least 1"});
}
SINTER_SHARED double accuracy::value() const {
  if (counts_[1] == 0) sinter::detail::refuse_no_samples("accuracy");
  return static_cast<double>(counts_[0]) / static_cast<double>(counts_[1]);
}
SINTER_SHARED void accuracy::add_values(const host_tensor& predictions, const host_tensor& labels) {
  using namespace sinter::detail;
  const index_t n = predictions.shape[0];
  const bool scored = predictions.shape.size() == 2;
  const index_t classes = scored ? predictions.shape[1] : std::numeric_limits<index_t>::max();
  const auto expected = metric_classes("accuracy", "label", labels, n, classes, options_.ignore_index);
  std::int64_t right = 0, all = 0;
  metric_rows rows(predictions);
  for (index_t i = 0; i < n; ++i) {
    const std::int64_t label = expected[static_cast<std::size_t>(i)];
    if (label == options_.ignore_index) continue;
    ++all;
    const double* const row = rows[i];
    if (!scored) {
      right += row[0] == static_cast<double>(label);
      continue;
    }
    index_t before = 0;  // classes that are predicted rather than the label
    for (index_t c = 0; c < classes; ++c)
      before += is_above(row[c], row[label]) || (c < label && !is_above(row[label], row[c]));
    right += before < options_.top_k;
  }
  counts_[0] += right;
  counts_[1] += all;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::metrics
