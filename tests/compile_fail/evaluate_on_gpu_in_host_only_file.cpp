// tests/compile_fail/evaluate_on_gpu_in_host_only_file.cpp: evaluating on a GPU in a file for the host compiler.
// FIRST-LINE: sinter: creating or evaluating tensors on cuda<I> needs the CUDA backend: compile this file with nvcc
// EXPECT: cuda<0>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2, cuda<0>> x) { tensor y = x + 1; }
#else
auto f(tensor<float, 2, cuda<0>> x) { return x + 1; }
#endif
