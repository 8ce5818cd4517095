// sinter/metrics/perplexity.hpp: of how many equally likely words a model of text chooses, as it were.
#pragma once

#include "sinter/metrics/running_mean.hpp"

namespace sinter::metrics {

struct perplexity_options {
  std::int64_t ignore_index = -100;  ///< a label that counts as no sample, such as that of padding
};

/// exp of the mean cross-entropy: C for scores that are all alike. Computed in double. Errors: shape_error where the
/// numbers of samples differ; index_error for a label outside the classes; value_error of value() where there are no
/// samples, and for a negative number of them.
///
///     metrics::perplexity p;
///     p.add(logits, labels);                  // (N, C) and (N,)
///     p.add_loss(loss.item(), y.numel());     // or the mean cross-entropy of so many
class perplexity {
 public:
  explicit perplexity(const perplexity_options& options = {}) : options_(options) {}

  /// Scores (N, C), not normalised, and labels (N,); on any device.
  template <class S, class L>
    requires(sinter::detail::is_fitting<sinter::detail::metric_mistake<sinter::detail::scores_of::classes, S, L>>)
  void add(const S& scores, const L& labels) {
    add_values(sinter::detail::metric_operand("perplexity", scores),
               sinter::detail::metric_operand("perplexity", labels));
  }
  template <class S, class L, class M = sinter::detail::metric_mistake<sinter::detail::scores_of::classes, S, L>,
            class Problem = typename M::problem, class Fix = typename M::fix>
  void add(const S&, const L&) = delete;
  /// The mean cross-entropy of `count` samples.
  void add_loss(double mean, index_t count);

  double value() const;
  SINTER_METRIC_NAMED_OTHERWISE
  void reset() { losses_.reset(); }
  /// After it each rank of a communicator has what all ranks added. All ranks call it.
  template <class C>
  void all_reduce(C& ranks) {
    losses_.all_reduce(ranks);
  }

 private:
  void add_values(const host_tensor& scores, const host_tensor& labels);

  perplexity_options options_;
  running_mean losses_;
};

#if SINTER_DEFINES

SINTER_SHARED void perplexity::add_loss(double mean, index_t count) {
  if (count < 0)
    sinter::detail::refuse<value_error>({"perplexity: the loss of ", count, " samples; there may not be fewer than 0"});
  losses_.add(mean, static_cast<double>(count));
}
SINTER_SHARED double perplexity::value() const {
  if (losses_.weight() == 0) sinter::detail::refuse_no_samples("perplexity");
  return std::exp(losses_.value());
}
SINTER_SHARED void perplexity::add_values(const host_tensor& scores, const host_tensor& labels) {
  using namespace sinter::detail;
  const index_t n = scores.shape[0], classes = scores.shape[1];
  const auto expected = metric_classes("perplexity", "label", labels, n, classes, options_.ignore_index);
  metric_rows rows(scores);
  for (index_t i = 0; i < n; ++i) {
    const std::int64_t label = expected[static_cast<std::size_t>(i)];
    if (label == options_.ignore_index) continue;
    const double* const row = rows[i];
    const double most = *std::max_element(row, row + classes);
    double sum = 0;
    for (index_t c = 0; c < classes; ++c) sum += std::exp(row[c] - most);
    losses_.add(std::log(sum) + most - row[label]);
  }
}

#endif  // SINTER_DEFINES

}  // namespace sinter::metrics
