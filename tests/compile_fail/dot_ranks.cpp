// tests/compile_fail/dot_ranks.cpp: the dot product of a matrix and a vector.
// FIRST-LINE: dot_of_ranks<2, 1>
// FIRST-LINE: both_of_rank_1
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> a, tensor<float, 1> b) { dot(a, b); }
#else
void f(tensor<float, 2> a, tensor<float, 1> b) { dot(a.select(0, 0), b); }
#endif
