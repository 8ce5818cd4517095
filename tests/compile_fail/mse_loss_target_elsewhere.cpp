// tests/compile_fail/mse_loss_target_elsewhere.cpp: mse_loss() against a target on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 2> y, tensor<float, 2, numa<0>> target) { mse_loss(y, target); }
#else
void f(variable<float, 2> y, tensor<float, 2> target) { mse_loss(y, target); }
#endif
