// sinter/data/erase.hpp: windows of images that are erased at random.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "sinter/data/image_batch.hpp"

namespace sinter {

struct random_erasing_options {
  double p = 0.5;                              ///< the probability that an image is changed
  std::array<double, 2> scale = {0.02, 0.33};  ///< the least and largest part of the image
  std::array<double, 2> ratio = {0.3, 3.3};    ///< the least and largest height by width
  double value = 0;                            ///< of erased elements
};

namespace detail {

/// Rows top, ..., bottom - 1 and columns left, ..., right - 1.
struct window {
  index_t top = 0, left = 0, bottom = 0, right = 0;
};

/// Errors: value_error.
SINTER_SHARED_COLD void check_erasing(const random_erasing_options& o);
/// From `erasing_numbers` numbers in [0, 1); empty where nothing is erased.
inline constexpr index_t erasing_numbers = 23;
SINTER_SHARED_COLD window random_window(const random_erasing_options& o, const double* u, index_t height,
                                        index_t width);

/// Copies of the images, window(i) of each overwritten.
template <element T, auto Shape, class Window>
tensor<T, 4> erased(const tensor<T, Shape, cpu>& images, double value, const Window& window_of) {
  const T fill = number<T>(value);
  const auto& shape = images.shape();
  const tensor<T, 4> to = tensor<T, 4>::uninitialized(shape);
  const tensor<T, Shape, cpu> from = images.contiguous();
  std::copy(from.data(), from.data() + from.numel(), to.data());
  for (index_t i = 0; i < shape[0]; ++i) {
    const window w = window_of(i);
    for (index_t c = 0; c < shape[1]; ++c)
      for (index_t y = w.top; y < w.bottom; ++y) {
        T* const row = to.data() + ((i * shape[1] + c) * shape[2] + y) * shape[3];
        std::fill(row + w.left, row + w.right, fill);
      }
  }
  return to;
}

#if SINTER_DEFINES

SINTER_SHARED_COLD void check_erasing(const random_erasing_options& o) {
  if (!(o.p >= 0 && o.p <= 1)) refuse<value_error>({"random_erasing: the probability ", o.p, " is outside [0, 1]"});
  if (!(o.scale[0] >= 0 && o.scale[0] <= o.scale[1] && o.scale[1] <= 1))
    refuse<value_error>({"random_erasing: scale from ", o.scale[0], " to ", o.scale[1],
                         "; they must lie in [0, 1], the smaller one first"});
  if (!(o.ratio[0] > 0 && o.ratio[0] <= o.ratio[1]) || !std::isfinite(o.ratio[1]))
    refuse<value_error>({"random_erasing: ratio from ", o.ratio[0], " to ", o.ratio[1],
                         "; they must be above 0, the smaller one first"});
}
SINTER_SHARED_COLD window random_window(const random_erasing_options& o, const double* u, index_t height,
                                        index_t width) {
  if (!(u[0] < o.p)) return {};
  const double area = static_cast<double>(height) * static_cast<double>(width);
  for (const double* tried = u + 3; tried < u + erasing_numbers; tried += 2) {  // ten times, as torchvision
    const double part = area * (o.scale[0] + tried[0] * (o.scale[1] - o.scale[0]));
    const double low = std::log(o.ratio[0]), ratio = std::exp(low + tried[1] * (std::log(o.ratio[1]) - low));
    const double high = std::round(std::sqrt(part * ratio)), wide = std::round(std::sqrt(part / ratio));
    if (!(high < static_cast<double>(height) && wide < static_cast<double>(width))) continue;
    const auto h = static_cast<index_t>(high), w = static_cast<index_t>(wide);
    const auto top = static_cast<index_t>(u[1] * static_cast<double>(height - h + 1));
    const auto left = static_cast<index_t>(u[2] * static_cast<double>(width - w + 1));
    return {top, left, top + h, left + w};
  }
  return {};
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// Erases a window of each image with probability p, of a random size, shape and place: (N, C, H, W) => the same. As
/// torchvision's RandomErasing, which treats a batch as one image. Zhong et al., AAAI 2020. Draws
/// `rand<double>(gen, {N, 23})`. Errors: value_error for ranges without sense and a value that T cannot hold.
///
///     const tensor x = random_erasing(gen, images, {.p = 0.25});
template <element T, auto Shape, device D>
  requires detail::image_batch<tensor<T, Shape, D>>
tensor<T, 4> random_erasing(generator& gen, const tensor<T, Shape, D>& images,
                            const random_erasing_options& options = {}) {
  detail::check_images("random_erasing", images);
  detail::check_erasing(options);
  static_cast<void>(T(detail::number<T>(options.value)));  // checks before it draws
  const auto& shape = images.shape();
  const tensor<double, 2> numbers = detail::numbers_of_samples(gen, shape[0], detail::erasing_numbers);
  return detail::erased(images, options.value, [&](index_t i) {
    return detail::random_window(options, numbers.data() + i * detail::erasing_numbers, shape[2], shape[3]);
  });
}

/// Erases a square of `size` pixels around a random place of each image; what lies outside of the image is cut off:
/// (N, C, H, W) => the same. DeVries and Taylor, arXiv:1708.04552, 2017. Draws `rand<double>(gen, {N, 2})`. Errors:
/// value_error for a size below 1.
///
///     const tensor x = cutout(gen, images, 16);
template <element T, auto Shape, device D>
  requires detail::image_batch<tensor<T, Shape, D>>
tensor<T, 4> cutout(generator& gen, const tensor<T, Shape, D>& images, index_t size) {
  detail::check_images("cutout", images);
  if (size < 1) detail::refuse<value_error>({"cutout: the size is ", size, "; it must be at least 1"});
  const index_t height = images.shape()[2], width = images.shape()[3];
  const tensor<double, 2> numbers = detail::numbers_of_samples(gen, images.shape()[0], 2);
  return detail::erased(images, 0, [&](index_t i) {
    const index_t before = std::min(size / 2, height + width), behind = std::min(size - size / 2, height + width);
    const auto y = static_cast<index_t>(numbers.data()[2 * i] * static_cast<double>(height));
    const auto x = static_cast<index_t>(numbers.data()[2 * i + 1] * static_cast<double>(width));
    return detail::window{std::max<index_t>(y - before, 0), std::max<index_t>(x - before, 0),
                          std::min(y + behind, height), std::min(x + behind, width)};
  });
}

template <element T, auto Shape, device D, class Problem = augmentation_of_other_than_host_images_of_rank_4,
          class Fix = reshape_to_n_c_h_w_and_augment_before_dot_to>
  requires(!detail::image_batch<tensor<T, Shape, D>>)
void random_erasing(generator&, const tensor<T, Shape, D>&, const random_erasing_options& = {}) = delete;
template <element T, auto Shape, device D, class Problem = augmentation_of_other_than_host_images_of_rank_4,
          class Fix = reshape_to_n_c_h_w_and_augment_before_dot_to>
  requires(!detail::image_batch<tensor<T, Shape, D>>)
void cutout(generator&, const tensor<T, Shape, D>&, index_t) = delete;

}  // namespace sinter
