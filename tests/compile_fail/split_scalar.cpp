// tests/compile_fail/split_scalar.cpp: split() of a number.
// FIRST-LINE: operands_of_ranks<0>
// FIRST-LINE: use_an_operand_of_rank<1, 8>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 0>& x) { return split(x, 2); }
#else
auto f(const tensor<float, 0>& x) { return split(x.reshape({1}), 2); }
#endif
