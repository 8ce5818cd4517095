// tests/kernels/pooling.hpp: pooling in double with plain loops, for the table of kernel ops and other tests.
#pragma once

#include <sinter/sinter.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace kernel_table {

/// The elements of x that one result is made of, along one axis, and how many there are with padding.
struct window_of_axis {
  std::vector<sinter::index_t> elements;
  sinter::index_t counted;
};
using windows_of_axis = std::vector<window_of_axis>;

/// Windows at -padding, -padding + stride, ..., as long as one fits; with ceil_mode one more where elements are left.
inline windows_of_axis sliding_windows(sinter::index_t in, sinter::index_t kernel, sinter::index_t stride,
                                       sinter::index_t padding, sinter::index_t dilation, bool ceil_mode) {
  windows_of_axis windows;
  const sinter::index_t reach = (kernel - 1) * dilation + 1, end = in + padding;
  for (sinter::index_t at = -padding;; at += stride) {
    const bool fits = at + reach <= end, is_rest = ceil_mode && at < in && at - stride + reach < end;
    if (!fits && !is_rest) return windows;
    window_of_axis w{{}, std::min(kernel, (end - at + dilation - 1) / dilation)};
    for (sinter::index_t tap = 0; tap < kernel; ++tap)
      if (at + tap * dilation >= 0 && at + tap * dilation < in) w.elements.push_back(at + tap * dilation);
    windows.push_back(w);
  }
}
inline windows_of_axis adaptive_windows(sinter::index_t in, sinter::index_t out) {
  windows_of_axis windows;
  for (sinter::index_t o = 0; o < out; ++o) {
    window_of_axis w{{}, 0};
    for (sinter::index_t i = 0; i < in; ++i)
      if ((i + 1) * out > o * in && i * out < (o + 1) * in) w.elements.push_back(i);
    windows.push_back(w);
  }
  return windows;
}

/// f(elements of the window, how many there are with padding) for each result.
template <int N, class F>
sinter::tensor<double, N + 2> pooled(const sinter::tensor<double, N + 2>& x,
                                     const std::array<windows_of_axis, std::size_t{N}>& axes, const F& f) {
  windows_of_axis all[3] = {{{{0}, 1}}, {{{0}, 1}}, {{{0}, 1}}};
  sinter::index_t in[3] = {1, 1, 1};
  sinter::extents<N + 2> shape = x.shape();
  for (int d = 0; d < N; ++d) {
    all[3 - N + d] = axes[static_cast<std::size_t>(d)];
    in[3 - N + d] = shape[d + 2];
    shape[d + 2] = static_cast<sinter::index_t>(axes[static_cast<std::size_t>(d)].size());
  }
  const auto dense = x.contiguous();
  const sinter::tensor<double, N + 2> y = sinter::zeros<double>(shape);
  const double* plane = dense.data();
  double* to = y.data();
  for (sinter::index_t p = 0; p < shape[0] * shape[1]; ++p, plane += in[0] * in[1] * in[2])
    for (const window_of_axis& a : all[0])
      for (const window_of_axis& b : all[1])
        for (const window_of_axis& c : all[2]) {
          std::vector<double> values;
          for (const sinter::index_t i : a.elements)
            for (const sinter::index_t j : b.elements)
              for (const sinter::index_t k : c.elements) values.push_back(plane[(i * in[1] + j) * in[2] + k]);
          *to++ = f(values, a.counted * b.counted * c.counted);
        }
  return y;
}

inline double largest_of_window(const std::vector<double>& values, sinter::index_t) {
  return *std::max_element(values.begin(), values.end());
}
inline double sum_of_window(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum;
}
inline double mean_of_window(const std::vector<double>& values, sinter::index_t) {
  return sum_of_window(values) / static_cast<double>(values.size());
}
inline double padded_mean_of_window(const std::vector<double>& values, sinter::index_t counted) {
  return sum_of_window(values) / static_cast<double>(counted);
}
inline double half_of_window(const std::vector<double>& values, sinter::index_t) { return sum_of_window(values) / 2; }

}  // namespace kernel_table
