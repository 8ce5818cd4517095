// tests/compile_fail/box_iou_elsewhere.cpp: overlaps of boxes on two devices.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& a, const tensor<float, 2, numa<0>>& b) { return box_iou(a, b); }
#else
auto f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return box_iou(a, b); }
#endif
