// tests/compile_fail/with_gradient_gradient_elsewhere.cpp: backward returns the gradient on the device of the result, not of the operand.
// FIRST-LINE: gradient_of_operand<1, (sinter::)?conversion_between_devices<(sinter::)?numa<1>, (sinter::)?cpu>
// FIRST-LINE: copy_explicitly_with_dot_to
#include <sinter/sinter.hpp>

using sinter::cpu;
using sinter::numa;
using sinter::variable;

const auto upload = [](const auto& x) { return x.template to<numa<1>>(); };
#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient(upload, [](const auto& g) { return g * 1; })(x);
}
#else
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient(upload, [](const auto& g) { return g.template to<cpu>(); })(x);
}
#endif
