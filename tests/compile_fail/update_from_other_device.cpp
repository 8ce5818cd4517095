// tests/compile_fail/update_from_other_device.cpp: an update in place from another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1> a, tensor<float, 1, cuda<0>> b) { a += b; }
#else
void f(tensor<float, 1> a, tensor<float, 1> b) { a += b; }
#endif
