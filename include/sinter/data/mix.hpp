// sinter/data/mix.hpp: samples of a batch mixed with each other, and their labels with them.
#pragma once

#include <algorithm>
#include <cmath>

#include "sinter/data/dataset.hpp"
#include "sinter/data/erase.hpp"

namespace sinter {

struct mixup_of_integers;

struct mix_options {
  double alpha = 1;  ///< of the Beta distribution of the share: small ones mix little, 1 makes all shares alike
};

namespace detail {

/// A number with the distribution Beta(alpha, alpha), of two with the Gamma distribution. Marsaglia and Tsang, ACM TOMS
/// 26 (2000).
SINTER_SHARED_COLD double beta_number(batch_numbers& numbers, double alpha);
/// Errors: value_error for an alpha that is not above 0.
SINTER_SHARED_COLD void check_alpha(const char* name, double alpha);
/// Errors: shape_error for another number of labels than n; index_error for a label outside of the classes.
SINTER_SHARED_COLD void check_mixed(const char* name, const std::vector<std::int64_t>& labels, index_t n,
                                    index_t classes);
/// (N, classes): `share` at the label of each sample, the rest at that of the sample before.
SINTER_SHARED_COLD tensor<float, 2> mixed_labels(const std::vector<std::int64_t>& labels, index_t classes,
                                                 double share);

#if SINTER_DEFINES

/// The logarithm, as the number itself may be too small for a double.
SINTER_SHARED_COLD double log_gamma_number(batch_numbers& numbers, double alpha) {
  const double d = (alpha < 1 ? alpha + 1 : alpha) - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  const double boost = alpha < 1 ? std::log(numbers.next()) / alpha : 0;
  for (;;) {
    const double radius = std::sqrt(-2 * std::log(numbers.next()));
    const double x = radius * std::cos(6.283185307179586 * numbers.next()), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(numbers.next()) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d * v) + boost;
  }
}
SINTER_SHARED_COLD void check_alpha(const char* name, double alpha) {
  if (!(alpha > 0) || !std::isfinite(alpha))
    refuse<value_error>({name, ": alpha is ", alpha, "; it must be finite and above 0"});
}
SINTER_SHARED_COLD double beta_number(batch_numbers& numbers, double alpha) {
  const double a = log_gamma_number(numbers, alpha), b = log_gamma_number(numbers, alpha);
  return 1 / (1 + std::exp(b - a));
}
SINTER_SHARED_COLD void check_mixed(const char* name, const std::vector<std::int64_t>& labels, index_t n,
                                    index_t classes) {
  if (static_cast<index_t>(labels.size()) != n)
    refuse<shape_error>({name, ": ", labels.size(), " labels for ", n, " samples; there must be one for each"});
  for (std::size_t i = 0; i < labels.size(); ++i)
    if (labels[i] < 0 || labels[i] >= classes)
      refuse<index_error>({name, ": label ", labels[i], " of sample ", i, " is outside [0, ", classes, ")"});
}
SINTER_SHARED_COLD tensor<float, 2> mixed_labels(const std::vector<std::int64_t>& labels, index_t classes,
                                                 double share) {
  const tensor<float, 2> to = zeros<float>({static_cast<index_t>(labels.size()), classes < 0 ? 0 : classes});
  for (std::size_t i = 0; i < labels.size(); ++i) {
    float* const row = to.data() + static_cast<index_t>(i) * classes;
    row[labels[i]] += static_cast<float>(share);
    row[labels[(i + labels.size() - 1) % labels.size()]] += static_cast<float>(1 - share);
  }
  return to;
}

#endif  // SINTER_DEFINES

template <integer_element L, auto Shape>
std::vector<std::int64_t> labels_on_host(const char* name, const tensor<L, Shape, cpu>& labels) {
  if (!labels.defined()) refuse<value_error>({name, ": the labels are undefined"});
  const auto dense = labels.contiguous();
  return {dense.begin(), dense.end()};
}

}  // namespace detail

/// Each sample times a share s plus the sample before it in the batch times 1 - s (the first one with the last), and
/// labels as probabilities mixed alike: (N, ...) and (N,) => (N, ...) and (N, classes), for the cross_entropy against
/// probabilities. s is of the whole batch, with the distribution Beta(alpha, alpha). As torchvision's MixUp. Zhang et
/// al., ICLR 2018. One draw. Errors: value_error for an alpha that is not above 0; shape_error for another number of
/// labels; index_error for a label outside of the classes.
///
///     auto [x, y] = mixup(gen, images, labels, 10, {.alpha = 0.2});
///     variable loss = cross_entropy(model(x), y);
template <floating_element T, auto Shape, integer_element L, auto LabelShape>
  requires(tensor<T, Shape, cpu>::rank >= 1 && tensor<L, LabelShape, cpu>::rank == 1)
