// tests/compile_fail/sync_batch_norm_swapped.cpp: a sync_batch_norm whose arguments are in the wrong order.
// FIRST-LINE: sync_batch_norm_over_what_is_no_communicator<.*batch_norm
// FIRST-LINE: write_sync_batch_norm_of_a_communicator_and_a_norm
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(thread_communicator world, nn::batch_norm2d<float> m) { nn::sync_batch_norm norm(m, world); }
#else
void f(thread_communicator world, nn::batch_norm2d<float> m) { nn::sync_batch_norm norm(world, m); }
#endif
