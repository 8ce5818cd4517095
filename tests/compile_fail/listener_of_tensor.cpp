// tests/compile_fail/listener_of_tensor.cpp: listening to what has no gradient.
// FIRST-LINE: listener_of_what_has_no_gradient<(sinter::)?tensor<float, 1(, (sinter::)?cpu)?\s?>
// FIRST-LINE: add_a_variable
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(gradient_listener& listener, tensor<float, 1> x) { listener.add(x, [] {}); }
#else
void f(gradient_listener& listener, variable<float, 1> x) { listener.add(x, [] {}); }
#endif
