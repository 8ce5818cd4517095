// tests/compile_fail/searchsorted_ranks.cpp: lines of sorted elements for values of another rank.
// FIRST-LINE: operands_of_ranks<2, 3>
// FIRST-LINE: use_sorted_elements_of_rank_1_or_of_the_rank_of_the_values
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> lines, tensor<float, 3> x) { static_cast<void>(searchsorted(lines, x)); }
#else
void f(tensor<float, 2> lines, tensor<float, 3> x) { static_cast<void>(searchsorted(lines[0], x)); }
#endif
