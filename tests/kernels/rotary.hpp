// tests/kernels/rotary.hpp: rotary positions by their formula, in double.
#pragma once

#include <sinter/sequences.hpp>

#include <cmath>
#include <utility>

namespace kernel_table {

/// x turned by positions from `first` on; `size` of its elements, or all.
template <class X>
auto rotary_of(const X& x, sinter::index_t first, bool interleaved, sinter::index_t size = 0) {
  const auto& s = x.shape();
  const sinter::nn::rotary_positions<sinter::element_of<X>, sinter::device_of<X>> turn(
      s[X::rank - 1], first, s[X::rank - 2], {.base = 50, .turned = size, .interleaved = interleaved});
  return turn(x);
}
template <int R>
sinter::tensor<double, R> positioned(const sinter::tensor<double, R>& x, sinter::index_t first, bool interleaved,
                                     sinter::index_t size = 0) {
  using sinter::index_t;
  const auto y = x.clone();
  const index_t steps = x.shape()[R - 2], width = x.shape()[R - 1], n = size > 0 ? size : width;
  for (index_t row = 0; row < x.numel() / width; ++row)
    for (index_t i = 0; i < n / 2; ++i) {
      const double angle = static_cast<double>(first + row % steps) *
                           std::pow(50, -2.0 * static_cast<double>(i) / static_cast<double>(n));
      double* const a = y.data() + row * width + (interleaved ? 2 * i : i);
      double* const b = interleaved ? a + 1 : a + n / 2;
      const double before = *a;
      *a = before * std::cos(angle) - *b * std::sin(angle);
      *b = *b * std::cos(angle) + before * std::sin(angle);
    }
  return y;
}
/// Cosines and sines of two samples (2,T,d), which stand at 0 and at 5.
template <class X>
auto apart(const X& x) {
  using positions = sinter::nn::rotary_positions<sinter::element_of<X>, sinter::device_of<X>>;
  const sinter::index_t steps = x.shape()[1], width = x.shape()[2];
  const positions near(width, 0, steps, {.base = 50}), far(width, 5, steps, {.base = 50});
  return std::pair{stack(0, near.cos(), far.cos()), stack(0, near.sin(), far.sin())};
}

}  // namespace kernel_table
