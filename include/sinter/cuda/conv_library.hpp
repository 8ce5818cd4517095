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
  bool add;                             ///< not with a bias
  bool has_bias = false, relu = false;  ///< forward only: result = relu(convolution + bias); relu not without a bias
  // The memory, all at multiples of 16 bytes:
  void *image = nullptr, *weights = nullptr, *result = nullptr;
  const void* bias = nullptr;

  bool is_aligned() const {
    for (const void* p :
         {static_cast<const void*>(image), static_cast<const void*>(weights), static_cast<const void*>(result), bias})
      if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) return false;
    return true;
  }
  static constexpr const char* name_of(pass p) {
    return p == pass::forward ? "a convolution" : p == pass::data ? "gradient of images" : "gradient of weights";
  }
};

/// Stands in where there is no such library: it takes nothing. T is the element type.
struct no_convolutions {
  /// True if the library has an algorithm for such a convolution. The weights' memory may still be null.
  template <class T>
  bool takes(const library_convolution&) const {
    return false;
  }
  /// Starts it. Returns false, with nothing done, if the library refuses after all.
  template <class T>
  bool run(const library_convolution&) const {
    return false;
  }
};

}  // namespace sinter::cuda_impl
