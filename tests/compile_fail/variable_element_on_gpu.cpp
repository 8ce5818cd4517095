// tests/compile_fail/variable_element_on_gpu.cpp: reading an element of a variable on a GPU.
// FIRST-LINE: no_host_access_to_memory_of<(sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_to_the_host_with_dot_to_cpu
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
float f(variable<float, 1, cuda<0>> a) { return a(0); }
#else
float f(variable<float, 1> a) { return a(0); }
#endif
