// sinter/nn/loss_formulas.hpp: losses that are a formula of prediction and target, element by element.
#pragma once

#include "sinter/nn/loss.hpp"
#include "sinter/ops/abs.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/clamp_min.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/exp.hpp"
#include "sinter/ops/greater.hpp"
#include "sinter/ops/less.hpp"
#include "sinter/ops/log.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/where.hpp"
#include "sinter/ops/xlogy.hpp"

namespace sinter {

/// What poisson_nll_loss takes into account.
struct poisson_nll_options {
  bool log_input = true;  ///< the prediction is the logarithm of the rate
  bool full = false;      ///< adds Stirling's approximation of ln(target!) where the target is above 1
  double eps = 1e-8;      ///< added to a rate before its logarithm
};

namespace detail {

SINTER_SHARED void check_not_negative(const char* op, const char* what, double x);
#if SINTER_DEFINES
SINTER_SHARED void check_not_negative(const char* op, const char* what, double x) {
  if (!(x >= 0)) refuse<value_error>({op, ": ", what, " is ", x, "; it must be 0 or more"});
}
#endif

/// Of differences d without sign.
template <class E>
auto smooth_l1_of(const E& d, double beta) {
  check_not_negative("smooth_l1_loss", "beta", beta);
  return where(d < beta, d * d * (beta > 0 ? 0.5 / beta : 0), d - beta / 2);
}
template <class E>
auto huber_of(const E& d, double delta) {
  check_not_negative("huber_loss", "delta", delta);
  return where(d < delta, d * d / 2, delta * (d - delta / 2));
}

}  // namespace detail

#define SINTER_LOSS_REJECTIONS(name)                                                                       \
  template <class A, class B, class... More, class Problem = typename detail::loss_mistake<A, B>::problem, \
            class Fix = typename detail::loss_mistake<A, B>::fix>                                          \
  void name(A&&, B&&, More&&...) = delete;
// name(prediction, target, reduction) of a formula of `a` and `b`, both expressions.
#define SINTER_LOSS(name, ...)                                              \
  template <class A, class B, detail::loss_reduction R = reduction::mean_t> \
    requires(detail::is_fitting<detail::loss_mistake<A, B>>)                \
  auto name(A&& a, B&& b, R = {}) {                                         \
    detail::check_loss_shapes(#name, a, b);                                 \
    return detail::reduced<R>(__VA_ARGS__);                                 \
  }                                                                         \
  SINTER_LOSS_REJECTIONS(name)
// The same with a number behind the target, which is 1 where it is not given.
#define SINTER_LOSS_WITH(name, number, ...)                                 \
  template <class A, class B, detail::loss_reduction R = reduction::mean_t> \
    requires(detail::is_fitting<detail::loss_mistake<A, B>>)                \
  auto name(A&& a, B&& b, double number, R = {}) {                          \
    detail::check_loss_shapes(#name, a, b);                                 \
    return detail::reduced<R>(__VA_ARGS__);                                 \
  }                                                                         \
  template <class A, class B, detail::loss_reduction R = reduction::mean_t> \
    requires(detail::is_fitting<detail::loss_mistake<A, B>>)                \
  auto name(A&& a, B&& b, R reduce = {}) {                                  \
    return name(std::forward<A>(a), std::forward<B>(b), 1, reduce);         \
  }                                                                         \
  SINTER_LOSS_REJECTIONS(name)

/// |prediction - target| of equal shapes; reductions and errors as mse_loss.
///
///     variable loss = l1_loss(prediction, target);
SINTER_LOSS(l1_loss, abs(std::forward<A>(a) - std::forward<B>(b)))

/// log(1 + e^(-target prediction)), of targets 1 and -1, without overflow; reductions and errors as mse_loss.
///
///     variable loss = soft_margin_loss(scores, signs);
SINTER_LOSS(soft_margin_loss, -log_sigmoid(std::forward<B>(b) * std::forward<A>(a)))

/// -(t ln p + (1 - t) ln(1 - p)) of probabilities p; logarithms are at least -100, so that no loss is infinite. From
/// logits take bce_with_logits, which is more accurate. Reductions and errors as mse_loss.
///
///     variable loss = binary_cross_entropy(sigmoid(x), target);
SINTER_LOSS(binary_cross_entropy, (b - 1) * clamp_min(log(1 - a), -100) - b * clamp_min(log(a), -100))

/// (prediction - target)^2 / (2 beta) up to a difference of `beta`, above it |prediction - target| - beta / 2; with
/// beta = 0 it is l1_loss. Reductions and errors as mse_loss, and value_error for a beta below 0.
///
///     variable loss = smooth_l1_loss(prediction, target, 0.5);
SINTER_LOSS_WITH(smooth_l1_loss, beta, detail::smooth_l1_of(abs(std::forward<A>(a) - std::forward<B>(b)), beta))

/// (prediction - target)^2 / 2 up to a difference of `delta`, above it delta (|prediction - target| - delta / 2).
/// Reductions and errors as mse_loss, and value_error for a delta below 0. Huber, "Robust estimation of a location
/// parameter", 1964.
///
///     variable loss = huber_loss(prediction, target, 2.0);
SINTER_LOSS_WITH(huber_loss, delta, detail::huber_of(abs(std::forward<A>(a) - std::forward<B>(b)), delta))

/// The prediction where the target is 1, max(0, margin - prediction) where it is -1; reductions and errors as mse_loss.
///
///     variable loss = hinge_embedding_loss(distances, signs);
SINTER_LOSS_WITH(hinge_embedding_loss, margin, where(b != 1, clamp_min(margin - a, 0), 0) + where(b != -1, a, 0))

/// target (ln target - prediction), 0 where the target is 0, of log-probabilities that are predicted and probabilities;
/// with `log_target` the target is a logarithm too. The mean is over all elements, as PyTorch's: for the divergence of
/// distributions divide the sum by their number. Reductions and errors as mse_loss.
///
///     variable loss = kl_div(log_softmax(x, 1), target, reduction::sum) / batch;
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto kl_div(A&& prediction, B&& target, R = {}) {
  detail::check_loss_shapes("kl_div", prediction, target);
  return detail::reduced<R>(xlogy(target, target) - target * prediction);
}
/// Behind the operands of kl_div: the target is a logarithm.
struct log_target_t {};
inline constexpr log_target_t log_target{};
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto kl_div(A&& prediction, B&& target, log_target_t, R = {}) {
  detail::check_loss_shapes("kl_div", prediction, target);
  return detail::reduced<R>(exp(target) * (target - prediction));
}
SINTER_LOSS_REJECTIONS(kl_div)

/// The negative log-likelihood of a Poisson distribution, rate - target ln rate, without the term ln(target!) unless
/// `full`. Runs at once. Reductions and errors as mse_loss.
///
///     variable loss = poisson_nll_loss(log_rates, counts);
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto poisson_nll_loss(A&& prediction, B&& target, const poisson_nll_options& o = {}, R = {}) {
  detail::check_loss_shapes("poisson_nll_loss", prediction, target);
  const auto losses =
      o.log_input ? eval(exp(prediction) - target * prediction) : eval(prediction - target * log(prediction + o.eps));
  if (!o.full) return eval(detail::reduced<R>(losses));
  const auto above = clamp_min(target, 1);
  return eval(detail::reduced<R>(
      losses + where(target > 1, above * log(above) - above + log(6.283185307179586 * above) / 2, 0)));
}
SINTER_LOSS_REJECTIONS(poisson_nll_loss)

#undef SINTER_LOSS
#undef SINTER_LOSS_WITH
#undef SINTER_LOSS_REJECTIONS

}  // namespace sinter
