// tests/compile_fail/max_pool_rank.cpp: max_pool1d() of pictures.
// FIRST-LINE: operands_of_ranks<4>
// FIRST-LINE: use_an_operand_of_rank<3, 3>
// LINES-GCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 4>& x) { return max_pool1d(x, 2); }
#else
auto f(const tensor<float, 4>& x) { return max_pool2d(x, 2); }
#endif
