// tests/compile_fail/with_gradient_let_name.cpp: a name of let() as an operand of a function with gradient, which needs a value in memory.
// LINES-GCC: 13
// EXPECT: value_that_let_names_in_a_function_with_gradient
// EXPECT: evaluate_it_before_let
#include <sinter/sinter.hpp>

using sinter::tensor;

const auto product = sinter::with_gradient(
    [](const auto& a, const auto& b) { return sinter::with_saved(a * b, a, b); },
    [](const auto& g, const auto& a, const auto& b) { return sinter::gradients(g * b, g * a); });
#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 1>& x) {
  return let(exp(x), [](auto t) { return product(t, t); });
}
#else
auto f(const tensor<float, 1>& x) {
  tensor t = exp(x);
  return product(t, t);
}
#endif
