// tests/compile_fail/matmul_ranks.cpp: a matrix times a vector.
// FIRST-LINE: matmul_of_ranks<2, 1>
// FIRST-LINE: both_of_rank_2_or_both_of_rank_3
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> a, tensor<float, 1> b) { matmul(a, b); }
#else
void f(tensor<float, 2> a, tensor<float, 1> b) { mv(a, b); }
#endif
