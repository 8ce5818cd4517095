// tests/compile_fail/mv_devices.cpp: a matrix times a vector of another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> a, tensor<float, 1, cuda<0>> b) { mv(a, b); }
#else
void f(tensor<float, 2, cuda<0>> a, tensor<float, 1, cuda<0>> b) { mv(a, b); }
#endif
