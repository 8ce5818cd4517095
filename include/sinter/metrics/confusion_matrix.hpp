// sinter/metrics/confusion_matrix.hpp: which classes are taken for which; precision, recall and F1.
#pragma once

#include "sinter/metrics/operands.hpp"
#include "sinter/metrics/ranks.hpp"

namespace sinter::metrics {

struct confusion_matrix_options {
  std::int64_t ignore_index = -100;  ///< a label that counts as no sample
};

/// How numbers of classes become one.
enum class average : std::uint8_t {
  binary,   ///< that of class 1 of two
  micro,    ///< that of all classes' counts added; here the accuracy
  macro,    ///< the mean over the classes
  weighted  ///< the mean weighted by how often each class is the label
};

/// Counts labels and predicted classes, from which precision, recall and F1 follow, as in scikit-learn with
/// `labels=range(classes)` and `zero_division=0`: classes that never occur are among the mean with 0. Errors:
/// value_error for a number of classes outside of [1, 32768] and for average::binary of other than 2 classes;
/// shape_error where the numbers of samples or classes differ; index_error for a class outside of [0, classes), except
/// a prediction for a label that is ignored; value_error of all but count() where there are no samples.
///
///     metrics::confusion_matrix matrix(10);
///     for (auto& [x, y] : loader) matrix.add(infer(model)(x), y);
///     std::cout << matrix.value() << matrix.f1(metrics::average::macro);
class confusion_matrix {
 public:
  explicit confusion_matrix(index_t classes, const confusion_matrix_options& options = {});

  /// Scores (N, C), or predicted classes (N,) of integers or bool, and labels (N,); on any device.
  template <class S, class L>
    requires(sinter::detail::is_fitting<
             sinter::detail::metric_mistake<sinter::detail::scores_of::classes_or_predicted, S, L>>)
  void add(const S& predictions, const L& labels) {
    add_values(sinter::detail::metric_operand("confusion_matrix", predictions),
               sinter::detail::metric_operand("confusion_matrix", labels));
  }
  template <class S, class L,
            class M = sinter::detail::metric_mistake<sinter::detail::scores_of::classes_or_predicted, S, L>,
            class Problem = typename M::problem, class Fix = typename M::fix>
  void add(const S&, const L&) = delete;

  /// How often class j was predicted where i was the label: (classes, classes).
  tensor<std::int64_t, 2> value() const;
  double accuracy() const;
  /// Of the samples predicted to be of a class, the share that is.
  double precision(average by = average::macro) const { return averaged(0, by); }
  /// Of the samples of a class, the share predicted to be.
  double recall(average by = average::macro) const { return averaged(1, by); }
  /// The harmonic mean of both.
  double f1(average by = average::macro) const { return averaged(2, by); }
  /// The same of each class: (classes,).
  tensor<double, 1> precision_per_class() const { return per_class(0); }
  tensor<double, 1> recall_per_class() const { return per_class(1); }
  tensor<double, 1> f1_per_class() const { return per_class(2); }
  std::int64_t count() const;  ///< samples so far
  SINTER_METRIC_NAMED_OTHERWISE
  void reset() { counts_.assign(counts_.size(), 0); }
  /// After it each rank of a communicator has what all ranks added. All ranks call it.
  template <class C>
  void all_reduce(C& ranks) {
    sinter::detail::sum_over_ranks<std::int64_t>(ranks, counts_, "confusion_matrix");
  }

 private:
  /// Of a class or of all: samples predicted rightly, predicted, and labelled.
  struct tally {
    std::int64_t right = 0, predicted = 0, labelled = 0;
    double score(int which) const;
  };
  void add_values(const host_tensor& predictions, const host_tensor& labels);
  void check_samples() const {
    if (count() == 0) sinter::detail::refuse_no_samples("confusion_matrix");
  }
  tally tally_of(index_t c) const;
  double averaged(int which, average by) const;
  tensor<double, 1> per_class(int which) const;

