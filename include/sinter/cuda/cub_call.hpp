// sinter/cuda/cub_call.hpp: how CUB's algorithms are called.
#pragma once

#include "sinter/cuda/context.hpp"

namespace sinter::cuda_impl {

/// Puts an algorithm of CUB's on the stream of the context, as one launch; algorithm(scratch, bytes) says, with no
/// scratch memory, how much it takes, else starts it.
template <class Algorithm>
void call_cub(context& c, const work& w, const Algorithm& algorithm) {
  const auto held = c.capture().enter(w.what);
  const use_gpu current(c.gpu());
  ignore(cudaPeekAtLastError());  // CUB would take an error that the program has left behind for its own
  std::size_t bytes = 0;
  const auto run = [&](void* scratch) {
    const cudaError_t status = algorithm(scratch, bytes);
    if (status != cudaSuccess) check(status, c.name() + ": " + w.text() + " by CUB");
  };
  run(nullptr);
  const sinter::detail::block scratch(c.memory(),
                                      bytes > 0 ? bytes : 1);  // with a null pointer it would ask for the size again
  run(scratch.data());
  c.count_launches();
}

}  // namespace sinter::cuda_impl
