// tests/compile_fail/with_gradient_captured_variable.cpp: forward captures a variable, whose gradient would be lost.
// FIRST-LINE: forward_that_uses_a_captured_variable
// FIRST-LINE: pass_the_variable_as_an_operand_or_capture_its_value
#include <sinter/sinter.hpp>

using sinter::variable;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x, const variable<float, 1>& w) {
  return sinter::with_gradient([w](const auto& a) { return a * w; }, [](const auto& g) { return g; })(x);
}
#else
auto f(const variable<float, 1>& x, const variable<float, 1>& w) {
  return sinter::with_gradient([w](const auto& a) { return a * w.value(); }, [](const auto& g) { return g; })(x);
}
#endif
