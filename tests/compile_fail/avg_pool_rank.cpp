// tests/compile_fail/avg_pool_rank.cpp: avg_pool3d() of pictures.
// FIRST-LINE: operands_of_ranks<4>
// FIRST-LINE: use_an_operand_of_rank<5, 5>
// LINES-GCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 4>& x) { return avg_pool3d(x, 2, {.padding = 1}); }
#else
auto f(const tensor<float, 4>& x) { return avg_pool2d(x, 2, {.padding = 1}); }
#endif
