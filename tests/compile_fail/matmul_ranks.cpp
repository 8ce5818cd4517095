// tests/compile_fail/matmul_ranks.cpp: a matrix times a scalar.
// FIRST-LINE: matmul_of_ranks<2, 0>
// FIRST-LINE: both_of_rank_1_or_more
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 2> a, tensor<float, 0> b) { return matmul(a, b); }
#else
auto f(tensor<float, 2> a, tensor<float, 0> b) { return eval(a * b); }
#endif
