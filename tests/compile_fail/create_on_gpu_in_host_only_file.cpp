// tests/compile_fail/create_on_gpu_in_host_only_file.cpp: creating a tensor on a GPU in a file for the host compiler.
// FIRST-LINE: sinter: creating or evaluating tensors on cuda<I> needs the CUDA backend: compile this file with nvcc
// EXPECT: cuda<1>
// LINES-GCC: 13
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f() { return zeros<float, cuda<1>>({2, 3}); }
#else
auto f() { return zeros<float, numa<1>>({2, 3}); }
#endif
