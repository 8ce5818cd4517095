// sinter/metrics/r2_score.hpp: the share of the variance of targets that predictions explain.
#pragma once

#include "sinter/metrics/operands.hpp"
#include "sinter/metrics/ranks.hpp"

namespace sinter::detail {

/// Numbers, (N,) or (N, outputs), and targets of the same rank.
template <class P, class T>
constexpr auto find_r2_mistake() {
  if constexpr (!expression<P>) return no_operands<P>{};
  else if constexpr (!expression<T>) return no_operands<T>{};
  else if constexpr (rank_of<P> != rank_of<T> || rank_of<P> < 1 || rank_of<P> > 2)
    return mistake<predictions_of_elements_and_rank<element_of<P>, rank_of<P>>, pass_numbers_of_shape_n_or_n_outputs>{};
  else return fitting<P>{};
}
template <class P, class T>
using r2_mistake = decltype(find_r2_mistake<bare<P>, bare<T>>());

}  // namespace sinter::detail

namespace sinter::metrics {

/// The coefficient of determination, 1 - (sum of squared errors) / (sum of squared distances of the targets from their
/// mean): 1 is perfect, 0 is no better than that mean. Of several outputs the mean of theirs. Where all targets are
/// equal it is 1 for predictions without error, otherwise 0. As scikit-learn's r2_score; computed in double by
/// Welford's recurrence (Technometrics 4, 1962). Errors: shape_error where the shapes differ; value_error of value()
/// for fewer than 2 samples.
///
///     metrics::r2_score r2;
///     for (auto& [x, y] : loader) r2.add(infer(model)(x), y);
class r2_score {
 public:
  r2_score() = default;
  /// Predictions and targets of one shape, (N,) or (N, outputs); on any device.
  template <class P, class T>
    requires(sinter::detail::is_fitting<sinter::detail::r2_mistake<P, T>>)
  void add(const P& predictions, const T& targets) {
    add_values(sinter::detail::metric_operand("r2_score", predictions),
               sinter::detail::metric_operand("r2_score", targets));
  }
  template <class P, class T, class M = sinter::detail::r2_mistake<P, T>, class Problem = typename M::problem,
            class Fix = typename M::fix>
  void add(const P&, const T&) = delete;

  double value() const;
  tensor<double, 1> value_per_output() const;
  template <expression A, expression B, class Problem = sinter::values_given_when_it_is_made,
            class Fix = sinter::make_one_then_call_add_and_value>
  r2_score(const A&, const B&) = delete;
  SINTER_METRIC_NAMED_OTHERWISE
  void reset() { state_.clear(); }
  /// After it each rank of a communicator has what all ranks added. All ranks call it.
  template <class C>
  void all_reduce(C& ranks) {
    const auto states = sinter::detail::gather_over_ranks(ranks, state_, "r2_score");
    reset();
    for (const std::vector<double>& state : states) merge(state);
  }

 private:
  void add_values(const host_tensor& predictions, const host_tensor& targets);
  void merge(const std::vector<double>& other);

  // Of each output four numbers: samples, the mean of the targets, the sum of their squared distances from it, and that
  // of squared errors.
  std::vector<double> state_;
};

#if SINTER_DEFINES

SINTER_SHARED void r2_score::add_values(const host_tensor& predictions, const host_tensor& targets) {
  using namespace sinter::detail;
  metric_rows p(predictions), t(targets);
  if (predictions.shape != targets.shape)
    refuse<shape_error>({"r2_score: ", p.size(), " x ", p.columns(), " predictions and ", t.size(), " x ", t.columns(),
                         " targets; they must be equally many"});
  const auto size = static_cast<std::size_t>(4 * p.columns());
  if (!state_.empty() && state_.size() != size)
    refuse<shape_error>({"r2_score: ", p.columns(), " outputs, after others with ", state_.size() / 4});
  state_.resize(size);
  for (index_t i = 0; i < p.size(); ++i) {
    const double *predicted = p[i], *target = t[i];
    for (double* s = state_.data(); s != state_.data() + size; s += 4, ++predicted, ++target) {
      const double distance = *target - s[1];
      s[0] += 1;
      s[1] += distance / s[0];
      s[2] += distance * (*target - s[1]);
      s[3] += (*target - *predicted) * (*target - *predicted);
    }
  }
}
SINTER_SHARED_COLD void r2_score::merge(const std::vector<double>& other) {
  if (other.empty()) return;
  if (state_.empty()) state_.resize(other.size());
  if (state_.size() != other.size())
    sinter::detail::refuse<shape_error>(
        {"r2_score: a rank has ", other.size() / 4, " outputs, others have ", state_.size() / 4});
  const double* b = other.data();
  for (double* a = state_.data(); a != state_.data() + state_.size(); a += 4, b += 4) {
    const double n = a[0] + b[0], distance = b[1] - a[1];
    if (b[0] == 0) continue;
    a[1] += distance * b[0] / n;
    a[2] += b[2] + distance * distance * a[0] * b[0] / n;
    a[3] += b[3];
    a[0] = n;
  }
}
SINTER_SHARED_COLD tensor<double, 1> r2_score::value_per_output() const {
  if (state_.empty() || state_[0] < 2)
    sinter::detail::refuse<value_error>(
        {"r2_score: ", state_.empty() ? 0 : state_[0], " samples; call add() with at least 2 before value()"});
  std::vector<double> scores;
  for (std::size_t i = 0; i < state_.size(); i += 4) {
    const double spread = state_[i + 2], errors = state_[i + 3];
    scores.push_back(spread != 0 || errors != errors ? 1 - errors / spread : errors == 0 ? 1 : 0);
  }
  return from_data<double>(scores, {static_cast<index_t>(scores.size())});
}
SINTER_SHARED_COLD double r2_score::value() const {
  double sum = 0;
  const tensor<double, 1> scores = value_per_output();
  for (const double score : scores) sum += score;
  return sum / static_cast<double>(scores.numel());
}

#endif  // SINTER_DEFINES

}  // namespace sinter::metrics
