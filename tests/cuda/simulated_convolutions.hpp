// tests/cuda/simulated_convolutions.hpp: a library that convolves, on the host, for the simulated GPU.
#pragma once

#include <vector>

#include "sinter/cuda/conv_library.hpp"

namespace sinter::cuda_impl {

/// f(place in the image, in the weights, in the result) for all that a convolution multiplies.
template <class F>
void each_multiplication(const ops::conv_extents& e, const F& f) {
  const index_t channels = e.channels / e.groups, filters = e.filters / e.groups;
  const index_t out = e.out[0] * e.out[1] * e.out[2], taps = e.kernel[0] * e.kernel[1] * e.kernel[2];
  for (index_t pixel = 0; pixel < e.batch * out; ++pixel)
    for (index_t tap = 0; tap < taps; ++tap) {
      const index_t o[3] = {pixel % out / e.out[2] / e.out[1], pixel / e.out[2] % e.out[1], pixel % e.out[2]};
      const index_t k[3] = {tap / e.kernel[2] / e.kernel[1], tap / e.kernel[2] % e.kernel[1], tap % e.kernel[2]};
      index_t in = pixel / out;
      bool inside = true;
      for (int a = 0; a < 3; ++a) {
        const index_t at = o[a] * e.stride[a] + k[a] * e.dilation[a] - e.padding[a];
        inside = inside && at >= 0 && at < e.in[a];
        in = in * e.in[a] + at;
      }
      if (!inside) continue;
      for (index_t filter = 0; filter < e.filters; ++filter)
        for (index_t c = 0; c < channels; ++c)
          f(in * e.channels + filter / filters * channels + c, (filter * taps + tap) * channels + c,
            pixel * e.filters + filter);
    }
}

template <class T>
void convolve_now(const library_convolution& c) {
  using pass = library_convolution::pass;
  const ops::conv_extents& e = c.e;
  const index_t in = e.in[0] * e.in[1] * e.in[2], out = e.out[0] * e.out[1] * e.out[2];
  const index_t taps = e.kernel[0] * e.kernel[1] * e.kernel[2];
  T *const image = static_cast<T*>(c.image), *const w = static_cast<T*>(c.weights),
           *const y = static_cast<T*>(c.result);
  T* const to = c.which == pass::forward ? y : c.which == pass::data ? image : w;
  std::vector<double> sums(static_cast<std::size_t>(c.which == pass::forward ? e.batch * out * e.filters
                                                    : c.which == pass::data
                                                        ? e.batch * in * e.channels
                                                        : e.filters * taps * e.channels / e.groups));
  each_multiplication(e, [&](index_t i, index_t j, index_t k) {
    const auto product = [](T a, T b) { return static_cast<double>(a) * static_cast<double>(b); };
    switch (c.which) {
      case pass::forward:
        sums[static_cast<std::size_t>(k)] += product(image[i], w[j]);
        break;
      case pass::data:
        sums[static_cast<std::size_t>(i)] += product(y[k], w[j]);
        break;
      case pass::weights:
        sums[static_cast<std::size_t>(j)] += product(image[i], y[k]);
        break;
    }
  });
  for (std::size_t i = 0; i < sums.size(); ++i) {
    double sum = sums[i] + (c.add ? static_cast<double>(to[i]) : 0);
    if (c.has_bias) sum += static_cast<double>(static_cast<const T*>(c.bias)[i % static_cast<std::size_t>(e.filters)]);
    to[i] = static_cast<T>(c.relu && sum < 0 ? 0 : sum);
  }
}

/// Whether the simulated GPUs have the library, and whether it refuses to run what it has said that it takes.
struct simulated_library {
  static inline bool is_there = false, refuses_to_run = false;
};

}  // namespace sinter::cuda_impl
