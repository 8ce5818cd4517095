// tests/compile_fail/wrap_on_gpu_in_host_only_file.cpp: wrapping memory of a GPU in a file for the host compiler.
// FIRST-LINE: sinter: creating or evaluating tensors on cuda<I> needs the CUDA backend: compile this file with nvcc
// EXPECT: cuda<1>
// LINES-GCC: 13
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(float* p) { return wrap<cuda<1>>(p, {2, 3}); }
#else
auto f(float* p) { return wrap<numa<1>>(p, {2, 3}); }
#endif
