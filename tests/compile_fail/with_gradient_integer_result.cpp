// tests/compile_fail/with_gradient_integer_result.cpp: a tracked result of integers.
// FIRST-LINE: result_with_elements_that_have_no_gradient<int>
// FIRST-LINE: return_floating_point_elements
#include <sinter/sinter.hpp>

using sinter::variable;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient([](const auto& a) { return sinter::cast<int>(a); }, [](const auto& g) { return g; })(x);
}
#else
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient([](const auto& a) { return trunc(a); }, [](const auto& g) { return g; })(x);
}
#endif
