// tests/compile_fail/matmul_devices.cpp: a matrix product across devices.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void product(tensor<float, 2> a, tensor<float, 2, cuda<0>> b) { matmul(a, b); }
#else
void product(tensor<float, 2> a, tensor<float, 2> b) { matmul(a, b); }
#endif
