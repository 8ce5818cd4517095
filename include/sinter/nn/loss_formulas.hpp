// sinter/nn/loss_formulas.hpp: losses that are a formula of prediction and target, element by element.
#pragma once

#include "sinter/nn/loss.hpp"
#include "sinter/ops/abs.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/any.hpp"
#include "sinter/ops/clamp_min.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/exp.hpp"
#include "sinter/ops/greater.hpp"
#include "sinter/ops/less.hpp"
#include "sinter/ops/log.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/pow.hpp"
#include "sinter/ops/sigmoid.hpp"
#include "sinter/ops/where.hpp"
#include "sinter/ops/xlogy.hpp"

namespace sinter {

template <int, int>
struct prediction_and_variance_of_ranks;

/// What poisson_nll_loss takes into account.
struct poisson_nll_options {
  bool log_input = true;  ///< the prediction is the logarithm of the rate
  bool full = false;      ///< adds Stirling's approximation of ln(target!) where the target is above 1
  double eps = 1e-8;      ///< added to a rate before its logarithm
};

/// What sigmoid_focal_loss takes into account.
struct focal_options {
  double alpha = 0.25;  ///< the weight of targets of 1, and 1 - alpha that of 0; below 0: no weights
  double gamma = 2;     ///< the power of how wrong a probability is
};
/// What gaussian_nll_loss takes into account.
struct gaussian_nll_options {
  bool full = false;  ///< adds ln(2 pi) / 2
  double eps = 1e-6;  ///< the least variance that counts
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

template <class R>
concept divergence_reduction = loss_reduction<R> || std::is_same_v<R, reduction::batchmean_t>;

/// -(t ln p + (1 - t) ln(1 - p)).
template <class P, class B>
auto cross_entropy_of_two(const P& p, const B& t) {
  return (t - 1) * clamp_min(log(1 - p), -100) - t * clamp_min(log(p), -100);
}

template <class A, class B, class V>
constexpr auto find_gaussian_mistake() {
  if constexpr (!is_fitting<loss_mistake<A, B>>) return loss_mistake<A, B>{};
  else if constexpr (!expression<V>) return no_operands<V>{};
  else if constexpr (!fits<ops::subtract_op, A, V>) return mistake_of<ops::subtract_op, A, V>{};
  else if constexpr (rank_of<V> != rank_of<A> && rank_of<V> != rank_of<A> - 1)
    return mistake<prediction_and_variance_of_ranks<rank_of<A>, rank_of<V>>, use_reshape_squeeze_or_unsqueeze>{};
  else return fitting<element_of<A>>{};
}
template <class A, class B, class V>
using gaussian_mistake = decltype(find_gaussian_mistake<bare<A>, bare<B>, bare<V>>());

/// Variances with a last axis, if they have none.
template <int R, class V>
auto with_last_axis(V&& variance) {
  if constexpr (rank_of<V> == R) return eval_to_read(std::forward<V>(variance));
  else return eval_to_read(std::forward<V>(variance)).unsqueeze(R - 1);
}
/// Whether `part` has the extents of `whole`, or 1 on axes from `least` on.
template <int R>
bool fits_but_for_ones(const extents<R>& part, const extents<R>& whole, int least) {
  bool fits = true;
  for (int d = 0; d < R; ++d) fits = fits && (part[d] == whole[d] || (d >= least && part[d] == 1));
  return fits;
}
/// max(v, eps), with the derivative of v.
template <class V>
auto held_above(const V& v, double eps) {
  if constexpr (is_tracked_v<V>) return eval(v + clamp_min(eps - constant(v), 0));
  else return eval(clamp_min(v, eps));
}

}  // namespace detail

// name(prediction, target, reduction) of a formula of `a` and `b`, both expressions.
#define SINTER_LOSS(name, ...)                                              \
  template <class A, class B, detail::loss_reduction R = reduction::mean_t> \
    requires(detail::is_fitting<detail::loss_mistake<A, B>>)                \
  auto name(A&& a, B&& b, R = {}) {                                         \
    detail::check_loss_shapes(#name, a, b);                                 \
    return detail::reduced<R>(__VA_ARGS__);                                 \
  }
// The same with a number behind the target, which is 1 where it is not given. enable_if: see expr/declare.hpp.
#define SINTER_LOSS_WITH(name, number, ...)                                                                        \
  template <class A, class B, detail::loss_reduction R = reduction::mean_t,                                        \
            class = std::enable_if_t<detail::is_fitting<detail::loss_mistake<A, B>>>>                              \
  auto name(A&& a, B&& b, double number, R = {}) {                                                                 \
    detail::check_loss_shapes(#name, a, b);                                                                        \
    return detail::reduced<R>(__VA_ARGS__);                                                                        \
  }                                                                                                                \
  template <class A, class B, class R = reduction::mean_t,                                                         \
            class = std::enable_if_t<detail::loss_reduction<R> && detail::is_fitting<detail::loss_mistake<A, B>>>> \
  auto name(A&& a, B&& b, R reduce = {}) {                                                                         \
    return name(std::forward<A>(a), std::forward<B>(b), 1, reduce);                                                \
  }
// Its rejections stand beside, in the file, so that compilers show one macro less.

/// |prediction - target| of equal shapes; reductions and errors as mse_loss.
///
///     variable loss = l1_loss(prediction, target);
SINTER_LOSS(l1_loss, abs(std::forward<A>(a) - std::forward<B>(b)))
SINTER_REJECTIONS_OF_TWO(l1_loss, detail::loss_mistake)
SINTER_TEXT_REJECTION(l1_loss)
SINTER_LOSS_IN_BRACES(l1_loss)

/// log(1 + e^(-target prediction)), of targets 1 and -1, without overflow; reductions and errors as mse_loss.
///
///     variable loss = soft_margin_loss(scores, signs);
SINTER_LOSS(soft_margin_loss, -log_sigmoid(std::forward<B>(b) * std::forward<A>(a)))
SINTER_REJECTIONS_OF_TWO(soft_margin_loss, detail::loss_mistake)
SINTER_TEXT_REJECTION(soft_margin_loss)
SINTER_LOSS_IN_BRACES(soft_margin_loss)

/// -(t ln p + (1 - t) ln(1 - p)) of probabilities p; logarithms are at least -100, so that no loss is infinite. From
/// logits take bce_with_logits, which is more accurate. Reductions and errors as mse_loss.
///
///     variable loss = binary_cross_entropy(sigmoid(x), target);
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto binary_cross_entropy(A&& a, B&& b, R = {}) {
  detail::check_loss_shapes("binary_cross_entropy", a, b);
  return detail::reduced<R>(detail::cross_entropy_of_two(a, b));
}
/// The same with weights, which broadcast to the losses. Runs at once. Errors: shape_error for weights that do not.
///
///     variable loss = binary_cross_entropy(p, target, {.weight = rare});
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto binary_cross_entropy(A&& a, B&& b, const detail::loss_options_for<A>& options, R = {}) {
  detail::check_loss_shapes("binary_cross_entropy", a, b);
  return detail::weighted<R>("binary_cross_entropy", detail::cross_entropy_of_two(a, b), options.weight);
}
SINTER_REJECTIONS_OF_TWO(binary_cross_entropy, detail::loss_mistake)
SINTER_TEXT_REJECTION(binary_cross_entropy)

/// (prediction - target)^2 / (2 beta) up to a difference of `beta`, above it |prediction - target| - beta / 2; with
/// beta = 0 it is l1_loss. Reductions and errors as mse_loss, and value_error for a beta below 0.
///
///     variable loss = smooth_l1_loss(prediction, target, 0.5);
SINTER_LOSS_WITH(smooth_l1_loss, beta, detail::smooth_l1_of(abs(std::forward<A>(a) - std::forward<B>(b)), beta))
SINTER_REJECTIONS_OF_TWO(smooth_l1_loss, detail::loss_mistake)
SINTER_TEXT_REJECTION(smooth_l1_loss)
SINTER_LOSS_IN_BRACES(smooth_l1_loss)

/// (prediction - target)^2 / 2 up to a difference of `delta`, above it delta (|prediction - target| - delta / 2).
/// Reductions and errors as mse_loss, and value_error for a delta below 0. Huber, "Robust estimation of a location
/// parameter", 1964.
///
///     variable loss = huber_loss(prediction, target, 2.0);
SINTER_LOSS_WITH(huber_loss, delta, detail::huber_of(abs(std::forward<A>(a) - std::forward<B>(b)), delta))
SINTER_REJECTIONS_OF_TWO(huber_loss, detail::loss_mistake)
SINTER_TEXT_REJECTION(huber_loss)
SINTER_LOSS_IN_BRACES(huber_loss)

/// The prediction where the target is 1, max(0, margin - prediction) where it is -1; reductions and errors as mse_loss.
///
///     variable loss = hinge_embedding_loss(distances, signs);
SINTER_LOSS_WITH(hinge_embedding_loss, margin, where(b != 1, clamp_min(margin - a, 0), 0) + where(b != -1, a, 0))
SINTER_REJECTIONS_OF_TWO(hinge_embedding_loss, detail::loss_mistake)
SINTER_TEXT_REJECTION(hinge_embedding_loss)
SINTER_LOSS_IN_BRACES(hinge_embedding_loss)

/// target (ln target - prediction), 0 where the target is 0, of log-probabilities that are predicted and probabilities;
/// with `log_target` the target is a logarithm too. The mean is over all elements, as PyTorch's; the divergence of
/// distributions is reduction::batchmean, the sum over their number, which is the extent of axis 0. Reductions and
/// errors as mse_loss.
///
///     variable loss = kl_div(log_softmax(x, 1), target, reduction::batchmean);
template <class A, class B, detail::divergence_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto kl_div(A&& prediction, B&& target, R = {}) {
  detail::check_loss_shapes("kl_div", prediction, target);
  return detail::reduced<R>(xlogy(target, target) - target * prediction);
}
/// Behind the operands of kl_div: the target is a logarithm.
struct log_target_t {};
inline constexpr log_target_t log_target{};
template <class A, class B, detail::divergence_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto kl_div(A&& prediction, B&& target, log_target_t, R = {}) {
  detail::check_loss_shapes("kl_div", prediction, target);
  return detail::reduced<R>(exp(target) * (target - prediction));
}
SINTER_REJECTIONS_OF_TWO(kl_div, detail::loss_mistake)
SINTER_TEXT_REJECTION(kl_div)

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
SINTER_REJECTIONS_OF_TWO(poisson_nll_loss, detail::loss_mistake)
SINTER_TEXT_REJECTION(poisson_nll_loss)

/// bce_with_logits times (1 - p)^gamma, where p is the probability of the target, so that what is right already counts
/// little, and times alpha or 1 - alpha; the formula of torchvision.ops.sigmoid_focal_loss. Runs at once. Reductions
/// and errors as mse_loss, and value_error for a gamma below 0. Lin et al., "Focal loss for dense object detection",
/// 2017.
///
///     variable loss = sigmoid_focal_loss(logits, target, {.gamma = 1.5}, reduction::sum);
template <class A, class B, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::loss_mistake<A, B>>)
auto sigmoid_focal_loss(const A& logits, const B& target, const focal_options& o = {}, R = {}) {
  detail::check_not_negative("sigmoid_focal_loss", "gamma", o.gamma);
  const auto losses = bce_with_logits(logits, target, reduction::none);
  const auto wrong = sigmoid(logits) * (1 - target) + sigmoid(-logits) * target;
  const auto focused = eval(losses * pow(wrong, o.gamma));
  if (o.alpha < 0) return eval(detail::reduced<R>(focused));
  return eval(detail::reduced<R>(focused * (o.alpha * target + (1 - o.alpha) * (1 - target))));
}
SINTER_REJECTIONS_OF_TWO(sigmoid_focal_loss, detail::loss_mistake)

/// The negative log-likelihood of normal distributions with means that are predicted: (ln v + (prediction - target)^2 /
/// v) / 2, where v is the variance, or eps if it is smaller; its derivative is taken as that of v there too. `full`
/// adds ln(2 pi) / 2. The target has the shape of the prediction, or 1 for some extents. The variance has that shape,
/// or 1 for the last extent, or no last axis. Runs at once, and waits for a GPU. Reductions as mse_loss. Errors:
/// shape_error, and value_error for a variance below 0. Nix and Weigend, "Estimating the mean and variance of the
/// target probability distribution", 1994.
///
///     variable loss = gaussian_nll_loss(mean, target, variance);
template <class A, class B, class V, detail::loss_reduction R = reduction::mean_t>
  requires(detail::is_fitting<detail::gaussian_mistake<A, B, V>>)
auto gaussian_nll_loss(A&& prediction, B&& target, V&& variance, const gaussian_nll_options& o = {}, R = {}) {
  constexpr int N = rank_of<A>;
  detail::check_defined("gaussian_nll_loss", prediction);
  detail::check_defined("gaussian_nll_loss", target);
  detail::check_defined("gaussian_nll_loss", variance);
  if (!detail::fits_but_for_ones(target.shape(), prediction.shape(), 0))
    detail::refuse<shape_error>({"gaussian_nll_loss: target of shape ", target.shape(), " for a prediction of shape ",
                                 prediction.shape(), "; each axis has its extent or 1"});
  const auto v = detail::with_last_axis<N>(variance);
  if (!detail::fits_but_for_ones(v.shape(), prediction.shape(), N - 1))
    detail::refuse<shape_error>({"gaussian_nll_loss: variance of shape ", variance.shape(),
                                 " for a prediction of shape ", prediction.shape(),
                                 "; it has that shape, or 1 for its last extent, or no last axis"});
  if (eval(any(v < 0)).item()) throw value_error("gaussian_nll_loss: a variance below 0");
  const auto held = detail::held_above(v, o.eps);
  const double more = o.full ? 0.918938533204672742 : 0;  // ln(2 pi) / 2
  return eval(detail::reduced<R>((log(held) + square(prediction - target) / held) / 2 + more));
}
SINTER_REJECTIONS_OF_THREE(gaussian_nll_loss, detail::gaussian_mistake)

#undef SINTER_LOSS
#undef SINTER_LOSS_WITH

}  // namespace sinter
