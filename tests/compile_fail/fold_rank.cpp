// tests/compile_fail/fold_rank.cpp: fold() of a picture in place of columns.
// FIRST-LINE: operands_of_ranks<4>
// FIRST-LINE: use_an_operand_of_rank<2, 3>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto picture(const tensor<float, 4>& x) { return fold(x, {8, 8}, {2, 2}); }
#else
auto picture(const tensor<float, 4>& x) { return fold(x[0], {8, 8}, {2, 2}); }
#endif
