// tests/compile_fail/operator_comparison.cpp: a comparison across devices.
// FIRST-LINE: operands_on_different_devices<(sinter::)?numa<0>, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto mask(tensor<float, 1, numa<0>> x, tensor<float, 1, cuda<0>> y) { return x < y; }
#else
auto mask(tensor<float, 1, numa<0>> x, tensor<float, 1, numa<0>> y) { return x < y; }
#endif
