// tests/compile_fail/communicator_does_not_reach.cpp: sum over ranks of threads of a tensor on a GPU.
// FIRST-LINE: communicator_does_not_reach<(sinter::)?cuda<0> ?>
// FIRST-LINE: copy_it_with_dot_to_a_device_that_it_reaches
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(thread_communicator ranks, tensor<float, 1, cuda<0>> x) { ranks.all_reduce(x).get(); }
#else
void f(thread_communicator ranks, tensor<float, 1, cpu> x) { ranks.all_reduce(x).get(); }
#endif
