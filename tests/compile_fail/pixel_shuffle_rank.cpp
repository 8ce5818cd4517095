// tests/compile_fail/pixel_shuffle_rank.cpp: pixel_shuffle() of a matrix.
// FIRST-LINE: operands_of_ranks<2>
// FIRST-LINE: use_an_operand_of_rank<3, 6>
// LINES-GCC: 17
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto larger(const tensor<float, 2>& x) { return pixel_shuffle(x, 2); }
#else
auto larger(const tensor<float, 2>& x) { return pixel_shuffle(x.unsqueeze(0), 2); }
#endif
