// sinter/cuda/cub.hpp: sorts on GPUs done by CUB, for one file of a program.
//
// The file is compiled by nvcc and linked as an object: of a static library a linker takes only what is asked for by name, and
// nobody asks for this. It is best empty but for the include, because CUB declares a namespace ::cuda, beside which
// `using namespace sinter` makes cuda<0> ambiguous; sinter::cuda<0> is not. No other file of the program changes:
//
//     // sorts.cu
//     #include <sinter/cuda/cub.hpp>
//
// sort, argsort, unique and topk, where it sorts, then go through cub::DeviceRadixSort on every cuda<I> of the program, in place of
// Sinter's own sort, with the same results to the bit. Scratch memory comes from the device's arena; a captured step may hold such
// sorts. launches<D>() counts each as one, however many kernels CUB starts for it.
//
// Errors: device_error with CUDA's words where CUB fails, out_of_memory where there is no scratch memory. What the program
// has left in cudaGetLastError() is dropped.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_CUDA
#error "sinter: sinter/cuda/cub.hpp is for a file with the CUDA backend, compiled by nvcc; other files need nothing for its sorts"
#else

#include <cub/device/device_radix_sort.cuh>

#include "sinter/cuda/context.hpp"
#include "sinter/cuda/pairs.hpp"

namespace sinter::cuda_impl {

inline void sort_by_cub(context& c, pair_buffers& pairs, index_t n, int bits) {
  const auto held = c.capture().enter("a sort");
  const use_gpu current(c.gpu());
  ignore(cudaPeekAtLastError());  // CUB would take an error that the program has left behind for its own
  cub::DoubleBuffer<std::uint64_t> keys(pairs.keys, pairs.spare_keys);
  cub::DoubleBuffer<std::uint32_t> values(pairs.values, pairs.spare_values);
  std::size_t bytes = 0;
  const auto run = [&](void* scratch) {
    const cudaError_t status = cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, values, n, 0, bits, c.stream());
    if (status != cudaSuccess) check(status, c.name() + ": 'a sort' of " + std::to_string(n) + " pairs by CUB");
  };
  run(nullptr);
  const sinter::detail::block scratch(c.memory(), bytes > 0 ? bytes : 1);  // with a null pointer it would ask for the size again
  run(scratch.data());
  c.count_launches();
  if (keys.selector != 0) pairs.turn();
}

inline const bool cub_sorts = (other_sorter = &sort_by_cub, true);

}  // namespace sinter::cuda_impl
#endif
