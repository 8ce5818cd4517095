// tests/compile_fail/with_gradient_forward_without_return.cpp: forward that returns nothing.
// FIRST-LINE: forward_that_returns<void>
// FIRST-LINE: return_a_tensor_or_an_expression_or_with_saved
#include <sinter/sinter.hpp>

using sinter::variable;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient([](const auto& a) { static_cast<void>(a); }, [](const auto& g) { return g; })(x);
}
#else
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient([](const auto& a) { return a; }, [](const auto& g) { return g; })(x);
}
#endif
