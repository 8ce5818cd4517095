// tests/compile_fail/max_pool_with_indices_rank.cpp: max_pool2d_with_indices() of one picture without its batch.
// FIRST-LINE: operands_of_ranks<3>
// FIRST-LINE: use_an_operand_of_rank<4, 4>
// LINES-GCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 3>& x) { return max_pool2d_with_indices(x, 2).indices; }
#else
auto f(const tensor<float, 3>& x) { return max_pool2d_with_indices(x.unsqueeze(0), 2).indices; }
#endif
