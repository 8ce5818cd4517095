// tests/compile_fail/step_with_gradient_elsewhere.cpp: a parameter stepped by a gradient that lies on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void step(variable<float, 2> w, variable<float, 2, cuda<0>> copy) { w.value() -= 0.1f * copy.grad(); }
#else
void step(variable<float, 2> w, variable<float, 2> copy) { w.value() -= 0.1f * copy.grad(); }
#endif
