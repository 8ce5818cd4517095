// sinter/ops/matmul_precision.hpp: in what arithmetic products of float matrices are computed.
#pragma once

#include <utility>

namespace sinter {

/// How matmul and linear multiply floats. Products of doubles and integers are what they are, and so is everything on the
/// host devices, which compute float32 whatever is asked for.
enum class matmul_precision {
  float32,  ///< every product and sum in float; the default
  tf32,     ///< operands rounded to 11 significant bits, sums in float: the tensor cores of NVIDIA GPUs
};

namespace detail {
inline matmul_precision& precision_of_products() {
  static thread_local matmul_precision now = matmul_precision::float32;
  return now;
}
}  // namespace detail

/// While one is alive, products that start on this thread are computed in the given precision: forward and, where
/// backward() is called under it, backward. They may nest. What is recorded into a cuda_graph keeps the precision it was
/// recorded with. As torch.set_float32_matmul_precision, but never more than asked for: without one, nothing is TF32.
///
///     { use_matmul_precision fast(matmul_precision::tf32); loss.backward(); }
class use_matmul_precision {
 public:
  explicit use_matmul_precision(matmul_precision p) : before_(std::exchange(detail::precision_of_products(), p)) {}
  ~use_matmul_precision() { detail::precision_of_products() = before_; }
  use_matmul_precision(const use_matmul_precision&) = delete;
  use_matmul_precision& operator=(const use_matmul_precision&) = delete;

 private:
  matmul_precision before_;
};

}  // namespace sinter
