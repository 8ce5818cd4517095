// tests/compile_fail/bce_with_logits_target_elsewhere.cpp: bce_with_logits() against a target on another device, with a reduction.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1> y, tensor<float, 1, numa<0>> target) { bce_with_logits(y, target, reduction::sum); }
#else
void f(variable<float, 1> y, tensor<float, 1> target) { bce_with_logits(y, target, reduction::sum); }
#endif
