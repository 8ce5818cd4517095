// tests/compile_fail/distributed_swapped.cpp: a distributed whose arguments are in the wrong order.
// FIRST-LINE: what_is_distributed_is_no_module<.*thread_communicator
// FIRST-LINE: write_distributed_of_a_model_and_a_communicator
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(nn::linear<float>& model, thread_communicator world) { nn::distributed ranks(world, model); }
#else
void f(nn::linear<float>& model, thread_communicator world) { nn::distributed ranks(model, world); }
#endif
