// tests/compile_fail/communicator_receive_elsewhere.cpp: a message received on a GPU by ranks of threads.
// FIRST-LINE: communicator_does_not_reach<(sinter::)?cuda<0> ?>
// FIRST-LINE: copy_it_with_dot_to_a_device_that_it_reaches
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(thread_communicator ranks) { ranks.receive<float, cuda<0>>(3, 1).get(); }
#else
void f(thread_communicator ranks) { ranks.receive<float, cpu>(3, 1).get(); }
#endif