auto mixup(generator& gen, const tensor<T, Shape, cpu>& inputs, const tensor<L, LabelShape, cpu>& labels,
           index_t classes, const mix_options& options = {}) {
  constexpr int rank = tensor<T, Shape, cpu>::rank;
  detail::check_images("mixup", inputs);
  const index_t n = inputs.shape()[0], each = n > 0 ? inputs.numel() / n : 0;
  const auto host = detail::labels_on_host("mixup", labels);
  detail::check_mixed("mixup", host, n, classes);
  detail::check_alpha("mixup", options.alpha);
  detail::batch_numbers numbers(gen);
  const double share = detail::beta_number(numbers, options.alpha);
  const auto from = inputs.contiguous();
  const auto to = tensor<T, rank>::uninitialized(inputs.shape());
  for (index_t i = 0; i < n; ++i) {
    const T *a = from.data() + i * each, *b = from.data() + (i + n - 1) % n * each;
    T* const out = to.data() + i * each;
    for (index_t k = 0; k < each; ++k)
      out[k] = static_cast<T>(
          static_cast<compute_type<T>>(share * static_cast<double>(a[k]) + (1 - share) * static_cast<double>(b[k])));
  }
  auto targets = detail::mixed_labels(host, classes, share);
  return batch<tensor<T, rank>, tensor<float, 2>>{to, std::move(targets)};
}

template <integer_element T, auto Shape, class Labels, class Problem = mixup_of_integers,
          class Fix = cast_to_float_and_divide_by_255>
void mixup(generator&, const tensor<T, Shape, cpu>&, const Labels&, index_t, const mix_options& = {}) = delete;

/// A window of each image is that of the image before it in the batch (of the first one that of the last), and labels
/// are mixed by its area: (N, C, H, W) and (N,) => the same and (N, classes). The window is that of the whole batch;
/// its area is 1 - s before it is cut at the border, s with the distribution Beta(alpha, alpha). As torchvision's
/// CutMix. Yun et al., ICCV 2019. One draw. Errors: those of mixup.
///
///     auto [x, y] = cutmix(gen, images, labels, 10);
template <element T, auto Shape, integer_element L, auto LabelShape>
  requires(detail::image_batch<tensor<T, Shape, cpu>> && tensor<L, LabelShape, cpu>::rank == 1)
batch<tensor<T, 4>, tensor<float, 2>> cutmix(generator& gen, const tensor<T, Shape, cpu>& images,
                                             const tensor<L, LabelShape, cpu>& labels, index_t classes,
                                             const mix_options& options = {}) {
  detail::check_images("cutmix", images);
  const auto& shape = images.shape();
  const index_t n = shape[0], planes = shape[1], height = shape[2], width = shape[3];
  const auto host = detail::labels_on_host("cutmix", labels);
  detail::check_mixed("cutmix", host, n, classes);
  detail::check_alpha("cutmix", options.alpha);
  detail::batch_numbers numbers(gen);
  const double half = 0.5 * std::sqrt(1 - detail::beta_number(numbers, options.alpha));
  const auto x = static_cast<index_t>(numbers.next() * static_cast<double>(width));
  const auto y = static_cast<index_t>(numbers.next() * static_cast<double>(height));
  const auto w = static_cast<index_t>(half * static_cast<double>(width));
  const auto h = static_cast<index_t>(half * static_cast<double>(height));
  const index_t left = std::max<index_t>(x - w, 0), right = std::min(x + w, width);
  const index_t top = std::max<index_t>(y - h, 0), bottom = std::min(y + h, height);
  const auto from = images.contiguous();
  const auto to = tensor<T, 4>::uninitialized(shape);
  std::copy(from.data(), from.data() + from.numel(), to.data());
  for (index_t i = 0; i < n * planes; ++i)
    for (index_t row = top; row < bottom; ++row) {
      const T* const other = from.data() + ((i + (n - 1) * planes) % (n * planes) * height + row) * width;
      std::copy(other + left, other + right, to.data() + (i * height + row) * width + left);
    }
  const double area = static_cast<double>((right - left) * (bottom - top));
  const double all = static_cast<double>(std::max<index_t>(height * width, 1));
  return {to, detail::mixed_labels(host, classes, 1 - area / all)};
}

}  // namespace sinter
