// tests/compile_fail/mv_ranks.cpp: mv of two matrices.
// FIRST-LINE: mv_of_ranks<2, 2>
// FIRST-LINE: a_matrix_of_rank_2_and_a_vector_of_rank_1
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> a, tensor<float, 2> b) { mv(a, b); }
#else
void f(tensor<float, 2> a, tensor<float, 2> b) { matmul(a, b); }
#endif
