// sinter/cuda/cub.hpp: sorts on GPUs done by CUB, for one file of a program.
//
// The file is compiled by nvcc and linked as an object: of a static library a linker takes only objects whose names the
// program uses, and it uses none of this file's. It is best empty but for the include, because CUB declares a namespace
// ::cuda, beside which `using namespace sinter` makes cuda<0> ambiguous; sinter::cuda<0> is not. No other file of the
// program changes:
//
//     // sorts.cu
//     #include <sinter/cuda/cub.hpp>
//
// sort, argsort, unique and topk, where it sorts, then go through cub::DeviceRadixSort on every cuda<I> of the program,
// in place of Sinter's own sort, with the same results to the bit. Scratch memory comes from the device's arena; a
// captured step may hold such sorts. launches<D>() counts each as one, however many kernels CUB starts for it.
//
// Errors: device_error with CUDA's words where CUB fails, out_of_memory where there is no scratch memory. What the
// program has left in cudaGetLastError() is dropped.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_CUDA
#error \
    "sinter: sinter/cuda/cub.hpp is for a file with the CUDA backend, compiled by nvcc; other files need nothing for its sorts"
#else

#include <cub/device/device_radix_sort.cuh>

#include "sinter/cuda/cub_call.hpp"
#include "sinter/cuda/pairs.hpp"

namespace sinter::cuda_impl {

inline void sort_by_cub(context& c, pair_buffers& pairs, index_t n, int bits) {
  cub::DoubleBuffer<std::uint64_t> keys(pairs.keys, pairs.spare_keys);
  cub::DoubleBuffer<std::uint32_t> values(pairs.values, pairs.spare_values);
  call_cub(c, {"a sort", &n, 1}, [&](void* scratch, std::size_t& bytes) {
    return cub::DeviceRadixSort::SortPairs(scratch, bytes, keys, values, n, 0, bits, c.stream());
  });
  if (keys.selector != 0) pairs.turn();
}

inline const bool cub_sorts = (other_sorter = &sort_by_cub, true);

}  // namespace sinter::cuda_impl
#endif
