// sinter/core/gpu_only.hpp: functions that only files with the CUDA backend can call, declared for the others too, so
// that a call there says what it needs. Where the tests simulate the backend both are there; its own are more
// constrained, and chosen.
#pragma once

#include "sinter/config.hpp"
#include "sinter/core/arena.hpp"

#if !SINTER_WITH_CUDA
namespace sinter {

namespace detail {

template <device D>
void refuse_gpu_work() {
  static_assert(is_cuda_v<D>,
                "sinter: only GPUs work on their own; on a host device a statement has run when it returns");
  static_cast<void>(sizeof(runs_in_this_file<D>));
}

/// What capture() returns, as far as a program goes on to use it.
struct no_graph {
  void replay() const {}
  std::size_t kernels() const { return 0; }
};

}  // namespace detail

template <device D>
void synchronize() {
  detail::refuse_gpu_work<D>();
}
template <device D>
std::size_t launches() {
  detail::refuse_gpu_work<D>();
  return 0;
}
template <device D, class F>
detail::no_graph capture(F&&, int = 1) {
  detail::refuse_gpu_work<D>();
  return {};
}

}  // namespace sinter
#else
namespace sinter {

// Defined in cuda/runtime.hpp.
template <device D>
  requires is_cuda_v<D>
void synchronize();

}  // namespace sinter
#endif
