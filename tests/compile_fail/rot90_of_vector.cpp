// tests/compile_fail/rot90_of_vector.cpp: a quarter turn of what has one axis.
// FIRST-LINE: operands_of_ranks<1\s?>
// FIRST-LINE: use_an_operand_of_rank<2, 8\s?>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 1>& x) { return rot90(x, 1); }
#else
auto f(const tensor<float, 1>& x) { return rot90(x.unsqueeze(0), 1); }
#endif
