// tests/compile_fail/synchronize_in_host_only_file.cpp: waiting for a GPU in a file for the host compiler.
// FIRST-LINE: sinter: creating or evaluating tensors on cuda<I> needs the CUDA backend: compile this file with nvcc
// EXPECT: cuda<0>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f() { synchronize<cuda<0>>(); }
#else
template <int I>
void f() {
  synchronize<cuda<I>>();
}
#endif
