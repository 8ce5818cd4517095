// tests/compile_fail/select_scatter_rank.cpp: select_scatter() of a source that still has the axis.
// FIRST-LINE: operands_of_ranks<2, 2>
// FIRST-LINE: use_a_part_of_rank<1>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 2> x, tensor<float, 2> row) { return select_scatter(x, row, 0, 1); }
#else
auto f(tensor<float, 2> x, tensor<float, 2> row) { return select_scatter(x, row[0], 0, 1); }
#endif
