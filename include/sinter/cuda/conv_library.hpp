// sinter/cuda/conv_library.hpp: a convolution as it is asked of a library.
#pragma once

#include "sinter/cuda/product.hpp"
#include "sinter/ops/conv_axes.hpp"

namespace sinter::cuda_impl {

/// One of the three passes of a convolution, over dense memory: images and results have their channels last, weights
/// are (F, taps, C / groups). The pass writes one of them, or adds to it, and reads the other two.
struct library_convolution {
  enum class pass { forward, data, weights };
  pass which;
  ops::conv_extents e;
  bool add;
  bool has_bias = false, relu = false;  ///< forward only: result = relu(convolution + bias)
  // To be convolved, not what decides how:
  void *image = nullptr, *weights = nullptr, *result = nullptr;
  const void* bias = nullptr;

  static constexpr const char* name_of(pass p) {
    return p == pass::forward ? "a convolution" : p == pass::data ? "gradient of images" : "gradient of weights";
  }
};

/// Nobody, in place of such a library.
struct no_convolutions {
  /// Whether run<T>() does it; T are the elements.
  template <class T>
  bool takes(const library_convolution&) const {
    return false;
  }
  template <class T>
  void run(const library_convolution&) const {}
};

}  // namespace sinter::cuda_impl
