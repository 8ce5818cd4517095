// tests/compile_fail/with_gradient_gradients_count.cpp: backward returns one gradient for two operands.
// FIRST-LINE: backward_with_gradients_for_operands<1, 2>
// FIRST-LINE: return_a_gradient_or_gradients_with_one_for_each_operand
#include <sinter/sinter.hpp>

using sinter::variable;

const auto sum_of = [](const auto& a, const auto& b) { return a + b; };
#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) { return sinter::with_gradient(sum_of, [](const auto& g) { return g; })(x, x); }
#else
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient(sum_of, [](const auto& g) { return sinter::gradients(g, g); })(x, x);
}
#endif
