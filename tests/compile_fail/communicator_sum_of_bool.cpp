// tests/compile_fail/communicator_sum_of_bool.cpp: sum over ranks of elements that cannot be added.
// FIRST-LINE: communicator_cannot_add_elements_of<bool>
// FIRST-LINE: convert_it_with_cast
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(thread_communicator ranks, tensor<bool, 1> x) { ranks.all_reduce(x).get(); }
#else
void f(thread_communicator ranks, tensor<bool, 1> x) { ranks.broadcast(x, 0).get(); }
#endif
