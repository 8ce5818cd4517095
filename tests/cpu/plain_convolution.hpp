// tests/cpu/plain_convolution.hpp: convolutions by their definition, in double, for tests of the kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <vector>

#include "sinter/cpu/convolution.hpp"

namespace sinter::cpu_impl {

inline std::ostream& operator<<(std::ostream& out, const conv_shape& s) {
  out << "batch " << s.batch << ", channels " << s.channels << ", filters " << s.filters << ", groups " << s.groups;
  for (int a = 0; a < 3; ++a)
    out << "; in " << s.in[a] << ", out " << s.out[a] << ", kernel " << s.kernel[a] << ", stride " << s.stride[a]
        << ", padding " << s.padding[a] << ", dilation " << s.dilation[a];
  return out;
}

}  // namespace sinter::cpu_impl

namespace plain_convolution {

using sinter::index_t;
using sinter::cpu_impl::conv_shape;
using sinter::cpu_impl::conv_weight_strides;

struct sequence {
  std::uint32_t state = 1;
  std::uint32_t next() { return (state = state * 1664525u + 1013904223u) >> 8; }
  index_t below(index_t n) { return static_cast<index_t>(next()) % n; }
  index_t between(index_t low, index_t high) { return low + below(high - low + 1); }
};

template <class T>
std::vector<T> values(index_t n, std::uint32_t seed) {
  sequence numbers{seed};
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) x = static_cast<T>(static_cast<double>(numbers.below(2001)) / 1024. - 1);
  return v;
}

constexpr index_t product(const index_t (&e)[3]) { return e[0] * e[1] * e[2]; }
inline index_t x_size(const conv_shape& s) { return s.batch * product(s.in) * s.channels; }
inline index_t y_size(const conv_shape& s) { return s.batch * product(s.out) * s.filters; }
inline index_t w_size(const conv_shape& s) { return s.filters * s.channels / s.groups * product(s.kernel); }

/// As many results as the padding on both sides allows.
inline conv_shape with_results(conv_shape s, index_t behind = 0) {
  for (int a = 0; a < 3; ++a) {
    const index_t span = s.in[a] + 2 * s.padding[a] + behind - s.dilation[a] * (s.kernel[a] - 1);
    s.out[a] = span > 0 ? (span - 1) / s.stride[a] + 1 : 0;
  }
  return s;
}

inline conv_shape square(index_t batch, index_t channels, index_t filters, index_t extent, index_t kernel,
                         index_t stride, index_t padding, index_t dilation = 1, index_t groups = 1) {
  return with_results({batch,
                       channels,
                       filters,
                       groups,
                       {1, extent, extent},
                       {},
                       {1, kernel, kernel},
                       {1, stride, stride},
                       {0, padding, padding},
                       {1, dilation, dilation}});
}

/// f(x index, w index, y index) for every product of the definition.
template <class F>
void for_products(const conv_shape& s, const conv_weight_strides& ws, F f) {
  const index_t cg = s.channels / s.groups, fg = s.filters / s.groups;
  index_t pixel = 0;
  for (index_t n = 0; n < s.batch; ++n)
    for (index_t o0 = 0; o0 < s.out[0]; ++o0)
      for (index_t o1 = 0; o1 < s.out[1]; ++o1)
        for (index_t o2 = 0; o2 < s.out[2]; ++o2, ++pixel)
          for (index_t t = 0; t < product(s.kernel); ++t) {
            const index_t tap[] = {t / s.kernel[2] / s.kernel[1], t / s.kernel[2] % s.kernel[1], t % s.kernel[2]};
            const index_t o[] = {o0, o1, o2};
            index_t at = n, weight = 0;
            bool inside = true;
            for (int a = 0; a < 3; ++a) {
              const index_t i = o[a] * s.stride[a] + tap[a] * s.dilation[a] - s.padding[a];
              inside = inside && i >= 0 && i < s.in[a];
              at = at * s.in[a] + i;
              weight += tap[a] * ws.tap[a];
            }
            if (!inside) continue;
            for (index_t filter = 0; filter < s.filters; ++filter)
              for (index_t c = 0; c < cg; ++c)
                f(at * s.channels + filter / fg * cg + c, weight + filter * ws.filter + c * ws.channel,
                  pixel * s.filters + filter);
          }
}

/// Sums in double, and the sums of the sizes of what was added.
struct sums {
  std::vector<double> value, size;
  explicit sums(std::size_t n, double before) : value(n, before), size(n, std::abs(before)) {}
  void add(index_t at, double x) {
    value[static_cast<std::size_t>(at)] += x;
    size[static_cast<std::size_t>(at)] += std::abs(x);
  }
};

template <class T>
index_t wrong_elements(const std::vector<T>& got, const sums& expected) {
  index_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double bound = 40 * static_cast<double>(std::numeric_limits<T>::epsilon()) * expected.size[i];
    wrong += !(std::abs(static_cast<double>(got[i]) - expected.value[i]) <= bound);
  }
  return wrong;
}

/// Weights with the channels last, and those of gradients of transposed ones.
inline conv_weight_strides channels_last_weights(const conv_shape& s) {
  const index_t c = s.channels / s.groups;
  return {product(s.kernel) * c, 1, {s.kernel[1] * s.kernel[2] * c, s.kernel[2] * c, c}};
}

/// An epilogue that doubles every element it is told of, of a matrix with so many columns.
struct doubling {
  float* to;
  index_t columns;
  static void run(void* context, index_t r0, index_t r1, index_t c0, index_t c1) {
    const auto& d = *static_cast<doubling*>(context);
    for (index_t r = r0; r < r1; ++r)
      for (index_t c = c0; c < c1; ++c) d.to[r * d.columns + c] *= 2;
  }
};

}  // namespace plain_convolution
