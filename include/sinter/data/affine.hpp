// sinter/data/affine.hpp: images turned, moved, scaled and sheared, by given amounts or at random.
#pragma once

#include <array>
#include <cmath>
#include <utility>

#include "sinter/data/image_batch.hpp"
#include "sinter/ops/grid_sample.hpp"

namespace sinter {

/// What affine() does to an image, about its middle.
struct affine_map {
  double angle = 0;                          ///< degrees, turned clockwise
  std::array<double, 2> translate = {0, 0};  ///< moved to the right and down, in pixels
  double scale = 1;
  std::array<double, 2> shear = {0, 0};  ///< degrees, along x and along y
};

struct affine_options {
  interpolation mode = interpolation::nearest;      ///< or bilinear, bicubic
  grid_padding padding_mode = grid_padding::zeros;  ///< what comes into view
};

/// The ranges that random_affine draws from, evenly.
struct random_affine_options {
  double angle = 0;                          ///< turned by up to so many degrees, to either side
  std::array<double, 2> translate = {0, 0};  ///< moved by up to these parts of width and height, by whole pixels
  std::array<double, 2> scale = {1, 1};      ///< from the first to the second
  double shear = 0;                          ///< along x, by up to so many degrees to either side
  interpolation mode = interpolation::nearest;
  grid_padding padding_mode = grid_padding::zeros;
};

namespace detail {

/// The map from places of the result to places of the image, both from -1 to 1, as affine_grid takes it: (2, 3).
SINTER_SHARED_COLD std::array<double, 6> affine_theta(const affine_map& m, index_t height, index_t width);
/// Errors: value_error.
SINTER_SHARED_COLD void check_ranges(const random_affine_options& o);
/// From five numbers in [0, 1).
SINTER_SHARED_COLD affine_map random_map(const random_affine_options& o, const double* u, index_t height,
                                         index_t width);

#if SINTER_DEFINES

SINTER_SHARED_COLD std::array<double, 6> affine_theta(const affine_map& m, index_t height, index_t width) {
  if (!(m.scale > 0) || !std::isfinite(m.scale))
    refuse<value_error>({"affine: the scale is ", m.scale, "; it must be above 0 and finite"});
  const std::pair<const char*, double> numbers[] = {{"angle", m.angle},
                                                    {"translation to the right", m.translate[0]},
                                                    {"translation down", m.translate[1]},
                                                    {"shear along x", m.shear[0]},
                                                    {"shear along y", m.shear[1]}};
  for (const auto& [name, number] : numbers)
    if (!std::isfinite(number)) refuse<value_error>({"affine: the ", name, " is ", number, "; it must be finite"});
  constexpr double degree = 3.14159265358979323846 / 180;
  const double turn = m.angle * degree, x = m.shear[0] * degree, y = m.shear[1] * degree;
  // Turning after shearing, [[a, b], [c, d]], has the determinant 1.
  const double a = std::cos(turn - y) / std::cos(y), b = -a * std::tan(x) - std::sin(turn);
  const double c = std::sin(turn - y) / std::cos(y), d = -c * std::tan(x) + std::cos(turn);
  const double inverse[4] = {d / m.scale, -b / m.scale, -c / m.scale, a / m.scale};
  const double right = -inverse[0] * m.translate[0] - inverse[1] * m.translate[1];
  const double down = -inverse[2] * m.translate[0] - inverse[3] * m.translate[1];
  const auto h = static_cast<double>(height), w = static_cast<double>(width);
  return {inverse[0], inverse[1] * h / w, right * 2 / w, inverse[2] * w / h, inverse[3], down * 2 / h};
}
SINTER_SHARED_COLD void check_ranges(const random_affine_options& o) {
  if (!(o.angle >= 0) || !std::isfinite(o.angle) || !(o.shear >= 0) || !(o.shear < 90))
    refuse<value_error>({"random_affine: angle ", o.angle, " and shear ", o.shear,
                         "; they must be 0 or more and finite, and the shear below 90"});
  for (const double part : o.translate)
    if (!(part >= 0 && part <= 1)) refuse<value_error>({"random_affine: translate ", part, " is outside [0, 1]"});
  if (!(o.scale[0] > 0) || !(o.scale[0] <= o.scale[1]) || !std::isfinite(o.scale[1]))
    refuse<value_error>({"random_affine: scale from ", o.scale[0], " to ", o.scale[1],
                         "; they must be above 0, the smaller one first"});
}
SINTER_SHARED_COLD affine_map random_map(const random_affine_options& o, const double* u, index_t height,
                                         index_t width) {
  const auto moved = [](double number, double part, index_t size) {
    return std::round((2 * number - 1) * part * static_cast<double>(size));
  };
  return {.angle = (2 * u[0] - 1) * o.angle,
          .translate = {moved(u[1], o.translate[0], width), moved(u[2], o.translate[1], height)},
          .scale = o.scale[0] + u[3] * (o.scale[1] - o.scale[0]),
          .shear = {(2 * u[4] - 1) * o.shear, 0}};
}

#endif  // SINTER_DEFINES

/// Map i to image i.
template <floating_element T, auto Shape>
tensor<T, 4> apply_maps(const tensor<T, Shape, cpu>& images, const std::vector<affine_map>& maps,
                        const affine_options& options) {
  const index_t n = images.shape()[0], height = images.shape()[2], width = images.shape()[3];
  const auto theta = tensor<T, 3>::uninitialized(extents<3>{{n, 2, 3}});
  T* to = theta.data();
  for (index_t i = 0; i < n; ++i)
    for (const double number : affine_theta(maps[static_cast<std::size_t>(i)], height, width))
      *to++ = static_cast<T>(static_cast<compute_type<T>>(number));
  return grid_sample(images, affine_grid(theta, {n, images.shape()[1], height, width}),
                     {.mode = options.mode, .padding_mode = options.padding_mode});
}

}  // namespace detail

/// Each image sheared, scaled, turned about its middle, then moved: (N, C, H, W) => the same. As
/// torchvision.transforms.functional.affine. Errors: value_error for a scale that is not above 0, or a number
/// that is not finite.
///
///     const tensor turned = affine(images, {.angle = 30}, {.mode = interpolation::bilinear});
template <class X>
  requires(detail::is_fitting<detail::image_mistake<X>>)
tensor<element_of<X>, 4> affine(const X& images, const affine_map& map, const affine_options& options = {}) {
  detail::check_images("affine", images);
  return detail::apply_maps(images, std::vector<affine_map>(static_cast<std::size_t>(images.shape()[0]), map), options);
}

/// affine() by amounts that are drawn for each image: (N, C, H, W) => the same. As torchvision's RandomAffine, which
/// treats a batch as one image. Draws `rand<double>(gen, {N, 5})`. Errors: value_error for ranges without sense.
///
///     const tensor x = random_affine(gen, images, {.angle = 10, .translate = {0.1, 0.1}, .scale = {0.9, 1.1}});
template <class X>
  requires(detail::is_fitting<detail::image_mistake<X>>)
tensor<element_of<X>, 4> random_affine(generator& gen, const X& images, const random_affine_options& options) {
  detail::check_images("random_affine", images);
  detail::check_ranges(options);
  const index_t n = images.shape()[0];
  const tensor<double, 2> numbers = detail::numbers_of_samples(gen, n, 5);
  std::vector<affine_map> maps;
  for (index_t i = 0; i < n; ++i)
    maps.push_back(detail::random_map(options, numbers.data() + 5 * i, images.shape()[2], images.shape()[3]));
  return detail::apply_maps(images, maps, {options.mode, options.padding_mode});
}

template <class X, class Problem = typename detail::image_mistake<X>::problem,
          class Fix = typename detail::image_mistake<X>::fix>
void affine(const X&, const affine_map&, const affine_options& = {}) = delete;
template <class X, class Problem = typename detail::image_mistake<X>::problem,
          class Fix = typename detail::image_mistake<X>::fix>
void random_affine(generator&, const X&, const random_affine_options&) = delete;

}  // namespace sinter
