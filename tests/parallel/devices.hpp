// tests/parallel/devices.hpp: the devices of the tests of parallel/: NUMA nodes, or where nvcc compiles, GPUs.
//
// On a machine with one GPU these are the same one: SINTER_CUDA_MAP=0,0,0,0.
#pragma once

#include <sinter/parallel.hpp>  // on host devices it needs nothing beside it
#if SINTER_WITH_CUDA
#include <sinter/sinter.hpp>
#endif

namespace places {

#if SINTER_WITH_CUDA
using d0 = sinter::cuda<0>;
using d1 = sinter::cuda<1>;
using d2 = sinter::cuda<2>;
using d3 = sinter::cuda<3>;
#else
using d0 = sinter::numa<0>;
using d1 = sinter::numa<1>;
using d2 = sinter::numa<2>;
using d3 = sinter::numa<3>;
#endif

}  // namespace places
