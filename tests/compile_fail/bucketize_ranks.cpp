// tests/compile_fail/bucketize_ranks.cpp: boundaries of more than one axis.
// FIRST-LINE: operands_of_ranks<2, 2>
// FIRST-LINE: use_boundaries_of_rank_1
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> boundaries, tensor<float, 2> x) { static_cast<void>(bucketize(x, boundaries)); }
#else
void f(tensor<float, 2> boundaries, tensor<float, 2> x) { static_cast<void>(bucketize(x, boundaries[0])); }
#endif
