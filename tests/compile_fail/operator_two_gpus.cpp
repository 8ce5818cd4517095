// tests/compile_fail/operator_two_gpus.cpp: an operator with operands on two GPUs.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cuda<0>, (sinter::)?cuda<1>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto scale(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<1>> b) { return a * b; }
#else
auto scale(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<0>> b) { return a * b; }
#endif
