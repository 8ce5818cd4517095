// tests/compile_fail/concat_third_elsewhere.cpp: concat() with the third tensor alone on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?numa<0>, (sinter::)?numa<0>, (sinter::)?numa<1>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto all(tensor<float, 1, numa<0>> a, tensor<float, 1, numa<0>> b, tensor<float, 1, numa<1>> c) { return concat(0, a, b, c); }
#else
auto all(tensor<float, 1, numa<0>> a, tensor<float, 1, numa<0>> b, tensor<float, 1, numa<0>> c) { return concat(0, a, b, c); }
#endif
