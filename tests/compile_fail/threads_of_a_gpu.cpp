// tests/compile_fail/threads_of_a_gpu.cpp: set_num_threads() of a GPU.
// FIRST-LINE: threads_of_a_gpu<(sinter::)?cuda<0> ?>
// FIRST-LINE: set_those_of_cpu_or_numa
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f() { set_num_threads<cuda<0>>(2); }
#else
void f() { set_num_threads<numa<0>>(2); }
#endif
