// tests/compile_fail/linear_bias_elsewhere.cpp: linear() with the bias alone on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto layer(tensor<float, 2> x, tensor<float, 2> w, tensor<float, 1, cuda<0>> b) { return linear(x, w, b); }
#else
auto layer(tensor<float, 2> x, tensor<float, 2> w, tensor<float, 1> b) { return linear(x, w, b); }
#endif