  index_t classes_;
  confusion_matrix_options options_;
  std::vector<std::int64_t> counts_;  // row-major, labels by predictions
};

#if SINTER_DEFINES

SINTER_SHARED_COLD confusion_matrix::confusion_matrix(index_t classes, const confusion_matrix_options& options)
    : classes_(classes), options_(options) {
  if (classes < 1 || classes > 32768)
    sinter::detail::refuse<value_error>(
        {"confusion_matrix: ", classes, " classes; there must be 1 to 32768, for which the counts take 8 GiB"});
  counts_.resize(static_cast<std::size_t>(classes * classes));
}
SINTER_SHARED void confusion_matrix::add_values(const host_tensor& predictions, const host_tensor& labels) {
  using namespace sinter::detail;
  const index_t n = predictions.shape[0];
  const bool scored = predictions.shape.size() == 2;
  if (scored && predictions.shape[1] != classes_)
    refuse<shape_error>({"confusion_matrix: scores of ", predictions.shape[1], " classes for a matrix of ", classes_});
  const auto expected = metric_classes("confusion_matrix", "label", labels, n, classes_, options_.ignore_index);
  std::vector<std::int64_t> predicted(static_cast<std::size_t>(n));
  if (scored) {
    metric_rows rows(predictions);
    for (index_t i = 0; i < n; ++i) {
      const double* const row = rows[i];
      index_t best = 0;
      for (index_t c = 1; c < classes_; ++c)
        if (is_above(row[c], row[best])) best = c;
      predicted[static_cast<std::size_t>(i)] = best;
    }
  } else {
    predicted = metric_classes("confusion_matrix", "predicted class", predictions, n, classes_, options_.ignore_index,
                               &expected);
  }
  for (std::size_t i = 0; i < predicted.size(); ++i)
    if (expected[i] != options_.ignore_index)
      ++counts_[static_cast<std::size_t>(expected[i] * classes_ + predicted[i])];
}
SINTER_SHARED tensor<std::int64_t, 2> confusion_matrix::value() const {
  check_samples();
  return from_data<std::int64_t>(counts_, {classes_, classes_});
}
SINTER_SHARED std::int64_t confusion_matrix::count() const {
  std::int64_t all = 0;
  for (const std::int64_t n : counts_) all += n;
  return all;
}
SINTER_SHARED double confusion_matrix::accuracy() const { return averaged(1, average::micro); }
SINTER_SHARED double confusion_matrix::tally::score(int which) const {
  const std::int64_t of = which == 0 ? predicted : which == 1 ? labelled : predicted + labelled;
  return of == 0 ? 0 : static_cast<double>(which == 2 ? 2 * right : right) / static_cast<double>(of);
}
SINTER_SHARED confusion_matrix::tally confusion_matrix::tally_of(index_t c) const {
  tally t;
  for (index_t i = 0; i < classes_; ++i) {
    t.labelled += counts_[static_cast<std::size_t>(c * classes_ + i)];
    t.predicted += counts_[static_cast<std::size_t>(i * classes_ + c)];
  }
  t.right = counts_[static_cast<std::size_t>(c * classes_ + c)];
  return t;
}
SINTER_SHARED double confusion_matrix::averaged(int which, average by) const {
  if (by == average::binary) {
    if (classes_ != 2)
      sinter::detail::refuse<value_error>({"confusion_matrix: average::binary is for 2 classes, not ", classes_});
    check_samples();
    return tally_of(1).score(which);
  }
  check_samples();
  tally all;
  double sum = 0;
  for (index_t c = 0; c < classes_; ++c) {
    const tally t = tally_of(c);
    sum += t.score(which) * (by == average::weighted ? static_cast<double>(t.labelled) : 1);
    all = {all.right + t.right, all.predicted + t.predicted, all.labelled + t.labelled};
  }
  if (by == average::micro) return all.score(which);
  if (by == average::macro) return sum / static_cast<double>(classes_);
  return sum / static_cast<double>(all.labelled);
}
SINTER_SHARED tensor<double, 1> confusion_matrix::per_class(int which) const {
  check_samples();
  std::vector<double> scores(static_cast<std::size_t>(classes_));
  for (index_t c = 0; c < classes_; ++c) scores[static_cast<std::size_t>(c)] = tally_of(c).score(which);
  return from_data<double>(scores, {classes_});
}

#endif  // SINTER_DEFINES

}  // namespace sinter::metrics
