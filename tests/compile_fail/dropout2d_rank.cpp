// tests/compile_fail/dropout2d_rank.cpp: dropout2d() without the axis of the batch.
// FIRST-LINE: operands_of_ranks<3>
// FIRST-LINE: use_an_operand_of_rank<4, 4>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto dropped(const tensor<float, 3>& x, generator& gen) { return dropout2d(x, 0.5, gen); }
#else
auto dropped(const tensor<float, 3>& x, generator& gen) { return dropout2d(x.unsqueeze(0), 0.5, gen); }
#endif
