// tests/compile_fail/rotary_ranks.cpp: rotary() of a vector.
// FIRST-LINE: operands_of_ranks<1, 2, 2>
// FIRST-LINE: use_an_operand_of_rank_2_to_4_and_angles_of_rank_2_or_3
#include <sinter/sinter.hpp>
#include <sinter/sequences.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> x, tensor<float, 2> cos, tensor<float, 2> sin) { return rotary(x, cos, sin); }
#else
auto f(tensor<float, 2> x, tensor<float, 2> cos, tensor<float, 2> sin) { return rotary(x, cos, sin); }
#endif
