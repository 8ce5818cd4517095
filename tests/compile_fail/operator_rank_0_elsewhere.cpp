// tests/compile_fail/operator_rank_0_elsewhere.cpp: a tensor of rank 0 is no number: it stays on its device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cuda<0>, (sinter::)?cpu>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto scaled(tensor<float, 2, cuda<0>> x, tensor<float, 0> factor) { return x * factor; }
#else
auto scaled(tensor<float, 2, cuda<0>> x, tensor<float, 0> factor) { return x * factor.item(); }
#endif
