// tests/kernels/sampling.hpp: grid_sample and roi_align by plain loops in double.
#pragma once

#include <sinter/sinter.hpp>

#include <algorithm>
#include <cmath>

namespace kernel_table {

/// The place that is read in place of x on an axis of n elements.
inline double place_inside(double x, sinter::index_t n, const sinter::grid_sample_options& o) {
  const double last = static_cast<double>(n - 1);
  if (o.padding_mode == sinter::grid_padding::zeros) return x;
  if (o.padding_mode == sinter::grid_padding::reflection) {
    const double low = o.align_corners ? 0 : -0.5, high = o.align_corners ? last : last + 0.5;
    if (low == high) return 0;
    while (x < low || x > high) x = x < low ? 2 * low - x : 2 * high - x;
  }
  return std::clamp(x, 0.0, last);
}

/// How much element i of n counts at the number `number` of a grid.
inline double counted(double number, sinter::index_t i, sinter::index_t n, const sinter::grid_sample_options& o) {
  const double size = static_cast<double>(n);
  const double x = o.align_corners ? (number + 1) / 2 * (size - 1) : ((number + 1) * size - 1) / 2;
  if (o.mode == sinter::interpolation::nearest)
    return std::nearbyint(place_inside(x, n, o)) == static_cast<double>(i) ? 1 : 0;
  if (o.mode == sinter::interpolation::bilinear)
    return std::max(0.0, 1 - std::abs(static_cast<double>(i) - place_inside(x, n, o)));
  double sum = 0;
  for (double k = std::floor(x) - 1; k < std::floor(x) + 3; ++k)
    if (place_inside(k, n, o) == static_cast<double>(i)) {
      const double d = std::abs(k - x);
      sum += d <= 1 ? 1.25 * d * d * d - 2.25 * d * d + 1 : -0.75 * (d * d * d - 5 * d * d + 8 * d - 4);
    }
  return sum;
}

/// Each result is the sum of all elements of its plane, as they count along each axis.
template <int R>
sinter::tensor<double, R> sampled(const sinter::tensor<double, R>& x, const sinter::tensor<double, R>& grid,
                                  const sinter::grid_sample_options& o) {
  using sinter::index_t;
  sinter::extents<R> shape = x.shape();
  for (int d = 2; d < R; ++d) shape[d] = grid.shape()[d - 1];
  const auto from = x.contiguous(), at = grid.contiguous();
  const auto y = sinter::zeros<double>(shape);
  index_t places = 1, elements = 1;
  for (int d = 2; d < R; ++d) {
    places *= shape[d];
    elements *= x.shape()[d];
  }
  for (index_t k = 0; k < y.numel(); ++k) {
    const index_t plane = k / places, sample = plane / shape[1];
    const double* const numbers = at.data() + (sample * places + k % places) * (R - 2);
    for (index_t e = 0; e < elements; ++e) {
      double weight = 1;
      index_t rest = e;
      for (int d = R - 1; d >= 2; --d) {
        const index_t n = x.shape()[d];
        weight *= counted(numbers[R - 1 - d], rest % n, n, o);
        rest /= n;
      }
      y.data()[k] += weight * from.data()[plane * elements + e];
    }
  }
  return y;
}

/// Two boxes on images of 4 x 5 elements, one over their edges: of the elements and on the device of x.
template <class X>
sinter::tensor<sinter::element_of<X>, 2, sinter::device_of<X>> regions_for(const X&) {
  using T = sinter::element_of<X>;
  const sinter::tensor<double, 2> boxes = {{1, 0.5, 0.25, 3.75, 2}, {0, 3, -1.5, 6, 4.5}};
  return sinter::eval(sinter::cast<T>(boxes)).template to<sinter::device_of<X>>();
}
/// roi_align: each result is the mean over its places of all elements, as they count there.
inline sinter::tensor<double, 4> regions_of(const sinter::tensor<double, 4>& x, sinter::index_t height,
                                            sinter::index_t width, const sinter::roi_align_options& o) {
  using sinter::index_t;
  const auto boxes = regions_for(x);
  const auto y = sinter::zeros<double>({boxes.shape()[0], x.shape()[1], height, width});
  const double shift = o.aligned ? 0.5 : 0;
  // How much element i of n counts for result r of `out`, between these places.
  const auto weight = [&](double from, double to, index_t out, index_t r, index_t i, index_t n) {
    from = from * o.spatial_scale - shift;
    double size = to * o.spatial_scale - shift - from;
    if (!o.aligned) size = std::max(size, 1.0);
    const double step = size / static_cast<double>(out);
    const index_t count = o.sampling_ratio > 0 ? o.sampling_ratio : static_cast<index_t>(std::ceil(step));
    double sum = 0;
    for (index_t k = 0; k < count; ++k) {
      const double at =
          from + step * (static_cast<double>(r) + (static_cast<double>(k) + 0.5) / static_cast<double>(count));
      const double last = static_cast<double>(n - 1);
      if (at >= -1 && at <= last + 1)
        sum += std::max(0.0, 1 - std::abs(static_cast<double>(i) - std::clamp(at, 0.0, last)));
    }
    return sum / static_cast<double>(count);
  };
  for (index_t k = 0; k < boxes.shape()[0]; ++k)
    for (index_t c = 0; c < x.shape()[1]; ++c)
      for (index_t r = 0; r < height; ++r)
        for (index_t s = 0; s < width; ++s)
          for (index_t i = 0; i < x.shape()[2]; ++i)
            for (index_t j = 0; j < x.shape()[3]; ++j)
              y(k, c, r, s) += weight(boxes(k, 2), boxes(k, 4), height, r, i, x.shape()[2]) *
                               weight(boxes(k, 1), boxes(k, 3), width, s, j, x.shape()[3]) *
                               x(static_cast<index_t>(boxes(k, 0)), c, i, j);
  return y;
}

}  // namespace kernel_table
