// tests/compile_fail/fuse_of_variable.cpp: fuse writes plain tensors; the tape would not see what it does to a variable.
// FIRST-LINE: updating_a_tracked_variable_in_place
// FIRST-LINE: write_through_dot_value_instead
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 2> v) { fuse(v = v * 2); }
#else
void f(variable<float, 2> v) { fuse(v.value() *= 2); }
#endif
