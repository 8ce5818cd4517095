// sinter/metrics/running_mean.hpp: the mean of numbers that come one by one, such as the losses of batches.
#pragma once

#include "sinter/metrics/operands.hpp"
#include "sinter/metrics/ranks.hpp"

namespace sinter::metrics {

/// The mean of numbers by their weights, added up in double. A mean loss of a batch has the weight of its samples.
/// Errors: value_error for a weight that is negative or not finite, and of value() where all weights are 0.
///
///     metrics::running_mean loss;
///     loss.add(batch_loss.item(), x.size(0));
class running_mean {
 public:
  void add(double number, double weight = 1);
  void add(double number, std::integral auto count) { add(number, double(count)); }
  double value() const;
  double weight() const { return sums_[1]; }  ///< the sum of the weights so far
  SINTER_METRIC_NAMED_OTHERWISE
  void reset() { sums_[0] = sums_[1] = 0; }
  /// After it each rank of a communicator has what all ranks added. All ranks call it.
  template <class C>
  void all_reduce(C& ranks) {
    sinter::detail::sum_over_ranks<double>(ranks, sums_, "running_mean");
  }

 private:
  double sums_[2] = {0, 0};  // of weighted numbers, of weights
};

#if SINTER_DEFINES

SINTER_SHARED void running_mean::add(double number, double weight) {
  if (!(weight >= 0) || !std::isfinite(weight))
    sinter::detail::refuse<value_error>({"running_mean: the weight ", weight, " must be finite and not negative"});
  if (weight == 0) return;
  sums_[0] += number * weight;
  sums_[1] += weight;
}
SINTER_SHARED double running_mean::value() const {
  if (sums_[1] == 0) sinter::detail::refuse_no_samples("running_mean");
  return sums_[0] / sums_[1];
}

#endif  // SINTER_DEFINES

}  // namespace sinter::metrics
