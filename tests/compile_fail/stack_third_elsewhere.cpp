// tests/compile_fail/stack_third_elsewhere.cpp: stack() with the third tensor alone on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cpu, (sinter::)?cuda<1>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto batch(tensor<float, 2> a, tensor<float, 2> b, tensor<float, 2, cuda<1>> c) { return stack(0, a, b, c); }
#else
auto batch(tensor<float, 2> a, tensor<float, 2> b, tensor<float, 2> c) { return stack(0, a, b, c); }
#endif
