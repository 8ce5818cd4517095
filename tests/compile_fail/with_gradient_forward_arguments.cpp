// tests/compile_fail/with_gradient_forward_arguments.cpp: a function with gradient called with an operand too many.
// FIRST-LINE: forward_that_does_not_take<.*tensor<float, 1.*tensor<float, 1
// FIRST-LINE: take_one_tensor_for_each_operand
#include <sinter/sinter.hpp>

using sinter::variable;

const auto doubled = sinter::with_gradient([](const auto& a) { return a * 2; }, [](const auto& g) { return g * 2; });
#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) { return doubled(x, x); }
#else
auto f(const variable<float, 1>& x) { return doubled(x); }
#endif
