// tests/compile_fail/grid_of_rank.cpp: a grid for images with volumes.
// FIRST-LINE: operands_of_ranks<5, 4>
// FIRST-LINE: use_a_grid_of_the_rank_of_x
// LINES-CLANG: 28
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 5>& x, const tensor<float, 4>& g) { return eval(grid_sample(x, g)); }
#else
auto f(const variable<float, 5>& x, const tensor<float, 5>& g) { return eval(grid_sample(x, g)); }
#endif
