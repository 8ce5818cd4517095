// tests/compile_fail/capture_in_host_only_file.cpp: capturing a step on a GPU in a file for the host compiler.
// FIRST-LINE: sinter: creating or evaluating tensors on cuda<I> needs the CUDA backend: compile this file with nvcc
// EXPECT: cuda<0>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f() {
  const auto step = capture<cuda<0>>([] {});
  step.replay();
}
#else
template <int I>
void f() {
  const auto step = capture<cuda<I>>([] {});
  step.replay();
}
#endif
