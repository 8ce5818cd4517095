// tests/compile_fail/conv2d_weights_elsewhere.cpp: conv2d() with the weights on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cuda<0>, (sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 4, cuda<0>> x, tensor<float, 4> w, tensor<float, 1, cuda<0>> b) { return conv2d(x, w, b); }
#else
auto f(tensor<float, 4> x, tensor<float, 4> w, tensor<float, 1> b) { return conv2d(x, w, b); }
#endif
