// tests/compile_fail/operator_variable_with_tensor.cpp: a variable and a tensor on two devices.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cuda<0>, (sinter::)?cpu>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto product(variable<float, 1, cuda<0>> w, tensor<float, 1> x) { return w * x; }
#else
auto product(variable<float, 1, cuda<0>> w, tensor<float, 1, cuda<0>> x) { return w * x; }
#endif
