// tests/compile_fail/memory_of_gpu_in_host_only_file.cpp: asking for the memory of a GPU in a file for the host compiler.
// FIRST-LINE: sinter: creating or evaluating tensors on cuda<I> needs the CUDA backend: compile this file with nvcc
// EXPECT: cuda<0>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f() { return memory<cuda<0>>(); }
#else
auto f() { return memory<numa<0>>(); }
#endif
