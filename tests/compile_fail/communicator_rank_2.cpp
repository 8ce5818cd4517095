// tests/compile_fail/communicator_rank_2.cpp: broadcast of a matrix.
// FIRST-LINE: communicator_takes_flat_tensors_and_not_rank<2>
// FIRST-LINE: write_dot_flatten
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(thread_communicator ranks, tensor<float, 2> x) { ranks.broadcast(x, 0).get(); }
#else
void f(thread_communicator ranks, tensor<float, 2> x) { ranks.broadcast(x.flatten(), 0).get(); }
#endif
