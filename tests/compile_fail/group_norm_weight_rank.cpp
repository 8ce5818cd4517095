// tests/compile_fail/group_norm_weight_rank.cpp: group_norm() with a weight shaped for broadcasting.
// FIRST-LINE: operands_of_ranks<4, 3>
// FIRST-LINE: use_running_moments_weights_and_biases_of_rank_1
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 4> x, tensor<float, 3> w) { group_norm(x, 2, w); }
#else
void f(tensor<float, 4> x, tensor<float, 1> w) { eval(group_norm(x, 2, w)); }
#endif
