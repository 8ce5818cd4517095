// tests/compile_fail/let_body_elsewhere.cpp: the body of let() uses a tensor of another device.
// FIRST-LINE-GCC: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE-GCC: copy_one_operand_with_dot_to
// FIRST-LINE-NVCC: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE-NVCC: copy_one_operand_with_dot_to
// EXPECT: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>.*copy_one_operand_with_dot_to
// LINES-GCC: 13
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> x, tensor<float, 1, cuda<0>> y) { return let(exp(x), [y](auto t) { return t + y; }); }
#else
auto f(tensor<float, 1> x, tensor<float, 1> y) { return let(exp(x), [y](auto t) { return t + y; }); }
#endif
