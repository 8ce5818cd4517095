// tests/compile_fail/update_slice_from_other_device.cpp: an update in place of a slice from another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?numa<0>, (sinter::)?numa<1>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1, numa<0>> a, tensor<float, 1, numa<1>> b) { a.slice(0, 0, 2) *= b; }
#else
void f(tensor<float, 1, numa<0>> a, tensor<float, 1, numa<0>> b) { a.slice(0, 0, 2) *= b; }
#endif
