// tests/compile_fail/update_variable.cpp: a variable is not updated in place behind the back of the tape.
// FIRST-LINE: updating_a_tracked_variable_in_place
// FIRST-LINE: write_through_dot_value_instead
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1> w, tensor<float, 1> g) { w -= g; }
#else
void f(variable<float, 1> w, tensor<float, 1> g) { w.value() -= g; }
#endif
