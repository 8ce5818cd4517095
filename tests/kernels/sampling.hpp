// tests/kernels/sampling.hpp: grid_sample by plain loops in double.
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

}  // namespace kernel_table
