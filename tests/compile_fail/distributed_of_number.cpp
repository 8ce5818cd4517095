// tests/compile_fail/distributed_of_number.cpp: a distributed whose second argument is a number of ranks.
// FIRST-LINE: the_ranks_are_no_communicator<int
// FIRST-LINE: write_distributed_of_a_model_and_a_communicator
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(nn::linear<float>& model, thread_communicator) { nn::distributed ranks(model, 4); }
#else
void f(nn::linear<float>& model, thread_communicator world) { nn::distributed ranks(model, world); }
void g(const nn::linear<float>& model, thread_communicator world) { nn::distributed ranks(model, world); }
#endif
