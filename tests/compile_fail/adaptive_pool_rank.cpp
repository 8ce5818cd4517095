// tests/compile_fail/adaptive_pool_rank.cpp: adaptive_avg_pool2d() of signals.
// FIRST-LINE: operands_of_ranks<3>
// FIRST-LINE: use_an_operand_of_rank<4, 4>
// LINES-GCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 3>& x) { return adaptive_avg_pool2d(x, {1, 2}); }
#else
auto f(const variable<float, 3>& x) { return adaptive_avg_pool1d(x, 2); }
#endif
