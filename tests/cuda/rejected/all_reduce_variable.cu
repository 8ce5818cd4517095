// tests/cuda/rejected/all_reduce_variable.cu: a variable in a sum over GPUs, which has no derivative.
// FIRST-LINE: updating_a_tracked_variable_in_place
// FIRST-LINE: write_through_dot_value_instead
#include <sinter/cuda/nccl.hpp>
#include <sinter/grad/variable.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 2, cuda<0>> a, variable<float, 2, cuda<1>> b) { all_reduce(a, b); }
#else
void f(variable<float, 2, cuda<0>> a, variable<float, 2, cuda<1>> b) { all_reduce(a.value(), b.value()); }
#endif
