// tests/compile_fail/with_gradient_backward_arguments.cpp: backward takes a value that forward does not save.
// FIRST-LINE: backward_that_does_not_take<.*tensor<float, 1
// FIRST-LINE: take_the_gradient_of_the_result_and_then_each_saved_value
#include <sinter/sinter.hpp>

using sinter::variable;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient([](const auto& a) { return a * a; },
                               [](const auto& g, const auto& a) { return 2 * g * a; })(x);
}
#else
auto f(const variable<float, 1>& x) {
  return sinter::with_gradient([](const auto& a) { return sinter::with_saved(a * a, a); },
                               [](const auto& g, const auto& a) { return 2 * g * a; })(x);
}
#endif
