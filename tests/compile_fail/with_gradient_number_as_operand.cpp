// tests/compile_fail/with_gradient_number_as_operand.cpp: a function with gradient called with a number.
// FIRST-LINE: operands_that_are_not_all_tensors<.*variable<float, 1.*float>
// FIRST-LINE: capture_the_others_in_forward_and_backward
#include <sinter/sinter.hpp>

using sinter::variable;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x, float by) {
  return sinter::with_gradient([](const auto& a, float s) { return a * s; }, [](const auto& g) { return g; })(x, by);
}
#else
auto f(const variable<float, 1>& x, float by) {
  return sinter::with_gradient([by](const auto& a) { return a * by; }, [by](const auto& g) { return g * by; })(x);
}
#endif
