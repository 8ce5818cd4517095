// tests/compile_fail/with_gradient_order_2.cpp: a function with gradient of variables that are differentiated twice.
// FIRST-LINE: function_with_gradient_of_variables_of_order<2>
// FIRST-LINE: use_variables_of_order_1_or_a_formula_of_ops
#include <sinter/sinter.hpp>

using sinter::cpu;
using sinter::variable;

const auto product = sinter::with_gradient(
    [](const auto& a, const auto& b) { return sinter::with_saved(a * b, a, b); },
    [](const auto& g, const auto& a, const auto& b) { return sinter::gradients(g * b, g * a); });
#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1, cpu, 2>& x) { return product(x, x); }
#else
auto f(const variable<float, 1, cpu, 1>& x) { return product(x, x); }
#endif
