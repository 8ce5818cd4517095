// tests/compile_fail/unfold_rank.cpp: unfold() of something that is no picture.
// FIRST-LINE: operands_of_ranks<2>
// FIRST-LINE: use_an_operand_of_rank<3, 4>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto columns(const tensor<float, 2>& x) { return unfold(x, {3, 3}); }
#else
auto columns(const tensor<float, 2>& x) { return unfold(x.unsqueeze(0), {3, 3}); }
#endif
