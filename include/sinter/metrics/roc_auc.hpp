// sinter/metrics/roc_auc.hpp: the area under the curve of true against false positives.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sinter/metrics/operands.hpp"
#include "sinter/metrics/ranks.hpp"

namespace sinter::metrics {

/// The probability that a sample of a class has a larger score than one that is not, where equal scores count half: the
/// area under the ROC curve, with a threshold at each score. For scores (N, C) the mean over the classes, each against
/// the rest. Counted in integers; keeps all scores. As scikit-learn's roc_auc_score, with `multi_class='ovr'`. Errors:
/// shape_error where the numbers of samples or classes differ; index_error for a label outside the classes, 0 and 1 for
/// scores (N,); value_error for a score that is NaN, and of value() where a class has no sample or all.
///
///     metrics::roc_auc area;
///     for (auto& [x, y] : loader) area.add(infer(model)(x).flatten(), y);
///     std::cout << area.value();
class roc_auc {
 public:
  roc_auc() = default;
  /// Scores (N,) and labels (N,) that are 0 or 1, or scores (N, C) and labels (N,); on any device.
  template <class S, class L>
    requires(
        sinter::detail::is_fitting<sinter::detail::metric_mistake<sinter::detail::scores_of::one_or_classes, S, L>>)
  void add(const S& scores, const L& labels) {
    add_values(sinter::detail::metric_operand("roc_auc", scores), sinter::detail::metric_operand("roc_auc", labels));
  }
  template <class S, class L, class M = sinter::detail::metric_mistake<sinter::detail::scores_of::one_or_classes, S, L>,
            class Problem = typename M::problem, class Fix = typename M::fix>
  void add(const S&, const L&) = delete;

  double value() const;
  std::int64_t count() const { return static_cast<std::int64_t>(labels_.size()); }  ///< samples so far
  template <expression A, expression B, class Problem = sinter::values_given_when_it_is_made,
            class Fix = sinter::make_one_then_call_add_and_value>
  roc_auc(const A&, const B&) = delete;
  SINTER_METRIC_NAMED_OTHERWISE
  void reset();
  /// After it each rank of a communicator has what all ranks added, with the memory for it. All ranks call it.
  template <class C>
  void all_reduce(C& ranks) {
    join(sinter::detail::gather_over_ranks(ranks, {labels_.begin(), labels_.end()}, "roc_auc"),
         sinter::detail::gather_over_ranks(ranks, scores_, "roc_auc"));
  }

 private:
  void add_values(const host_tensor& scores, const host_tensor& labels);
  void join(const std::vector<std::vector<double>>& labels, const std::vector<std::vector<double>>& scores);
  double area_of(std::size_t column, std::int64_t label) const;

  std::size_t columns_ = 0;  // 0: none so far
  std::vector<double> scores_;
  std::vector<std::int64_t> labels_;
};

#if SINTER_DEFINES

SINTER_SHARED_COLD void roc_auc::reset() {
  columns_ = 0;
  scores_.clear();
  labels_.clear();
}
SINTER_SHARED_COLD void roc_auc::add_values(const host_tensor& scores, const host_tensor& labels) {
  using namespace sinter::detail;
  const index_t n = scores.shape[0], columns = scores.shape.size() == 2 ? scores.shape[1] : 1;
  const index_t classes = scores.shape.size() == 2 ? columns : 2;
  if (scores.shape.size() == 2 && columns < 2)
    refuse<shape_error>({"roc_auc: scores (", n, ", ", columns, ") of fewer than two classes; flatten() those of one"});
  if (columns_ != 0 && columns_ != static_cast<std::size_t>(columns))
    refuse<shape_error>({"roc_auc: scores with ", columns, " columns, after others with ", columns_});
  const auto added = metric_classes("roc_auc", "label", labels, n, classes, 0);
  std::vector<double> values;
  metric_rows rows(scores);
  for (index_t i = 0; i < n; ++i) {
    const double* const row = rows[i];
    if (std::any_of(row, row + columns, [](double x) { return std::isnan(x); }))
      refuse<value_error>({"roc_auc: a score of sample ", i, " is NaN"});
    values.insert(values.end(), row, row + columns);
  }
  columns_ = static_cast<std::size_t>(columns);
  scores_.insert(scores_.end(), values.begin(), values.end());
  labels_.insert(labels_.end(), added.begin(), added.end());
}
SINTER_SHARED_COLD void roc_auc::join(const std::vector<std::vector<double>>& labels,
                                      const std::vector<std::vector<double>>& scores) {
  roc_auc all;
  for (std::size_t r = 0; r < labels.size(); ++r) {
    if (labels[r].empty()) continue;
    const std::size_t columns = scores[r].size() / labels[r].size();
    if (all.columns_ != 0 && all.columns_ != columns)
      sinter::detail::refuse<shape_error>(
          {"roc_auc: rank ", r, " has scores with ", columns, " columns, others with ", all.columns_});
    all.columns_ = columns;
    all.scores_.insert(all.scores_.end(), scores[r].begin(), scores[r].end());
    for (const double label : labels[r]) all.labels_.push_back(static_cast<std::int64_t>(label));
  }
  *this = std::move(all);
}
SINTER_SHARED_COLD double roc_auc::area_of(std::size_t column, std::int64_t label) const {
  const auto score = [&](std::size_t i) { return scores_[i * columns_ + column]; };
  std::vector<std::size_t> order(labels_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return score(a) < score(b); });
  std::uint64_t positives = 0, negatives = 0, twice = 0;  // twice the pairs in which the positive is above
  for (std::size_t i = 0; i < order.size();) {
    std::uint64_t yes = 0, no = 0;  // of equal scores
    for (const double value = score(order[i]); i < order.size() && score(order[i]) == value; ++i)
      ++(labels_[order[i]] == label ? yes : no);
    twice += yes * (2 * negatives + no);
    positives += yes;
    negatives += no;
  }
  if (positives == 0 || negatives == 0)
    sinter::detail::refuse<value_error>(
        {"roc_auc: ", positives == 0 ? "no" : "every", " sample has the label ", label, "; the area is not defined"});
  return static_cast<double>(twice) / (2 * static_cast<double>(positives) * static_cast<double>(negatives));
}
SINTER_SHARED_COLD double roc_auc::value() const {
  if (labels_.empty()) sinter::detail::refuse_no_samples("roc_auc");
  if (columns_ == 1) return area_of(0, 1);
  double sum = 0;
  for (std::size_t c = 0; c < columns_; ++c) sum += area_of(c, static_cast<std::int64_t>(c));
  return sum / static_cast<double>(columns_);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::metrics
