// sinter/data/normalizer.hpp: features of mean 0 and deviation 1.
#pragma once

#include <cmath>
#include <vector>

#include "sinter/core/host_tensor.hpp"
#include "sinter/nn/buffer.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

namespace detail {

/// Means and deviations of the features of x: of its axis 1, or of all elements where it has rank 1. Two passes in
/// double. A feature whose deviation is no more than rounding has 1. Errors: shape_error, value_error.
SINTER_SHARED_COLD void fit_features(const host_tensor& x, std::vector<double>& mean, std::vector<double>& deviation);
/// Errors: value_error for deviations that are not above 0.
SINTER_SHARED_COLD void check_deviations(const host_tensor& deviations);
[[noreturn]] SINTER_SHARED_COLD void refuse_features(const char* function, text_piece shape, index_t features);

#if SINTER_DEFINES

SINTER_SHARED_COLD void fit_features(const host_tensor& x, std::vector<double>& mean, std::vector<double>& deviation) {
  const std::size_t features = mean.size();
  std::size_t samples = x.shape.empty() ? 1 : static_cast<std::size_t>(x.shape[0]), inner = 1;
  if (x.shape.size() > 1 ? static_cast<std::size_t>(x.shape[1]) != features : features != 1)
    refuse<shape_error>(
        {"normalizer: fit() on ", x.shape.size() > 1 ? x.shape[1] : 1, " features, but it is made for ", features});
  for (std::size_t d = 2; d < x.shape.size(); ++d) inner *= static_cast<std::size_t>(x.shape[d]);
  const auto count = static_cast<double>(samples * inner);
  if (samples * inner == 0) refuse<value_error>({"normalizer: fit() on no elements"});
  const std::size_t size = element_size(x.element);
  std::vector<double> line(inner);
  const auto for_each = [&](const auto& f) {  // f(feature, value)
    const std::byte* from = x.bytes.data();
    for (std::size_t i = 0; i < samples; ++i)
      for (std::size_t c = 0; c < features; ++c, from += inner * size) {
        with_element(x.element, [&](auto of) { convert_elements<decltype(of)>(from, inner, line.data()); });
        for (const double value : line) f(c, value);
      }
  };
  std::vector<double> sum(features), squares(features);
  for_each([&](std::size_t c, double value) { sum[c] += value; });
  for (std::size_t c = 0; c < features; ++c) mean[c] = sum[c] / count;
  for_each([&](std::size_t c, double value) { squares[c] += (value - mean[c]) * (value - mean[c]); });
  for (std::size_t c = 0; c < features; ++c) {
    const double variance = squares[c] / count, eps = std::numeric_limits<double>::epsilon();
    if (!std::isfinite(variance))
      refuse<value_error>({"normalizer: feature ", c, " has elements that are not finite, or so large that their ",
                           "variance is not; fill, scale or leave them out"});
    const double rounding = count * mean[c] * eps;
    deviation[c] = variance <= count * eps * variance + rounding * rounding ? 1 : std::sqrt(variance);
  }
}
SINTER_SHARED_COLD void check_deviations(const host_tensor& deviations) {
  std::vector<double> all(static_cast<std::size_t>(deviations.shape[0]));
  with_element(deviations.element,
               [&](auto from) { convert_elements<decltype(from)>(deviations.bytes.data(), all.size(), all.data()); });
  for (std::size_t c = 0; c < all.size(); ++c)
    if (!(all[c] > 0) || !std::isfinite(all[c]))
      refuse<value_error>({"normalizer: the deviation of feature ", c, " is ", all[c],
                           "; it must be finite and above 0, and is 1 for a feature that is constant"});
}
[[noreturn]] SINTER_SHARED_COLD void refuse_features(const char* function, text_piece shape, index_t features) {
  refuse<shape_error>({"normalizer: ", function, " on the shape ", shape, ", but it is made for ", features,
                       features == 1 ? " feature" : " features",
                       "; they lie along axis 1, and a tensor of rank 1 is one feature"});
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// Takes a mean off each feature and divides by its deviation, both from the training data by fit(), as scikit-learn's
/// StandardScaler. Features lie along axis 1: of (N, features), or the channels of (N, C, ...); a tensor of rank 1 is
/// one feature. A feature that is constant has the deviation 1. It is a module with the buffers `mean` and `deviation`
/// (features,): nn::save and run_checkpoint save it, to<D>() moves it, and in a `sequential` it is the first layer. T
/// is the element type of results; x may have any. Errors: shape_error for another number of features;
/// value_error of fit() for elements that are not finite, and for deviations that are not above 0.
///
///     normalizer scale(4);
///     scale.fit(train.inputs());
///     tensor x = scale(test.inputs());
///     tensor same = scale.inverse(x);
template <floating_element T = float, device D = cpu, class Kind = nn::tracked>
struct normalizer : nn::module<normalizer<T, D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <class To, class K>
  using rebind = normalizer<T, To, K>;

  normalizer() = default;
  /// Leaves x as it is before fit().
  explicit normalizer(index_t features) {
    if (features < 0)
      detail::refuse<shape_error>({"normalizer: ", features, " features; there may not be fewer than 0"});
    mean = zeros<T, D>(extents<1>{{features}});
    deviation = ones<T, D>(extents<1>{{features}});
  }
  /// Of known moments, such as those of ImageNet's channels.
  normalizer(const tensor<T, 1, D>& means, const tensor<T, 1, D>& deviations) {
    if (!means.defined() || !deviations.defined() || !(means.shape() == deviations.shape()))
      detail::refuse<shape_error>({"normalizer: means and deviations must be equally many"});
    detail::check_deviations(deviations);
    mean = means;
    deviation = deviations;
  }

  template <expression X>
  void fit(const X& x) {
    detail::check_defined("normalizer", x);
    detail::check_defined("normalizer", mean.value());
    std::vector<double> means(static_cast<std::size_t>(mean.numel())), deviations(means.size());
    if constexpr (detail::is_tensor<X>) detail::fit_features(x, means, deviations);
    else if constexpr (!is_tracked_v<X>) detail::fit_features(eval(x), means, deviations);
    else detail::fit_features(variable(x).detach(), means, deviations);
    mean.value().copy_(rounded(means));
    deviation.value().copy_(rounded(deviations));
  }

  template <expression X>
  auto forward(const X& x) const {
    check_features("forward()", x);
    return (cast<T>(x) - along<rank_of<X>>(mean)) / along<rank_of<X>>(deviation);
  }
  /// What forward() was given: y * deviation + mean.
  template <expression Y>
  auto inverse(const Y& y) const {
    check_features("inverse()", y);
    return y * along<rank_of<Y>>(deviation) + along<rank_of<Y>>(mean);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("mean", m.mean...);
    f("deviation", m.deviation...);
  }

  nn::buffer<T, 1, D> mean, deviation;

 private:
  static tensor<T, 1, D> rounded(const std::vector<double>& numbers) {
    std::vector<T> to;
    for (const double x : numbers) to.push_back(static_cast<T>(static_cast<compute_type<T>>(x)));
    return from_data<T>(to, {static_cast<index_t>(to.size())}).template to<D>();
  }
  template <class X>
  void check_features(const char* function, const X& x) const {
    detail::check_defined("normalizer", x);
    const auto shape = x.shape();
    if ((rank_of<X> > 1 ? shape[rank_of<X> > 1] : 1) != mean.numel())
      detail::refuse_features(function, shape, mean.numel());
  }
  /// As (features, 1, ..., 1), which broadcasts along axis 1 of a tensor of this rank.
  template <int Rank>
  static auto along(const nn::buffer<T, 1, D>& numbers) {
    constexpr int rank = Rank < 2 ? 1 : Rank - 1;
    extents<rank> shape;
    for (int d = 0; d < rank; ++d) shape[d] = d == 0 ? numbers.numel() : 1;
    return numbers.value().reshape(shape);
  }
};
normalizer(index_t) -> normalizer<float, cpu, nn::tracked>;
normalizer(int) -> normalizer<float, cpu, nn::tracked>;

}  // namespace sinter
