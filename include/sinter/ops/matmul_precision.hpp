// sinter/ops/matmul_precision.hpp: in what arithmetic products of float matrices are computed.
#pragma once

#include <utility>

namespace sinter {

/// How matmul and linear multiply floats. Products of doubles and integers are what they are, and so is everything on
/// the host devices, which compute float32 whatever is asked for.
enum class matmul_precision {
  float32,  ///< every product and sum in float; the default
  tf32,     ///< operands rounded to 11 significant bits, sums in float: the tensor cores of NVIDIA GPUs
};

/// While one is alive, products that start on this thread are computed in the given precision: forward and, where
/// backward() is called under it, backward. They may nest, and end in any order, on the thread that made them. What is
/// recorded into a cuda_graph keeps the precision it was recorded with. As torch.set_float32_matmul_precision, but
/// never more than asked for: without one, nothing is TF32.
///
///     { use_matmul_precision fast(matmul_precision::tf32); loss.backward(); }
class [[nodiscard]] use_matmul_precision {
 public:
  [[nodiscard]] explicit use_matmul_precision(matmul_precision p) noexcept
      : precision_(p), before_(std::exchange(newest(), this)) {}
  ~use_matmul_precision() {
    use_matmul_precision** link = &newest();
    while (*link != this) link = &(*link)->before_;
    *link = before_;
  }
  use_matmul_precision(const use_matmul_precision&) = delete;
  use_matmul_precision& operator=(const use_matmul_precision&) = delete;

  /// What holds on this thread now: what the newest one alive asks for.
  static matmul_precision now() noexcept {
    return newest() == nullptr ? matmul_precision::float32 : newest()->precision_;
  }

 private:
  static use_matmul_precision*& newest() noexcept {
    static thread_local use_matmul_precision* one = nullptr;
    return one;
  }

  matmul_precision precision_;
  use_matmul_precision* before_;
};

}  // namespace sinter
