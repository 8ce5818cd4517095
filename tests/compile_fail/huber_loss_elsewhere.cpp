// tests/compile_fail/huber_loss_elsewhere.cpp: a loss with its options, of a target on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 2>& y, const tensor<float, 2, numa<0>>& t) { return huber_loss(y, t, 2.0); }
#else
auto f(const variable<float, 2>& y, const tensor<float, 2, numa<0>>& t) { return huber_loss(y, t.to<cpu>(), 2.0); }
#endif
