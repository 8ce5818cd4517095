// tests/compile_fail/meshgrid_of_matrix.cpp: a grid of a matrix, which has no axis of its own.
// FIRST-LINE: operands_of_ranks<1, 2\s?>
// FIRST-LINE: use_operands_of_rank_up_to<1\s?>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 1>& x, const tensor<float, 2>& y) { return meshgrid(x, y); }
#else
auto f(const tensor<float, 1>& x, const tensor<float, 2>& y) { return meshgrid(x, y.flatten()); }
#endif
