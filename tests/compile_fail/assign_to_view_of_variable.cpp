// tests/compile_fail/assign_to_view_of_variable.cpp: what is written through a view of a variable, the tape would not see.
// FIRST-LINE: updating_a_tracked_variable_in_place
// FIRST-LINE: write_through_dot_value_instead
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 2> w) { w[0] = w[1]; }
#else
void f(variable<float, 2> w) { w.value()[0] = w.value()[1]; }
#endif
