// tests/compile_fail/with_gradient_backward_without_return.cpp: backward that returns nothing.
// FIRST-LINE: backward_that_returns<void>
// FIRST-LINE: return_a_gradient_or_gradients_with_one_for_each_operand
#include <sinter/sinter.hpp>

using sinter::variable;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient([](const auto& a) { return trunc(a); }, [](const auto& g) { static_cast<void>(g); })(x);
}
#else
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient([](const auto& a) { return trunc(a); }, [](const auto& g) { return g; })(x);
}
#endif
