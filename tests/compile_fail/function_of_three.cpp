// tests/compile_fail/function_of_three.cpp: a function of three operands, the third elsewhere.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?any_device, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto limited(tensor<float, 1> x, tensor<float, 1, cuda<0>> high) { return clamp(x, 0, high); }
#else
auto limited(tensor<float, 1> x, tensor<float, 1> high) { return clamp(x, 0, high); }
#endif
