// tests/compile_fail/element_access_on_gpu.cpp: reading an element of a GPU tensor.
// FIRST-LINE: no_host_access_to_memory_of<(sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_to_the_host_with_dot_to_cpu
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
float f(tensor<float, 1, cuda<0>> a) { return a(0); }
#else
float f(tensor<float, 1> a) { return a(0); }
#endif
