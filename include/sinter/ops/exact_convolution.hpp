// sinter/ops/exact_convolution.hpp: keeps convolutions of floats to plain sums of products.
#pragma once

namespace sinter {

/// While one is alive, convolutions of floats that start on this thread are plain sums of products: forward and, where
/// backward() is called under it, backward. Without one the host devices compute large convolutions of 3 x 3 and 5 x 5
/// taps with stride 1 by Winograd's tiles, up to three times as fast. A tile rounds relative to its largest elements,
/// so that the error is two to five times as large, and a NaN or infinity in one element of x reaches all results of
/// its tiles. Guards may nest, and end in any order, on the thread that made them. Doubles and GPUs are what they are
/// without it.
///
///     { exact_convolution exact; loss.backward(); }
class [[nodiscard]] exact_convolution {
 public:
  [[nodiscard]] exact_convolution() noexcept { ++alive(); }
  ~exact_convolution() { --alive(); }
  exact_convolution(const exact_convolution&) = delete;
  exact_convolution& operator=(const exact_convolution&) = delete;

  /// Is one alive on this thread?
  static bool now() noexcept { return alive() > 0; }

 private:
  static int& alive() noexcept {
    static thread_local int count = 0;
    return count;
  }
};

}  // namespace sinter
