// tests/compile_fail/data_on_gpu.cpp: the pointer to GPU memory is not handed to the host.
// FIRST-LINE: no_host_access_to_memory_of<(sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_to_the_host_with_dot_to_cpu
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
float* f(tensor<float, 1, cuda<0>> a) { return a.data(); }
#else
float* f(tensor<float, 1> a) { return a.data(); }
#endif
