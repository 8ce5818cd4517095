// tests/compile_fail/sync_batch_norm_of_linear.cpp: a sync_batch_norm of a module that is no batch norm.
// FIRST-LINE: module_that_is_no_batch_norm<
// FIRST-LINE: wrap_nn_batch_norm1d_2d_or_3d
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(thread_communicator world, nn::linear<float> m) { nn::sync_batch_norm norm(world, m); }
#else
void f(thread_communicator world, nn::batch_norm2d<float> m) { nn::sync_batch_norm norm(world, m); }
#endif
