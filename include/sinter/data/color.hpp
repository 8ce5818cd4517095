// sinter/data/color.hpp: brightness, contrast, saturation and hue of images, changed by given amounts or at random.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sinter/data/image_batch.hpp"

namespace sinter {

/// How far random colours may lie from those of an image; 0 leaves them.
struct color_jitter_options {
  double brightness = 0;  ///< factors from max(0, 1 - brightness) to 1 + brightness
  double contrast = 0;    ///< likewise
  double saturation = 0;  ///< likewise
  double hue = 0;         ///< up to this part of the circle of hues to either side; at most 0.5
};

namespace detail {

/// Changes of the pixels of one image: planes of red, green and blue, `size` numbers from 0 to 1 each.
enum class color_change : std::uint8_t { brightness, contrast, saturation, hue };
SINTER_SHARED_COLD void change_colors(double* rgb, index_t size, color_change what, double amount);
/// Errors: value_error.
SINTER_SHARED_COLD void check_jitter(const color_jitter_options& o);
/// All four in an order, by amounts, from five numbers in [0, 1).
SINTER_SHARED_COLD void jitter_colors(double* rgb, index_t size, const color_jitter_options& o, const double* u);

/// f(planes, number of pixels, image) of each image, as doubles. Errors: shape_error.
template <floating_element T, auto Shape, class F>
tensor<T, 4> with_colors(const char* name, const tensor<T, Shape, cpu>& images, const F& f) {
  check_images(name, images);
  const auto& shape = images.shape();
  if (shape[1] != 3)
    refuse<shape_error>({name, ": images of shape ", shape, "; they must have 3 channels, red, green and blue"});
  const tensor<T, Shape, cpu> from = images.contiguous();
  const auto to = tensor<T, 4>::uninitialized(extents<4>{{shape[0], 3, shape[2], shape[3]}});
  const index_t size = shape[2] * shape[3];
  std::vector<double> rgb(static_cast<std::size_t>(3 * size));
  for (index_t i = 0; i < shape[0]; ++i) {
    const T* const image = from.data() + i * 3 * size;
    for (index_t k = 0; k < 3 * size; ++k) rgb[static_cast<std::size_t>(k)] = static_cast<double>(image[k]);
    f(rgb.data(), size, i);
    for (index_t k = 0; k < 3 * size; ++k)
      to.data()[i * 3 * size + k] = static_cast<T>(static_cast<compute_type<T>>(rgb[static_cast<std::size_t>(k)]));
  }
  return to;
}

#if SINTER_DEFINES

SINTER_SHARED double grey(double r, double g, double b) { return 0.2989 * r + 0.587 * g + 0.114 * b; }
SINTER_SHARED double blend(double x, double other, double factor) {
  return std::clamp(factor * x + (1 - factor) * other, 0.0, 1.0);
}

/// Turns the hue; by way of hue, saturation and value. A. R. Smith, "Color gamut transform pairs", 1978.
SINTER_SHARED_COLD void turn_hue(double& r, double& g, double& b, double by) {
  if (!std::isfinite(r + g + b)) {
    r = g = b = std::numeric_limits<double>::quiet_NaN();
    return;
  }
  const double v = std::max({r, g, b}), least = std::min({r, g, b}), spread = v - least;
  if (spread == 0) return;
  const double s = spread / v;
  double h = v == r ? (g - b) / spread : v == g ? 2 + (b - r) / spread : 4 + (r - g) / spread;
  h = h / 6 + by;
  h = (h - std::floor(h)) * 6;
  const double part = std::floor(h), f = h - part;
  const double p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
  const double by_part[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
  const double* const color = by_part[static_cast<int>(part) % 6];
  r = color[0], g = color[1], b = color[2];
}

SINTER_SHARED_COLD void change_colors(double* rgb, index_t size, color_change what, double amount) {
  double *r = rgb, *g = rgb + size, *b = rgb + 2 * size;
  double other = 0;
  if (what == color_change::contrast) {
    for (index_t i = 0; i < size; ++i) other += grey(r[i], g[i], b[i]);
    other /= static_cast<double>(std::max<index_t>(size, 1));
  }
  for (index_t i = 0; i < size; ++i) {
    if (what == color_change::hue) {
      turn_hue(r[i], g[i], b[i], amount);
      continue;
    }
    if (what == color_change::saturation) other = grey(r[i], g[i], b[i]);
    r[i] = blend(r[i], other, amount);
    g[i] = blend(g[i], other, amount);
    b[i] = blend(b[i], other, amount);
  }
}
SINTER_SHARED_COLD void check_jitter(const color_jitter_options& o) {
  for (const double x : {o.brightness, o.contrast, o.saturation})
    if (!(x >= 0) || !std::isfinite(x))
      refuse<value_error>({"color_jitter: the amount ", x, " must be finite and not negative"});
  if (!(o.hue >= 0 && o.hue <= 0.5)) refuse<value_error>({"color_jitter: the hue ", o.hue, " is outside [0, 0.5]"});
}
SINTER_SHARED_COLD void jitter_colors(double* rgb, index_t size, const color_jitter_options& o, const double* u) {
  std::array<int, 4> order = {0, 1, 2, 3};
  auto number = static_cast<int>(u[4] * 24);  // of the order
  for (int left = 4; left > 1; number /= left, --left)
    std::swap(order[static_cast<std::size_t>(left - 1)], order[static_cast<std::size_t>(number % left)]);
  const double most[4] = {o.brightness, o.contrast, o.saturation, o.hue};
  for (const int k : order) {
    if (most[k] == 0) continue;
    const double low = k == 3 ? -most[k] : std::max(0.0, 1 - most[k]), high = k == 3 ? most[k] : 1 + most[k];
    change_colors(rgb, size, static_cast<color_change>(k), low + u[k] * (high - low));
  }
}

#endif  // SINTER_DEFINES

/// Errors: value_error for a factor that is negative, or, of a hue, outside [-0.5, 0.5].
SINTER_COLD inline void check_color(const char* name, double factor, double low, double high) {
  if (!(factor >= low && factor <= high))
    refuse<value_error>({name, ": ", factor, " is outside [", low, ", ", high, "]"});
}
template <class X>
tensor<element_of<X>, 4> adjust(const char* name, const X& images, color_change what, double amount) {
  const bool is_hue = what == color_change::hue;
  check_color(name, amount, is_hue ? -0.5 : 0, is_hue ? 0.5 : 1e6);
  return with_colors(name, images, [&](double* rgb, index_t size, index_t) { change_colors(rgb, size, what, amount); });
}

}  // namespace detail

/// Images (N, 3, H, W) of red, green and blue from 0 to 1, changed as by torchvision's functions of these names:
/// towards black by a factor below 1, away from it above; towards the mean grey of each image; towards the grey of each
/// pixel; and hues turned by a part of their circle. The grey is 0.2989 red + 0.587 green + 0.114 blue; results lie in
/// [0, 1]. Computed in double. A channel that is NaN stays NaN; where channels mix, the pixel does, and by contrast the
/// image. Errors: value_error for a factor below 0 or above 10^6 and a hue outside [-0.5, 0.5];
/// shape_error for other than 3 channels.
///
///     const tensor brighter = adjust_brightness(images, 1.2);
template <class X>
  requires(detail::is_fitting<detail::image_mistake<X>>)
tensor<element_of<X>, 4> adjust_brightness(const X& images, double factor) {
  return detail::adjust("adjust_brightness", images, detail::color_change::brightness, factor);
}
template <class X>
  requires(detail::is_fitting<detail::image_mistake<X>>)
tensor<element_of<X>, 4> adjust_contrast(const X& images, double factor) {
  return detail::adjust("adjust_contrast", images, detail::color_change::contrast, factor);
}
template <class X>
  requires(detail::is_fitting<detail::image_mistake<X>>)
tensor<element_of<X>, 4> adjust_saturation(const X& images, double factor) {
  return detail::adjust("adjust_saturation", images, detail::color_change::saturation, factor);
}
template <class X>
  requires(detail::is_fitting<detail::image_mistake<X>>)
tensor<element_of<X>, 4> adjust_hue(const X& images, double hue) {
  return detail::adjust("adjust_hue", images, detail::color_change::hue, hue);
}

/// All four, in an order and by amounts that are drawn for each image, as torchvision's ColorJitter, which treats a
/// batch as one image. Draws `rand<double>(gen, {N, 5})`. Errors: value_error for amounts that are negative or a hue
/// above 0.5; shape_error for other than 3 channels.
///
///     const tensor x = color_jitter(gen, images, {.brightness = 0.4, .contrast = 0.4, .saturation = 0.4, .hue = 0.1});
template <class X>
  requires(detail::is_fitting<detail::image_mistake<X>>)
tensor<element_of<X>, 4> color_jitter(generator& gen, const X& images, const color_jitter_options& options) {
  detail::check_images("color_jitter", images);
  detail::check_jitter(options);
  tensor<double, 2> numbers;
  return detail::with_colors("color_jitter", images, [&](double* rgb, index_t size, index_t i) {
    if (!numbers.defined()) numbers = detail::numbers_of_samples(gen, images.shape()[0], 5);
    detail::jitter_colors(rgb, size, options, numbers.data() + 5 * i);
  });
}
template <class X, class Problem = typename detail::image_mistake<X>::problem,
          class Fix = typename detail::image_mistake<X>::fix>
void color_jitter(generator&, const X&, const color_jitter_options&) = delete;

}  // namespace sinter
