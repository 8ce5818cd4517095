// tests/compile_fail/scatter_ranks.cpp: scatter() of a source of another rank.
// FIRST-LINE: operands_of_ranks<2, 1>
// FIRST-LINE: use_a_source_of_the_rank_of_the_elements
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> x, tensor<int, 2> i, tensor<float, 1> s) { scatter(x, 1, i, s); }
#else
void f(tensor<float, 2> x, tensor<int, 2> i, tensor<float, 1> s) { scatter(x, 1, i, s.unsqueeze(1)); }
#endif
